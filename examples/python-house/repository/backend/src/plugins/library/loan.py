"""A book that was lent."""


class Loan:
    """A book, and the day of the year on which it has to be back."""

    def __init__(self, book: str, due_on: int) -> None:
        self.book = book
        self._due_on = due_on

    def days_late(self, today: int) -> int:
        """How many days it is late; none when it is in time."""
        return max(0, today - self._due_on)

"""What a try is, what it is given (the scene that the self-check has set outside), and how its outcome is told.

It imports next to nothing: every start of the actor makes some of the tries.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # that of `typing` would cost more than all tries of a start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Body = Callable[["Scene"], "str | None"]

_MOST_TOLD = 4096


class Scene:
    """Paths, ports and processes. `outside` is seen and not writable; `hidden` is not to be seen.

    `own` may be written to. `neighbour` is another process of the user that the tries run as, 0 when there is
    none; a token stands in its environment and in the file `secret` of `hidden`, and is not told here. `proxy`
    is the port of the way out, 0 when there is none.
    """

    outside: str
    hidden: str
    own: str
    home: str
    neighbour: int
    neighbour_since: int
    actor: int
    actor_since: int
    tcp: int
    tcp6: int
    udp: int
    elsewhere: int
    abstract: str
    proxy: int
    mark: str

    def __init__(self, **found: str | int) -> None:
        self.__dict__.update(found)

    def victim(self, name: str) -> str:
        """The file outside that one try is to change; it says `kept`."""
        return f"{self.outside}/{name}"


class UntriedError(Exception):
    """This host has nothing that the try could be made on."""


class RefusedError(Exception):
    """The try came to nothing, without an error of the system that says so."""


class Try:
    """One try: its name, what it does, and the gap of a sandbox that lets it through.

    With `by_mark` it may well be done inside, and only what is seen outside, or the token, says that it got through.
    """

    def __init__(self, body: Body, gap: str, *, by_mark: bool) -> None:
        self.name = body.__name__.replace("_", "-")
        self.what = (body.__doc__ or "").strip().rstrip(".")
        self.gap, self.by_mark, self.body = gap, by_mark, body


TRIES: dict[str, Try] = {}
"""Every try by its name, in the order that they are made."""


def attempt(gap: str = "", *, by_mark: bool = False) -> Callable[[Body], Body]:
    """Make a function a try; what it does is its docstring, and what it returns is what it could read.

    It raises OSError or `RefusedError` when it was refused, and `UntriedError` when it could not be made.
    """

    def register(body: Body) -> Body:
        one = Try(body, gap, by_mark=by_mark)
        TRIES[one.name] = one
        return body

    return register


def make(scene: Scene, names: Iterable[str]) -> None:
    """Make the tries of these names, and tell what came of each: a line of its name, a word, and hexadecimal text."""
    for name in names:
        word, text = _made(name, scene)
        sys.stdout.write(f"{name} {word} {text[:_MOST_TOLD].encode(errors='replace').hex()}\n")
        sys.stdout.flush()


def _made(name: str, scene: Scene) -> tuple[str, str]:
    try:
        read = TRIES[name].body(scene)
    except UntriedError as error:
        return "untried", str(error)
    except OSError as error:
        return "refused", os.strerror(error.errno) if error.errno else str(error)
    except RefusedError as error:
        return "refused", str(error)
    return "done", read or ""


def content(path: str) -> bytes:
    """What a file holds.

    Raises:
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib would double the time of a start
        return file.read()


def seen(process: int, since: int) -> int:
    """The number of a process outside, when it is that process which has this number here.

    Raises:
        RefusedError: it is not seen here.
    """
    try:
        stat = content(f"/proc/{process}/stat")
    except OSError:
        stat = b""
    if stat.rpartition(b")")[2].split()[19:20] != [str(since).encode()]:
        raise RefusedError("that process is not seen here")
    return process

"""Bodies that were written after the judges were done, to see what they miss and whom they wrong.

Each is the working service with something more: imports, and methods of the class or lines before it.
"""

from __future__ import annotations

from textwrap import dedent, indent
from typing import NamedTuple

_HEAD = """\
from __future__ import annotations
from plugins.orders.contracts import Notifier, OrderServiceContract, PriceSource
from plugins.orders.models import Order, OrderLine
from plugins.orders.repository import OrderRepository
"""

_CLASS = """

class OrderService({bases}):
    def __init__(self, repo: OrderRepository, prices: PriceSource, notifier: Notifier) -> None:
        self.repo = repo
        self.prices = prices
        self.notifier = notifier

    def place(self, customer: str, skus: list[str]) -> Order:
        lines = [OrderLine(sku, 1, self.prices.price_of(sku)) for sku in skus]
        return self.repo.save(Order(self.repo.next_id(), customer, lines))

    def cancel(self, order_id: int, reason: str = "") -> bool:
        order = self.repo.get(order_id)
        if order is None:
            return False
        order.status = "cancelled"
        return True
"""


class Body(NamedTuple):
    """What is added to the working service."""

    methods: str = ""
    before: str = ""
    bases: str = "OrderServiceContract"

    @property
    def text(self) -> str:
        """The whole module."""
        added = indent(dedent(self.methods).strip("\n"), "    ")
        return _HEAD + dedent(self.before) + _CLASS.format(bases=self.bases) + ("\n" + added + "\n" if added else "")


DEFECTIVE = {
    "invented method behind an optional": Body("""
        def latest(self) -> int:
            order = self.repo.get(1)
            return order.sum_total() if order else 0
        """),
    "invented method in a comprehension": Body("""
        def names(self) -> list[str]:
            return [order.customer_name() for order in self.repo.all()]
        """),
    "misspelt own method": Body("""
        def again(self, order: Order) -> Order:
            return self.plaec(order.customer, [])
        """),
    "misspelt attribute of a loop variable": Body("""
        def units(self, order: Order) -> int:
            return sum(line.qty for line in order.lines)
        """),
    "keyword that the dataclass does not have": Body("""
        def line(self, sku: str) -> OrderLine:
            return OrderLine(sku=sku, count=1, unit_price=2)
        """),
    "missing argument of a dataclass": Body("""
        def line(self, sku: str) -> OrderLine:
            return OrderLine(sku, 1)
        """),
    "standard library function that does not exist": Body(
        "def dump(self) -> str:\n    return json.to_string({})", before="import json\n"
    ),
    "wrong keyword of a standard library function": Body(
        "def dump(self) -> str:\n    return json.dumps({}, pretty=True)", before="import json\n"
    ),
    "standard library module that does not exist": Body(before="import collection\n"),
    "name from a standard library module that does not have it": Body(before="from functools import memoize\n"),
    "forgotten import": Body("def stamp(self) -> str:\n    return datetime.now().isoformat()"),
    "constant never defined": Body("def limit(self) -> int:\n    return MAX_LINES"),
    "exception class never defined": Body("""
        def must(self, order_id: int) -> Order:
            order = self.repo.get(order_id)
            if order is None:
                raise OrderNotFound(order_id)
            return order
        """),
    "variable used in another method than it was made": Body("""
        def one(self) -> int:
            found = len(self.repo.all())
            return found

        def two(self) -> int:
            return found
        """),
    "method called without self": Body("""
        def check(self, order: Order) -> bool:
            return bool(order.lines)

        def all_checked(self) -> bool:
            return all(check(order) for order in self.repo.all())
        """),
    "local implementation of an interface misses a method": Body(
        "def quiet(self) -> Notifier:\n    return Silent()",
        before="\n\nclass Silent(Notifier):\n    def send(self, recipient: str, message: str) -> bool:\n"
        "        return False\n",
    ),
    "async override of a plain method": Body("""
        async def cancel(self, order_id: int, reason: str = "") -> bool:  # the last one counts
            return False
        """),
    "override as a property": Body("""
        @property
        def cancel(self) -> bool:
            return False
        """),
    "too many arguments to a function of the app": Body(
        "def gross(self, net: int) -> int:\n    return with_tax(net, 21, 2)",
        before="from plugins.billing.tax import with_tax\n",
    ),
    "keyword-only argument given by position": Body(
        "def book(self, net: int) -> int:\n    return Ledger().book(net, False)",
        before="from plugins.billing.ledger import Ledger\n",
    ),
    "invented method of a value of a dictionary": Body("""
        def by_id(self) -> int:
            table = {order.id: order for order in self.repo.all()}
            return table[1].grand()
        """),
    "invented class method": Body("def parse(self, text: str) -> Order:\n    return Order.from_text(text)"),
    "wrong method of a string": Body("def title(self, order: Order) -> str:\n    return order.customer.capitalise()"),
    "module imports itself through a neighbour": Body(before="import plugins.orders.facade as facade\nfacade.build\n"),
}

CLEAN = {
    "new attribute on a collaborator": Body("""
        def mark(self, order: Order) -> None:
            order.note = "seen"
        """),
    "duck typing behind except AttributeError": Body("""
        def flush(self) -> bool:
            try:
                self.notifier.flush()
            except AttributeError:
                return False
            return True
        """),
    "class attribute assigned from outside": Body(
        "def known(self) -> list[str]:\n    return list(self.registry)", before="import plugins.registry\n"
    ),
    "cached property and dataclass inside": Body(
        "@cached_property\ndef table(self) -> dict[int, Order]:\n    return {o.id: o for o in self.repo.all()}",
        before="from functools import cached_property\n",
    ),
    "single dispatch": Body(
        """
        @singledispatchmethod
        def show(self, thing: object) -> str:
            return str(thing)

        @show.register
        def _(self, thing: int) -> str:
            return f"#{thing}"
        """,
        before="from functools import singledispatchmethod\n",
    ),
    "override of a standard library method with another name": Body(
        before="""
        import json


        class OrderEncoder(json.JSONEncoder):
            def default(self, thing: object) -> object:
                return thing.__dict__ if isinstance(thing, Order) else super().default(thing)
        """
    ),
    "equality with a narrower type": Body("""
        def __eq__(self, other: OrderService) -> bool:
            return self.repo is other.repo

        def __hash__(self) -> int:
            return id(self)
        """),
    "context manager from a generator": Body(
        "@contextmanager\ndef session(self) -> Iterator[OrderRepository]:\n    yield self.repo",
        before="from collections.abc import Iterator\nfrom contextlib import contextmanager\n",
    ),
    "enum with methods and auto": Body(
        "def state(self, order: Order) -> State:\n    return State[order.status.upper()]",
        before="""
        from enum import Enum, auto


        class State(Enum):
            OPEN = auto()
            CANCELLED = auto()

            @property
            def label(self) -> str:
                return self.name.title()
        """,
    ),
    "generic class and type variable": Body(
        "def box(self) -> Box[Order]:\n    return Box(self.repo.all())",
        before="""
        from typing import Generic, TypeVar

        T = TypeVar("T")


        class Box(Generic[T]):
            def __init__(self, items: list[T]) -> None:
                self.items = items

            def first(self) -> T:
                return self.items[0]
        """,
    ),
    "structural match": Body("""
        def describe(self, thing: object) -> str:
            match thing:
                case Order(id=number, customer=name):
                    return f"{number} of {name}"
                case {"id": number, **rest}:
                    return f"{number}, {len(rest)} more"
                case [first, *_]:
                    return str(first)
            return ""
        """),
    "delegation by __getattr__": Body(
        """
        def __getattr__(self, name: str) -> object:
            return getattr(self.repo, name)

        def count(self) -> int:
            return len(self.all())
        """
    ),
    "class registry by __init_subclass__": Body(
        before="""
        class Rule:
            rules: list[type[Rule]] = []

            def __init_subclass__(cls, *, weight: int = 1, **options: object) -> None:
                super().__init_subclass__(**options)
                cls.weight = weight
                Rule.rules.append(cls)


        class Minimum(Rule, weight=2):
            pass
        """
    ),
    "decorator with parameters that keeps attributes": Body(
        "@limited(times=3)\ndef once(self) -> int:\n    return self.once.times",
        before="""
        from typing import Any


        def limited(*, times: int) -> Any:
            def around(function: Any) -> Any:
                function.times = times
                return function
            return around
        """,
    ),
    "attributes from a class decorator": Body(
        "def rows(self) -> int:\n    return Table().rows",
        before="""
        def with_rows(cls):
            cls.rows = 3
            return cls


        @with_rows
        class Table:
            pass
        """,
    ),
    "optional import inside a function": Body("""
        def pretty(self, order: Order) -> str:
            try:
                from rich.markup import escape_nicely
            except ImportError:
                return order.customer
            return escape_nicely(order.customer)
        """),
    "narrower parameter type than the base": Body(
        before="""
        from abc import ABC, abstractmethod


        class Event: ...
        class Placed(Event):
            customer = ""


        class Handler(ABC):
            @abstractmethod
            def handle(self, event: Event) -> None: ...


        class OnPlaced(Handler):
            def handle(self, event: Placed) -> None:
                print(event.customer)
        """
    ),
    "named tuple with replace": Body(
        "def key(self) -> Key:\n    return Key('a', 1)._replace(number=2)",
        before="""
        from typing import NamedTuple


        class Key(NamedTuple):
            name: str
            number: int
        """,
    ),
    "walrus, lambda, star arguments": Body("""
        def total(self, *orders: Order, **options: int) -> int:
            pick = options.get("pick", lambda order: order.total())
            if (count := len(orders)) > 1:
                return count
            return sum(map(pick, orders))
        """),
    "attributes set in a loop over names": Body("""
        def reset(self) -> None:
            for name in ("hits", "misses"):
                setattr(self, name, 0)
            self.hits += 1
        """),
    "attributes from a helper of the class": Body("""
        def load(self) -> str:
            self._fill()
            return self.source

        def _fill(self) -> None:
            self.__dict__.update(source="disk")
        """),
    "protocol satisfied by a class of the app": Body(
        "def flat(self) -> int:\n    return ask(Flat())",
        before="""
        class Flat:
            def price_of(self, sku: str) -> int:
                return 1


        def ask(source: PriceSource) -> int:
            return source.price_of("a")
        """,
    ),
    "mixin that uses its host": Body(
        bases="Reports, OrderServiceContract",
        before="""
        class Reports:
            def report(self) -> int:
                return len(self.repo.all())
        """,
    ),
    "overloads and a union": Body(
        """
        @overload
        def find(self, key: int) -> Order: ...
        @overload
        def find(self, key: str) -> list[Order]: ...
        def find(self, key):
            return [] if isinstance(key, str) else Order(key, "")
        """,
        before="from typing import overload\n",
    ),
}

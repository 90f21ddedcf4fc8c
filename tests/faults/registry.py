"""What a case is. A leaf: it imports nothing of the package, so that listing the cases starts nothing."""

from __future__ import annotations

import importlib
import pathlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

Body = Callable[[pathlib.Path], None]
BOTH = ("c", "python")
ANY = ("any",)


@dataclass(frozen=True)
class Case:
    """A function that gets an empty directory, and raises if what is promised does not hold."""

    name: str
    body: Body
    seconds: float
    recorders: tuple[str, ...]
    memory_gb: float
    environment: tuple[tuple[str, str], ...]
    quick: bool


CASES: dict[str, Case] = {}


def case(*, seconds: float = 60, recorders: tuple[str, ...] = BOTH, memory_gb: float = 4.0, quick: bool = True,
         **environment: str) -> Callable[[Body], Body]:
    """Make a function a case. `recorders` is `ANY` where nothing is recorded. Keywords in capitals are environment.

    It may use so many seconds of processor. Those that take long, measure time or hit a moment by chance are not
    `quick`. The promise is the function's docstring.
    """
    def add(body: Body) -> Body:
        name = f"{body.__module__.rpartition('.')[2]}.{body.__name__}"
        if not body.__doc__:
            raise ValueError(f"{name} does not say what it promises")
        if name in CASES:
            raise ValueError(f"there are two cases {name}")
        CASES[name] = Case(name, body, seconds, recorders, memory_gb, tuple(sorted(environment.items())), quick)
        return body

    return add


def load_all() -> dict[str, Case]:
    """Import all files of cases."""
    from . import cases

    for module in pkgutil.iter_modules(cases.__path__):
        importlib.import_module(f"{cases.__name__}.{module.name}")
    return CASES


def load_one(name: str) -> Case:
    """Import the file of one case."""
    importlib.import_module(f"{__package__}.cases.{name.partition('.')[0]}")
    return CASES[name]

"""`aten`: the compiled ops by name, for formulas and composites; it compiles an op on first access.

`aten.mul` is the public form of `mul`; `aten.sum__dim_IntList` is one overload of it, `aten.sum__default` the one
without a name.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from .._forking import held_across_forks
from .observer import first_use
from .registry import CHOOSERS, OPS, OVERLOADS, Op


class LateFamilies(Protocol):
    """Families of ops that are loaded when a program asks for a name that the loaded ones do not have."""

    def families(self) -> Mapping[str, str]:
        """The family of every op in them."""

    def missing(self, name: str | None) -> list[str]:
        """The unloaded families with an op, or an in-place form, of a name; or all unloaded families."""

    def load(self, families: Iterable[str]) -> None:
        """Load families."""


# Set by the dispatcher: compiles one form (plain or in-place) of an op.
COMPILER: list[Callable[[Op, bool], Callable[..., Any]]] = []
# Set by `_ops`: the families of ops that are not loaded at import.
LATE: list[LateFamilies] = []
# Called with the name and the function at the first look-up of each function.
LOOKUPS: list[Callable[[str, Any], None]] = []


# Held while ops are declared or compiled, at their first use.
LOCK = held_across_forks(threading.RLock())


def load_late(name: str | None = None) -> bool:
    """Load the late families that have an op of a name, or all; returns whether there were any."""
    with LOCK:
        missing = [family for late in LATE for family in late.missing(name)]
        if not missing:
            return False
        with first_use(f"{', '.join(missing)} ops" if name else "further families of ops"):
            for late in LATE:
                late.load(missing)
        return True


def late_names() -> set[str]:
    """The names of the ops in the families that are not loaded."""
    return {name for late in LATE for name in late.families()}


def find(name: str) -> Callable[..., Any] | None:
    """The callable for a public or overload name, or None."""
    found = find_loaded(name)
    if found is None and (load_late(name) or load_late(name.rpartition("__")[0] or name)):
        return find_loaded(name)
    return found


def find_loaded(name: str) -> Callable[..., Any] | None:
    """`find` among the loaded families."""
    if name in CHOOSERS:
        return CHOOSERS[name][0]
    base, separator, overload = name.rpartition("__")
    if separator and base:
        key = base if overload == "default" else f"{base}.{overload}"
        op = OPS.get(key)
        if op is not None:
            return COMPILER[0](op, False)
        op = OPS.get(f"{base[:-1]}.{overload}" if overload != "default" else base[:-1]) if base[-1] == "_" else None
        if op is not None and op.inplace:
            return COMPILER[0](op, True)
    if name in OVERLOADS:
        return COMPILER[0](OVERLOADS[name][0], False)
    if name.endswith("_") and name[:-1] in OVERLOADS:
        for op in OVERLOADS[name[:-1]]:
            if op.inplace:
                return COMPILER[0](op, True)
    return None


class Namespace:
    """Attribute access to `find`, cached after the first time."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found = find(name)
        if found is None:
            raise AttributeError(f"there is no op 'aten::{name}' in this runtime")
        self.__dict__[name] = found
        for noted in LOOKUPS:
            noted(name, found)
        return self.__dict__[name]


aten = Namespace()


class Offered:
    """`aten` for the parts of the package whose calls are offered to overriding objects, like a program's own.

    `_faces` puts it in the place of `aten` in loaded modules; a module that may be loaded later imports it.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found = getattr(aten, name)
        made = ASKING.get(found)
        if made is None:  # `to` and `copy_` are methods only
            made = METHODS[name].function if name in METHODS else found
        self.__dict__[name] = made
        return made


class Public:
    """The functions of `torch` as a program finds them, including the program's own replacements.

    For code that is Python in PyTorch and calls functions by these names, such as random draws.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(sys.modules[PACKAGE], name)


PACKAGE = __name__.partition(".")[0]
public = Public()


# Set by `_faces` while functions ask: the asking functions, by the entries of `aten`.
ASKING: dict[Any, Any] = {}
# The same for Tensor's methods, by name.
METHODS: dict[str, Any] = {}
offered = Offered()

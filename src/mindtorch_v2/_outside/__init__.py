"""Parts of PyTorch that are outside of this runtime: their modules and names exist, and raise when they are used.

Libraries import `torch.distributed.tensor.DTensor` to ask whether a tensor is one, or to annotate an argument. Such
modules have no files here: `names.txt` lists them, and the finder makes them when they are imported. A line of it says

    [distributed.fsdp] processes            the module, and the reason why it is outside
      functions: fully_shard                what raises when it is called
      decorators: _require_initialized      what makes functions that raise when they are called
      false: is_available                   functions that answer no
      empty: GPU_TYPES                      lists of what there is none of
      unchanged: mark_exportable            decorators that change nothing
      settings: triton                      objects whose attributes can be set, and change nothing
      none: active_fake_mode                functions that answer that there is none
      classes: FSDPModule                   what has no instances; exceptions, by their name, may be caught
      enum StateDictType: FULL_STATE_DICT   enumerations
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from .._absent import refusing, refusing_class

PACKAGE = __name__.rpartition(".")[0]
REASONS: dict[str, tuple[type[BaseException], str]] = {
    "processes": (RuntimeError, "{}: this part of torch.distributed is not in this runtime; it has process groups on "
                                "MPI, "
                                "their collectives, and DistributedDataParallel"),
    "compiler": (NotImplementedError, "{}: this runtime has no compiler; functions and modules run as they are"),
    "weights": (NotImplementedError, "{}: gradients of single samples are computed by torch.func.vmap of grad, not by "
                "expanded weights"),
    "export": (NotImplementedError, "{}: exporting needs a traced graph of the model, which this runtime does not "
                                    "make"),
    "device": (RuntimeError, "{}: this runtime does not support this device; tensors live on 'cpu', 'npu' or 'meta'"),
    "package": (NotImplementedError, "{}: packages of code and weights are not part of this runtime; use torch.save"),
    "pipes": (NotImplementedError, "{}: data pipes are not part of this runtime; use a Dataset"),
    "nested": (NotImplementedError, "{}: this runtime has no nested tensors, all tensors are strided; pad the tensors "
               "to one size with torch.nn.utils.rnn.pad_sequence"),
    "dimensions": (NotImplementedError, "{}: this runtime has no first-class dimensions; use einsum, permute and "
                                        "reshape"),
    "passes": (NotImplementedError, "{}: this part of torch.fx is not in this runtime; it has graphs, tracing, "
                                    "interpreters, transformers and the replacement of patterns"),
    "numa": (NotImplementedError, "{}: processes are not bound to processors by this runtime"),
}


@cache
def table() -> dict[str, dict[str, tuple[str, str, list[str]]]]:
    """Module -> name -> kind, reason, and the members of an enumeration; parents of modules are there, empty."""
    found: dict[str, dict[str, tuple[str, str, list[str]]]] = {}
    kind, names, reason = "", found.setdefault("", {}), ""
    members: list[str] = []
    for line in Path(__file__).with_name("names.txt").read_text().splitlines():
        if line.startswith("["):
            module, _, reason = line[1:].partition("] ")
            parts = module.split(".")
            for length in range(1, len(parts)):
                found.setdefault(".".join(parts[:length]), {})
            names = found.setdefault(module, {})
            continue
        head, colon, rest = line.strip().partition(": ")
        if colon:
            kind, line = head, rest
            if kind.startswith("enum "):
                members = []
                names[kind[5:]] = ("enum", reason, members)
        if kind.startswith("enum "):
            members += line.split()
        else:
            names.update({name: (kind, reason, []) for name in line.split()})
    return found


@cache
def _class(name: str, kind: str, reason: str, members: tuple[str, ...]) -> Any:
    """One object for one name, however many modules have it."""
    if name.endswith(("Error", "Exception")):
        return type(name, (RuntimeError,), {"__doc__": "Never raised here; programs catch it.", "__module__": "torch"})
    if kind == "enum":
        return enum.Enum(name, members, module="torch")
    error, text = REASONS[reason]
    made = refusing_class(name, error, text.format(name))
    made.__module__ = "torch"
    return made


def no(*args: Any, **kwargs: Any) -> bool:
    """False."""
    return False


def makes_refused(name: str, error: type[BaseException], text: str) -> Callable[..., Any]:
    """What takes a function, or its text, and returns one that raises."""

    def make(function: Any, *args: Any, **kwargs: Any) -> Any:
        known = getattr(function, "__name__", name)
        return refusing(known, error, text.format(known))

    make.__name__ = name
    return make


def unchanged(function: Any) -> Any:
    """The function itself."""
    return function


def nothing(*args: Any, **kwargs: Any) -> None:
    """None."""


def attribute(module: str, name: str) -> Any:
    """What a module outside has under a name: a module below it, or something that says why it cannot be used."""
    entries = table()
    below = f"{module}.{name}"
    if below in entries:
        return importlib.import_module(f"{PACKAGE}.{below}")
    if name not in entries.get(module, {}):
        raise AttributeError(f"module 'torch.{module}' has no attribute '{name}'")
    kind, reason, members = entries[module][name]
    if kind == "false":
        return no
    if kind == "empty":
        return []
    if kind == "unchanged":
        return unchanged
    if kind == "settings":
        return SimpleNamespace()
    if kind == "none":
        return nothing
    if kind in ("functions", "decorators"):
        error, text = REASONS[reason]
        if kind == "decorators":
            return makes_refused(name, error, text)
        return refusing(name, error, text.format(f"torch.{below}"))
    return _class(name, kind, reason, tuple(members))


def names(module: str) -> list[str]:
    """The names of a module outside, with the modules below it."""
    below = {entry[len(module) + 1:].partition(".")[0] for entry in table() if entry.startswith(module + ".")}
    return sorted({*table().get(module, {}), *below})


def attributes(module: str, own: dict[str, Any]) -> Callable[[str], Any]:
    """A module's `__getattr__`: looks the name up here and keeps it."""

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.{module}' has no attribute '{name}'")
        found = own[name] = attribute(module, name)
        return found

    return __getattr__


class _OutsideLoader(Loader):
    """Makes a module of the table."""

    def create_module(self, spec: ModuleSpec) -> None:
        """The import system's usual module."""
        return

    def exec_module(self, module: ModuleType) -> None:
        """Its names are made when they are asked for."""
        place = module.__name__[len(PACKAGE) + 1:]
        own: Any = module
        own.__doc__ = f"`torch.{place}`: outside of this runtime; its names raise when they are used."
        own.__getattr__ = attributes(place, vars(module))
        own.__dir__ = lambda: names(place)
        own.__all__ = names(place)


class _OutsideFinder(MetaPathFinder):
    """Finds modules of the table; asked last, when there is no file."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec for a module of the table."""
        if not fullname.startswith(PACKAGE + ".") or fullname[len(PACKAGE) + 1:] not in table():
            return None
        return ModuleSpec(fullname, _OutsideLoader(), is_package=True)


FINDER = _OutsideFinder()

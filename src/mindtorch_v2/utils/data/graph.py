"""`torch.utils.data.graph`: which pipes a pipe reads from."""

from __future__ import annotations

import warnings
from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

DataPipe = IterDataPipe | MapDataPipe
DataPipeGraph = dict[int, tuple[Any, Any]]

_CONTAINERS = (list, tuple, set, frozenset)


def _sources(pipe: Any) -> list[Any]:
    """The pipes that a pipe holds: in its attributes, in containers there, in objects that are no pipes."""
    found: dict[int, Any] = {}
    seen: set[int] = {id(pipe)}
    waiting = list(vars(pipe).values())
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        if isinstance(one, (IterDataPipe, MapDataPipe)):
            found[id(one)] = one
        elif isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, _CONTAINERS):
            waiting += one
        elif type(one).__module__.partition(".")[0] == __name__.partition(".")[0] and hasattr(one, "__dict__"):
            waiting += vars(one).values()
    return list(found.values())


def _graph(pipe: Any, above: frozenset[int]) -> dict[int, tuple[Any, Any]]:
    if id(pipe) in above:
        return {}
    inside: dict[int, tuple[Any, Any]] = {}
    for source in _sources(pipe):
        inside.update(_graph(source, above | {id(pipe)}))
    return {id(pipe): (pipe, inside)}


def traverse_dps(datapipe: Any) -> dict[int, tuple[Any, Any]]:
    """A pipe by its id, with the same of the pipes that it reads from.

    >>> from mindtorch_v2.utils.data.datapipes.iter import IterableWrapper
    >>> source = IterableWrapper(range(3))
    >>> mapped = source.map(str)
    >>> traverse_dps(mapped) == {id(mapped): (mapped, {id(source): (source, {})})}
    True
    """
    if not isinstance(datapipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    return _graph(datapipe, frozenset())


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> dict[int, tuple[Any, Any]]:
    """The same, under its old name. `only_datapipe` makes no difference here: only pipes are searched."""
    said = "" if only_datapipe is not None else (
        " And, the behavior will be changed to the equivalent of `only_datapipe=True`.")
    warnings.warn("`traverse` function is deprecated and will be removed after 1.13. Please use `traverse_dps` instead."
                  + said, FutureWarning, stacklevel=2)
    return traverse_dps(datapipe)

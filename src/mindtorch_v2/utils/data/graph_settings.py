"""`torch.utils.data.graph_settings`: shares, order and seeds of all the pipes that a pipe reads from."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from .datapipes.iter.ordering import SHARDING_PRIORITIES
from .graph import traverse_dps
from .sampler import draw_seed

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings",
           "get_all_graph_pipes"]


def get_all_graph_pipes(graph: dict[int, tuple[Any, Any]]) -> list[Any]:
    """Each pipe of a graph once."""
    found: dict[int, Any] = {}

    def collect(part: dict[int, tuple[Any, Any]]) -> None:
        for key, (pipe, inside) in part.items():
            found.setdefault(key, pipe)
            collect(inside)

    collect(graph)
    return list(found.values())


def _has(pipe: Any, *names: str) -> bool:
    """Whether a pipe has these methods."""
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in names)


def _is_sharding_datapipe(datapipe: Any) -> bool:
    return _has(datapipe, "apply_sharding")


def _is_shuffle_datapipe(datapipe: Any) -> bool:
    return _has(datapipe, "set_shuffle", "set_seed")


def _is_random_datapipe(datapipe: Any) -> bool:
    return _has(datapipe, "set_seed")


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int,
                   sharding_group: Any = SHARDING_PRIORITIES.DEFAULT) -> Any:
    """Tell the pipes that divide a stream which share is wanted."""

    def share(graph: dict[int, tuple[Any, Any]], before: Any) -> None:
        for pipe, inside in graph.values():
            applied = before
            if _is_sharding_datapipe(pipe):
                if before is not None:
                    raise RuntimeError("Sharding twice on a single pipeline is likely unintended and will cause data "
                                       f"loss. Sharding already applied to {before} while trying to apply to {pipe}")
                if len(inspect.signature(pipe.apply_sharding).parameters) < 3:
                    pipe.apply_sharding(num_of_instances, instance_id)
                else:
                    pipe.apply_sharding(num_of_instances, instance_id, sharding_group=sharding_group)
                applied = pipe
            share(inside, applied)

    share(traverse_dps(datapipe), None)
    return datapipe


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Switch the pipes that shuffle on or off; one is added where there is none."""
    if shuffle is None:
        return datapipe
    shufflers = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if _is_shuffle_datapipe(pipe)]
    if not shufflers and shuffle:
        warnings.warn("`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. "
                      "Be aware that the default buffer size might not be sufficient for your task.", stacklevel=2)
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for one in shufflers:
        one.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """An older name of `apply_random_seed`."""
    warnings.warn("`apply_shuffle_seed` is deprecated; use `apply_random_seed`", FutureWarning, stacklevel=2)
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Seed all pipes that use random numbers, from one generator."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _is_random_datapipe(pipe):
            pipe.set_seed(draw_seed(rng))
    return datapipe

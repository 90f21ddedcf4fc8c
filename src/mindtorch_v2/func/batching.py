"""`vmap`: a function of single examples as a function of batches.

The function is called once for each example and the results are stacked. PyTorch runs it once, with every op taught the
extra dimension: the results are the same, the time is not, and neither is the order in which `randomness="different"`
draws numbers in ops that fill large tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from .._dispatch.namespace import aten
from .._dispatch.state import THREAD
from .._random import StreamStates
from .._tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten
from .mapped import MAPPED, first_example

RANDOMNESS = ("error", "different", "same")


def check_randomness(randomness: str) -> None:
    """Refuse what `randomness` cannot be."""
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def check_not_drawn(before: StreamStates, randomness: str) -> None:
    """Refuse random numbers where every example would need its own, or all the same."""
    if randomness == "error" and before.were_drawn_from():
        raise RuntimeError("vmap: called random operation while in randomness error mode. Please either use the 'same' "
                           "or 'different' randomness flags on vmap or perform the randomness operation out of vmap")


class _Mismatch(Exception):
    """Dimensions are given in another structure than the values."""


def _spread(given: Any, tree: Any) -> list[Any]:
    """The dimension of every leaf; one that is given for a whole part of the tree holds for all its leaves."""
    if not isinstance(given, (tuple, list, dict)):
        return [given] * len(tree_flatten(tree)[0])
    dims: Any = given
    if type(dims) is not type(tree) or len(dims) != len(tree):
        raise _Mismatch
    if isinstance(dims, dict):
        if dims.keys() != tree.keys():
            raise _Mismatch
        return [one for key in tree for one in _spread(dims[key], tree[key])]
    return [one for part, value in zip(dims, tree, strict=True) for one in _spread(part, value)]


class _Batch:
    """The arguments of one call, example by example."""

    def __init__(self, name: str, in_dims: Any, args: tuple[Any, ...]) -> None:
        call = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
        if not isinstance(in_dims, (int, tuple)):
            raise ValueError(f"{call}expected `in_dims` to be int or a (potentially nested) tuple matching the "
                             f"structure of inputs, got: {type(in_dims)}.")
        if not args:
            raise ValueError(f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are "
                             "trying to vmap over a function with no inputs. The latter is unsupported.")
        self.leaves, self.spec = tree_flatten(args)
        try:
            self.dims = _spread(in_dims, args)
        except _Mismatch:
            raise ValueError(f"{call}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                             f"{tree_flatten(in_dims)[1]} but inputs has structure {self.spec}.") from None
        for leaf, dim in zip(self.leaves, self.dims, strict=True):
            if dim is None:
                continue
            if not isinstance(dim, int):
                raise ValueError(f"{call}Got in_dim={dim} for an input but in_dim must be either an integer dimension "
                                 "or None.")
            if not isinstance(leaf, Tensor):
                raise ValueError(f"{call}Got in_dim={dim} for an input but the input is of type {type(leaf)}. We "
                                 "cannot vmap over non-Tensor arguments, please use None as the respective in_dim")
            if not -leaf.dim() <= dim < leaf.dim():
                raise ValueError(f"{call}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                                 f"{leaf.dim()} so expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}.")
        sizes = [leaf.shape[dim] for leaf, dim in zip(self.leaves, self.dims, strict=True) if dim is not None]
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over: at least one input needs a dimension, "
                             "but all in_dims are None")
        if len(set(sizes)) > 1:
            raise ValueError("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                             f"{sizes} for the mapped dimension")
        self.size = sizes[0]

    def common(self) -> list[Tensor]:
        """The tensors that all examples have in common."""
        return [leaf for leaf, dim in zip(self.leaves, self.dims, strict=True)
                if dim is None and isinstance(leaf, Tensor) and not leaf.is_inference()]

    def mapped(self, example: Any) -> list[Tensor]:
        """The tensors of an example that differ from example to example."""
        return [leaf for leaf, dim in zip(tree_flatten(example)[0], self.dims, strict=True) if dim is not None]

    def examples(self) -> list[Any]:
        """Every example's arguments. Of an empty batch an example of zeros, from which results have their shape."""
        parts = []
        for leaf, dim in zip(self.leaves, self.dims, strict=True):
            if dim is None:
                parts.append([leaf] * max(self.size, 1))
            elif self.size == 0:
                shape = list(leaf.shape)
                del shape[dim]
                parts.append([aten.zeros(shape, dtype=leaf.dtype, device=leaf.device)])
            else:
                parts.append(list(aten.unbind(leaf, dim)))
        return [tree_unflatten(list(one), self.spec) for one in zip(*parts, strict=True)]


def _captured(func: Any) -> list[Tensor]:
    """The tensors in a function's closure."""
    cells = getattr(func, "__closure__", None) or ()
    found = []
    for cell in cells:
        try:
            value = cell.cell_contents
        except ValueError:  # it is not filled yet
            continue
        if isinstance(value, Tensor) and not value.is_inference():
            found.append(value)
    return found


def _one(func: Callable[..., Any], example: Any, kwargs: dict[str, Any]) -> Any:
    """The result for one example."""
    state = THREAD.state
    state.transforms, state.vmaps = state.transforms + 1, state.vmaps + 1
    try:
        return func(*example, **kwargs)
    finally:
        state.transforms, state.vmaps = state.transforms - 1, state.vmaps - 1


def _stacked(name: str, out_dims: Any, results: list[Any], size: int, differ: list[bool]) -> Any:
    """The results of all examples in one, each tensor with a dimension more; `differ` says which are not all equal."""
    flat = [tree_flatten(result) for result in results]
    spec = flat[0][1]
    call = f"vmap({name}, ..., out_dims={out_dims})"
    wanted = out_dims
    if isinstance(results[0], Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        wanted = out_dims[0]
    try:
        dims = _spread(wanted, results[0])
    except _Mismatch:
        raise ValueError(f"{call}(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has "
                         f"structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}.") from None
    if not all(dim is None or isinstance(dim, int) for dim in dims):
        raise ValueError(f"{call}: `out_dims` must be an int, None or a python collection of ints representing where "
                         "in the outputs the vmapped dimension should appear.")
    made = []
    for dim, differs, column in zip(dims, differ, zip(*[leaves for leaves, _ in flat], strict=True), strict=True):
        if dim is None:
            if differs:
                raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
            made.append(column[0])
            continue
        if not isinstance(column[0], Tensor):
            raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(column[0])}. Did "
                             "you mean to set out_dims= to None for output?")
        joined = aten.stack(list(column), dim)
        made.append(joined if size else aten.narrow(joined, dim, 0, 0))
    return tree_unflatten(made, spec)


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable[..., Any]:
    """A function that applies `func` to every slice of its arguments along `in_dims` and stacks the results.

    >>> import mindtorch_v2 as torch
    >>> torch.func.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
    tensor([2., 2., 2.])
    """
    check_randomness(randomness)
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    name = getattr(func, "__name__", repr(func))

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        batch = _Batch(name, in_dims, args)
        before = StreamStates()
        results: list[Any] = []
        differ: list[bool] = []
        common = batch.common() + _captured(func)
        versions = [one._version for one in common]
        for number, example in enumerate(batch.examples()):
            if randomness == "same":
                before.go_on_from_here()
            with nullcontext() if number else first_example(batch.mapped(example)):
                results.append(_one(func, example, kwargs))
                if not number:
                    differ = [isinstance(one, Tensor) and MAPPED.has(one) for one in tree_flatten(results[0])[0]]
            check_not_drawn(before, randomness)
            if [one._version for one in common] != versions:
                raise RuntimeError("vmap: inplace arithmetic(self, *extra_args) is not possible on a tensor that is "
                                   "not mapped over, an argument with in_dims=None or one that the function captures: "
                                   "every example would change it again. Use an out-of-place operation instead.")
        return _stacked(name, out_dims, results, batch.size, differ)

    return wrapper

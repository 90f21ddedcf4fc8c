"""Searching and counting: unique elements, histograms, positions in sorted sequences, membership."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backends.cpu import search as kernels
from .._dispatch.namespace import aten
from .._dispatch.promotion import pretty, result_dtype
from .._dispatch.registry import choose, declare
from .._dtype import int64
from .._tensor import Tensor
from .formulas import NOT_IMPLEMENTED, not_implemented
from .return_types import named

HISTOGRAM = named("histogram", ("hist", "bin_edges"))


def _no_derivative(name: str) -> Any:
    def formula(grad: Tensor) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return {"self": formula}


RETURNS = "(Tensor, Tensor, Tensor)"
declare(f"_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> {RETURNS}",
        cpu=kernels.unique, meta="data", where="f", differentiable=(0,), node="Unique2Backward0",
        grad=_no_derivative("_unique2"))
declare("unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
        f"{RETURNS}", cpu=kernels.unique_dim, meta="data", where="n", differentiable=(0,),
        grad=_no_derivative("unique_dim"))
declare("unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
        f"{RETURNS}", cpu=kernels.unique_consecutive, meta="data", where="n", differentiable=(0,),
        grad=_no_derivative("unique_consecutive"))


def _wanted(found: tuple[Tensor, Tensor, Tensor], return_inverse: bool, return_counts: bool) -> Any:
    if return_inverse:
        return found if return_counts else found[:2]
    return (found[0], found[2]) if return_counts else found[0]


@choose("unique")
def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
           dim: int | None = None) -> Any:
    """The distinct elements, or the distinct slices along a dimension."""
    for name, flag in (("sorted", sorted), ("return_inverse", return_inverse), ("return_counts", return_counts)):
        if type(flag) is not bool:  # `unique(x, 0)` gives no dimension
            raise TypeError(f"_unique2(): argument '{name}' must be bool, not {type(flag).__name__}")
    if dim is None:
        found = aten._unique2(input, sorted, return_inverse, return_counts)
    else:
        found = aten.unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _wanted(found, return_inverse, return_counts)


@choose("unique_consecutive")
def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False,
                       dim: int | None = None) -> Any:
    """The first of every run of equal elements, or of equal slices along a dimension."""
    found = aten.unique_consecutive__default(input, return_inverse, return_counts, dim)
    return _wanted(found, return_inverse, return_counts)


# -- histograms ----------------------------------------------------------------------------------------------------

declare("bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor", cpu=kernels.bincount,
        meta="data", node=NOT_IMPLEMENTED, grad={("self", "weights"): not_implemented("bincount")})
declare("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", cpu=kernels.histc)
declare("histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) "
        "-> (Tensor hist, Tensor bin_edges)", cpu=kernels.histogram, where="n", node=NOT_IMPLEMENTED,
        grad={("self", "weight"): not_implemented("histogram")})
declare("histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> "
        "(Tensor hist, Tensor bin_edges)", cpu=kernels.histogram_edges, where="n", node=NOT_IMPLEMENTED,
        grad={("self", "bins", "weight"): not_implemented("histogram")})


@choose("histogram")
def histogram(input: Tensor, bins: Any = 100, *, range: Any = None, weight: Tensor | None = None,
              density: bool = False, out: Any = None) -> Any:
    """Counts per bin and the edges of the bins, which are equal or given by a tensor."""
    for name, one in (("bins", bins), ("weight", weight)):
        if isinstance(one, Tensor) and one.dtype is not input.dtype:
            raise RuntimeError(f"torch.histogramdd: input tensor and {name} tensor should have the same dtype, but got "
                               f"input with dtype {pretty(input.dtype)} and {name} with dtype {pretty(one.dtype)}")
    result = HISTOGRAM if out is None else HISTOGRAM.written
    if isinstance(bins, Tensor):
        if range is not None:
            raise TypeError("histogram() received an invalid combination of arguments - got (Tensor, Tensor, "
                            "range=tuple): a tensor of edges has its own range")
        return result(aten.histogram__bins_tensor(input, bins, weight=weight, density=density, out=out))
    return result(aten.histogram__bin_ct(input, bins, range=range, weight=weight, density=density, out=out))


# -- sorted sequences ----------------------------------------------------------------------------------------------

declare("searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
        "str? side=None, Tensor? sorter=None) -> Tensor", cpu=kernels.searchsorted, where="n")
declare("bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        cpu=kernels.bucketize, where="n")
declare("isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
        "Tensor", cpu=kernels.isin, where="n")


declare("searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
        "str? side=None, Tensor? sorter=None) -> Tensor", where="n",
        cpu=lambda sequence, value, *rest: kernels.searchsorted(sequence, _beside(value, sequence), *rest))
declare("bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        where="n", cpu=lambda value, edges, *rest: kernels.bucketize(_beside(value, edges), edges, *rest))
declare("isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> "
        "Tensor", where="n",
        cpu=lambda elements, value, *rest: kernels.isin(elements, _sought(value, elements), *rest))
declare("isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
        "Tensor", where="n", cpu=lambda value, tests, *rest: kernels.isin(_sought(value, tests), tests, *rest))


def _beside(value: Any, array: Any) -> Any:
    """A number as a 0-d operand of the dtype it has beside an array."""
    return np.array(value, result_dtype([array], [value]).np)


def _sought(value: Any, array: Any) -> Any:
    """A number to look for; `isin` refuses truth values and complex ones whatever they are beside."""
    return np.asarray(value) if isinstance(value, (bool, complex)) else _beside(value, array)


@choose("searchsorted", where="f")
def searchsorted(sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Tensor | None = None, out: Any = None) -> Tensor:
    """Where values would be inserted to keep the sequence sorted."""
    if sorter is not None and sorter.dtype is not int64:
        raise RuntimeError("torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
                           f"{pretty(sorter.dtype)}")
    form = aten.searchsorted__Tensor if isinstance(input, Tensor) else aten.searchsorted__Scalar
    return form(sorted_sequence, input, out_int32=out_int32, right=right, side=side, sorter=sorter, out=out)


@choose("bucketize", where="f")
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False,
              out: Any = None) -> Tensor:
    """The bucket between boundaries that each value falls into."""
    form = aten.bucketize__Tensor if isinstance(input, Tensor) else aten.bucketize__Scalar
    return form(input, boundaries, out_int32=out_int32, right=right, out=out)


@choose("isin", where="f")
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False,
         out: Any = None) -> Tensor:
    """Whether each element is among the test elements."""
    kinds = tuple("Tensor" if isinstance(t, Tensor) else "Scalar" for t in (elements, test_elements))
    if "Tensor" not in kinds or isinstance(elements, (list, tuple)) or isinstance(test_elements, (list, tuple)):
        raise TypeError("isin() received an invalid combination of arguments - got "
                        f"({type(elements).__name__}, {type(test_elements).__name__})")
    form = getattr(aten, f"isin__{kinds[0]}_{kinds[1]}")
    return form(elements, test_elements, assume_unique=assume_unique, invert=invert, out=out)

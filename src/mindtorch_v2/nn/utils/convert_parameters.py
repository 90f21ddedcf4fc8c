"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ..._dispatch.namespace import aten
from ..._tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters in one vector."""
    found = list(parameters)
    _check_one_device(found)
    return aten.cat([aten.view(parameter, (-1,)) for parameter in found])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make each parameter's data a window of `vec`, in order."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    found = list(parameters)
    _check_one_device(found)
    start = 0
    for parameter in found:
        count = parameter._a.size
        parameter.data = vec[start:start + count].view_as(parameter).data
        start += count


def _check_one_device(parameters: list[Tensor]) -> None:
    if len({str(parameter.device) for parameter in parameters}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")

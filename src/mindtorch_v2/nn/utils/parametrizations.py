"""Ready-made parametrizations."""

from __future__ import annotations

from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._dispatch.namespace import aten
from ..._tensor import Tensor
from .. import functional as F
from ..modules.module import Module
from ._orthogonal import MAPS, _Orthogonal
from .parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        # -1 stands for "no dimension": one length for the whole weight.
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return aten._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return aten.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Any:
    """A parameter as lengths, one for every slice along `dim`, times directions."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_old_names(state_dict: Any, prefix: str, *ignored: Any) -> None:
        # Checkpoints of the hook version call the two parts by other names.
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(from_old_names)
    return module


def _as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight with one dimension first and all others as one."""
    if dim != 0:
        weight = aten.permute(weight, (dim, *(d for d in range(weight.ndim) if d != dim)))
    return aten.flatten(weight, 1)


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = _as_matrix(weight, self.dim)
            drawn = [aten.normal_(matrix.new_empty(size), 0, 1) for size in matrix.shape]
            for name, one in zip(("_u", "_v"), drawn):
                self.register_buffer(name, F.normalize(one, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _power_method(self, matrix: Tensor, iterations: int) -> None:
        with no_grad():
            for _ in range(iterations):
                self._u = F.normalize(aten.mv(matrix, self._v), dim=0, eps=self.eps, out=self._u)
                self._v = F.normalize(aten.mv(matrix.H, self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = _as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies, because the next power iteration changes the buffers in place.
        u, v = aten.clone(self._u), aten.clone(self._v)
        return aten.div(weight, aten.vdot(u, aten.mv(matrix, v)))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Any:
    """A parameter divided by its largest singular value."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        # Transposed convolutions have their outputs in the second dimension.
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True) -> Any:
    """A parameter that stays orthogonal: a matrix, or a batch of them, with orthonormal columns or rows."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.dtype.is_complex else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError('orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: '
                         f"{orthogonal_map}")
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    register_parametrization(module, name, made, unsafe=True)
    return module

"""A parameter that stays orthogonal (or has orthonormal columns or rows)."""

from __future__ import annotations

from typing import Any

from ..._dispatch.namespace import aten
from ..._dtype import finfo
from ..._tensor import Tensor
from ..modules.module import Module

MAPS = ("matrix_exp", "cayley", "householder")


def is_orthogonal(q: Any, eps: float | None = None) -> bool:
    """Whether the columns are orthonormal, up to rounding."""
    n, k = q.size(-2), q.size(-1)
    eps = 10.0 * n * finfo(q.dtype).eps if eps is None else eps
    identity = aten.eye(k, dtype=q.dtype, device=q.device)
    return bool(aten.allclose(aten.matmul(q.mH, q), identity, atol=eps))


def make_orthogonal(a: Any) -> Any:
    """An orthogonal matrix with the same column space: the Q of its QR decomposition, with R's diagonal positive."""
    reflectors, factors = aten.geqrf(a)
    q = aten.linalg_householder_product(reflectors, factors)
    q *= aten.sgn(aten.diagonal(reflectors, 0, -2, -1)).unsqueeze(-2)
    return q


class _Orthogonal(Module):
    """From any matrix to an orthogonal one, through a skew-symmetric matrix or through reflections."""

    base: Tensor

    def __init__(self, weight: Any, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.dtype.is_complex and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Any) -> Any:
        """The orthogonal matrix."""
        wide = x.size(-2) < x.size(-1)
        x = x.mT if wide else x
        n, k = x.size(-2), x.size(-1)
        if self.orthogonal_map == "householder":
            below = x.tril(-1)
            factors = 2.0 / (1.0 + (below * below).sum(-2))
            q = aten.linalg_householder_product(below, factors)
            # The diagonal holds signs, which make the map onto all orthogonal matrices.
            q = q * aten.trunc(aten.detach(aten.diagonal(x, 0, -2, -1))).unsqueeze(-2)
        else:
            x = x.tril()
            if n != k:
                x = aten.cat([x, aten.zeros((*x.shape[:-2], n, n - k), dtype=x.dtype, device=x.device)], -1)
            skew = x - x.mH
            if self.orthogonal_map == "matrix_exp":
                q = aten.matrix_exp(skew)
            else:
                identity = aten.eye(n, dtype=skew.dtype, device=skew.device)
                q = aten.linalg_solve(identity - 0.5 * skew, identity + 0.5 * skew)
            q = q[..., :k] if n != k else q
        if "base" in self._buffers:
            q = aten.matmul(self.base, q)
        return q.mT if wide else q

    def right_inverse(self, value: Any) -> Any:
        """The input for which forward gives `value`; with a trivialization, the base changes to bring it near zero."""
        if value.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape "
                             f"{value.shape}.")
        wide = value.size(-2) < value.size(-1)
        q = value.mT if wide else value
        n, k = q.size(-2), q.size(-1)
        if "base" not in self._buffers:
            if self.orthogonal_map != "householder":
                raise NotImplementedError("It is not possible to assign to the matrix exponential or the Cayley "
                                          "parametrizations when use_trivialization=False.")
            reflectors, factors = aten.geqrf(q)
            signs = aten.diagonal(reflectors, 0, -2, -1)
            signs.sign_()
            signs[factors == 0.0] *= -1
            return reflectors.mT if wide else reflectors
        if n == k:
            q = q.clone() if is_orthogonal(q) else make_orthogonal(q)
        else:
            rest = aten.randn((*q.shape[:-2], n, n - k), dtype=q.dtype, device=q.device)
            q = make_orthogonal(aten.cat([q, rest], -1))
        self.base = q
        start = aten.zeros_like(value)
        aten.diagonal(start, 0, -2, -1).fill_(-1.0)
        return start

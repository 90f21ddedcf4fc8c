"""`torch.lobpcg`: some of the largest or smallest eigenvalues of a symmetric matrix, which may be sparse.

The locally optimal block method improves a block of vectors X step by step: the next block is the best one among the
combinations of X, its residuals and the last step. Only products with the matrix are needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from . import _linalg_utils as _utils
from ._autograd.function import Function
from ._dispatch.namespace import aten
from ._dispatch.state import THREAD
from ._dtype import float32, float64
from ._tensor import Tensor

__all__ = ["lobpcg"]

EPSILON = {float32: 1.2e-07, float64: 2.23e-16}


class LOBPCG:
    """The state of an iteration; a tracker sees it after each step."""

    def __init__(self, A: Tensor, B: Tensor | None, X: Tensor, iK: Tensor | None, iparams: dict[str, int],
                 fparams: dict[str, float], bparams: dict[str, bool], method: str,
                 tracker: Callable[[Any], None] | None) -> None:
        self.A, self.B, self.iK, self.X, self.method, self.tracker = A, B, iK, X, method, tracker
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        count = iparams["n"]
        self.ivars: dict[str, int] = {"istep": 0, "converged_end": 0, "converged_count": 0,
                                      "iterations_left": iparams["niter"]}
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {"force_stop": False}
        self.tvars: dict[str, Tensor] = {}
        self.E = aten.zeros((count,), dtype=X.dtype, device=X.device)
        self.R = aten.zeros_like(X)
        self.S = aten.cat([X, aten.zeros_like(X), aten.zeros_like(X)], 1)

    def run(self) -> None:
        """Iterate until enough pairs have converged."""
        step: Tensor | None = None
        self._take(self._orthonormal(self.X))
        self.fvars.update({f"{name}_norm": self._norm(matrix) for name, matrix in (("A", self.A), ("B", self.B))})
        self.fvars["X_norm"] = float(aten.linalg_norm(self.X))
        self._measure()
        while not self._done():
            before = self.X
            found = _utils.matmul(self.iK, self.R)
            parts = [before, found] if step is None else [before, found, step]
            # S shows all three parts, in the order X, last step, residuals.
            self.S = aten.cat([before, aten.zeros_like(before) if step is None else step, found], 1)
            self._take(self._basis(parts))
            step = aten.sub(self.X, aten.matmul(before, _utils.bform(before, self.B, self.X)))
            self.ivars["istep"] += 1
            self.ivars["iterations_left"] -= 1
            self._measure()
            if self.tracker is not None:
                self.tracker(self)

    def _done(self) -> bool:
        limit = self.iparams["niter"]
        return (self.bvars["force_stop"] or self.ivars["converged_count"] >= self.iparams["k"]
                or (limit >= 0 and self.ivars["istep"] >= limit))

    def _norm(self, matrix: Tensor | None) -> float:
        """An estimate of a matrix' size, from what it makes of X."""
        return float(aten.linalg_norm(_utils.matmul(matrix, self.X)) / aten.linalg_norm(self.X))

    def _take(self, columns: Tensor) -> None:
        """The best block among the combinations of orthonormal columns."""
        values, turned = _utils.symeig(_utils.qform(self.A, columns), self.bparams["largest"])
        count = self.iparams["n"]
        self.E, self.X = aten.narrow(values, 0, 0, count), aten.matmul(columns, aten.narrow(turned, 1, 0, count))

    def _measure(self) -> None:
        """Residuals, and how many of the first pairs have converged."""
        self.R = aten.sub(_utils.matmul(self.A, self.X), aten.mul(_utils.matmul(self.B, self.X), self.E))
        sizes = self.fvars["A_norm"] + aten.abs(self.E) * self.fvars["B_norm"]
        error = aten.linalg_vector_norm(self.R, 2, (0,)) / (aten.linalg_vector_norm(self.X, 2, (0,)) * sizes)
        self.tvars["rerr"] = error
        good = aten.cumprod(aten.to(error < self.fparams["tol"], self.X.dtype), 0)
        self.ivars["converged_count"] = self.ivars["converged_end"] = int(aten.sum(good))

    def _orthonormal(self, columns: Tensor) -> Tensor:
        """A basis of the columns that is orthonormal with B; directions that are nothing but rounding are dropped."""
        for _ in range(2):
            inner = _utils.qform(self.B, columns)
            size = aten.sqrt(aten.diagonal(inner))
            kept = aten.nonzero(size > 0)[:, 0]
            columns, size = aten.index_select(columns, 1, kept) / size[kept], size[kept]
            inner = inner[kept][:, kept] / aten.unsqueeze(size, 1) / size
            values, vectors = _utils.symeig(inner)
            kept = aten.nonzero(values > EPSILON[columns.dtype] * len(values) * values[-1])[:, 0]
            columns = aten.matmul(columns, vectors[:, kept] / aten.sqrt(values[kept]))
        return columns

    def _basis(self, parts: list[Tensor]) -> Tensor:
        """X and, orthogonal to it, the directions in which it may move."""
        first, rest = parts[0], aten.cat(parts[1:], 1)
        for _ in range(2):
            rest = aten.sub(rest, aten.matmul(first, _utils.bform(first, self.B, rest)))
            if not int(aten.sum(aten.linalg_vector_norm(rest, 2, (0,)) > 0)):
                return first
            rest = self._orthonormal(rest)
        return self._orthonormal(aten.cat([first, rest], 1))


class LOBPCGAutogradFunction(Function):
    """Eigenpairs with a gradient, which the decomposition of the whole matrix gives."""

    @staticmethod
    def forward(ctx: Any, A: Tensor, largest: bool, solve: Callable[[], tuple[Tensor, Tensor]]) -> Any:
        """Find the pairs."""
        values, vectors = solve()
        ctx.save_for_backward(A, values, vectors)
        ctx.largest = largest
        return values, vectors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """As of all eigenpairs, for those that were found."""
        grad_values, grad_vectors = grads
        A, values, vectors = ctx.saved_tensors
        if _utils.is_sparse(A):
            raise ValueError("lobpcg.backward does not support sparse input yet. Note that lobpcg.forward does though.")
        everything, basis = _utils.symeig(A, ctx.largest)
        inner = aten.matmul(aten.transpose(basis, -2, -1), grad_vectors)
        gaps = aten.unsqueeze(values, -2) - aten.unsqueeze(everything, -1)
        own = aten.eye(A.shape[-1], values.shape[-1], dtype=A.dtype, device=A.device)
        inner = inner / (gaps + own) * (1 - own)
        turned = aten.transpose(vectors, -2, -1)
        made = aten.matmul(vectors * aten.unsqueeze(grad_values, -2), turned)
        return aten.add(made, aten.matmul(basis, aten.matmul(inner, turned))), None, None


def _check(A: Tensor, X: Tensor | None, n: int) -> None:
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if A.dtype not in EPSILON:
        raise RuntimeError(f"lobpcg: A must be of dtype float32 or float64, got {A.dtype}")
    rows = A.shape[-1]
    if rows < 3 * n:
        raise ValueError(f"LOBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller than 3 x "
                         f"the number of requested eigenpairs (={n})")
    if X is not None and X.shape[-2:] != (rows, n):
        raise AssertionError(f"X shape mismatch: got {X.shape}, expected {(rows, n)}")


def _sources(A: Tensor, B: Tensor | None) -> bool:
    """Whether a gradient is needed, and possible."""
    if not THREAD.state.grad or not (A.requires_grad or (B is not None and B.requires_grad)):
        return False
    if B is not None:
        raise ValueError("lobpcg.backward does not support backward with B != I yet.")
    return True


def lobpcg(A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None,
           iK: Tensor | None = None, niter: int | None = None, tol: float | None = None, largest: bool | None = None,
           method: str | None = None, tracker: Callable[[Any], None] | None = None,
           ortho_iparams: dict[str, int] | None = None, ortho_fparams: dict[str, float] | None = None,
           ortho_bparams: dict[str, bool] | None = None) -> tuple[Tensor, Tensor]:
    """The `k` largest or smallest eigenvalues of a symmetric matrix, with B of `A x = e B x`, and their vectors.

    Both methods orthonormalize in the same way here, so `method` and the `ortho_` parameters change nothing.
    """
    wanted = 1 if k is None else k
    if wanted < 1:
        raise ValueError(f"lobpcg: k must be positive, got {wanted}")
    count = n if n is not None else wanted if X is None else X.shape[-1]
    _check(A, X, count)
    with_largest = True if largest is None else largest
    whole = A
    if _sources(A, B) and not _utils.is_sparse(A):
        whole = aten.div(aten.add(A, aten.transpose(A, -2, -1)), 2)

    iparams = {"m": A.shape[-1], "n": count, "k": wanted, "niter": 1000 if niter is None else niter,
               **(ortho_iparams or {})}
    fparams = {"tol": EPSILON[A.dtype] ** 0.5 if tol is None else tol, **(ortho_fparams or {})}
    bparams = {"largest": with_largest, **(ortho_bparams or {})}

    def solve() -> tuple[Tensor, Tensor]:
        batch = A.shape[:-2]
        given = aten.randn((*batch, A.shape[-1], count), dtype=A.dtype, device=A.device) if X is None else X

        def one(at: tuple[int, ...]) -> tuple[Tensor, Tensor]:
            parts: list[Any] = [m if m is None else aten.detach(m)[at] if at else aten.detach(m)
                                for m in (whole, B, given, iK)]
            worker = LOBPCG(parts[0], parts[1], parts[2], parts[3], iparams, fparams, bparams, method or "ortho",
                            tracker)
            worker.run()
            return worker.E[:wanted], worker.X[:, :wanted]

        if not batch:
            return one(())
        pairs = [one(at) for at in itertools.product(*map(range, batch))]
        return tuple(aten.reshape(aten.stack(list(members)), (*batch, *members[0].shape))  # type: ignore[return-value]
                     for members in zip(*pairs, strict=True))

    if whole.requires_grad and THREAD.state.grad:
        values, vectors = LOBPCGAutogradFunction.apply(whole, with_largest, solve)
        return values, vectors
    return solve()

"""LU and Cholesky factors, triangular systems, eigenvalues, exponentials, reflections and tensor equations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from harness import check, check_error, data, ours, theirs, values

# (PyTorch warns that torch.lu, lu_solve and triangular_solve have successors.)
pytestmark = pytest.mark.filterwarnings("ignore:torch.*deprecated:UserWarning")
DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 3), (2, 1, 4, 3), (1, 1)]


def loose(dtype):
    return 2e-3 if dtype in ("float32", "complex64") else 1e-9


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(dtype, shape):
    second = shape[-1] == shape[-2]
    check(lambda torch, a: torch.linalg.lu(a), data(*shape, dtype=dtype), tolerance=loose(dtype), second=second)
    check(lambda torch, a: tuple(torch.linalg.lu_factor(a)), data(*shape, dtype=dtype), tolerance=loose(dtype),
          second=second)
    check(lambda torch, a: tuple(torch.linalg.lu_factor_ex(a)), data(*shape, dtype=dtype), tolerance=loose(dtype),
          second=False)
    check(lambda torch, a: torch.lu_unpack(*torch.linalg.lu_factor(a)), data(*shape, dtype=dtype),
          tolerance=loose(dtype), second=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40, 40), (3, 33, 33)])
def test_large_matrices(dtype, shape):
    """From some size on, a determinant is a call of LAPACK, and float32 is not computed in double precision."""
    given, right = data(*shape, dtype=dtype), data(*shape[:-1], 3, dtype=dtype, seed=1)
    for function in (lambda linalg, a, b: linalg.inv(a) @ b, lambda linalg, a, b: linalg.solve(a, b),
                     lambda linalg, a, b: linalg.slogdet(a)[1], lambda linalg, a, b: linalg.det(a / 4)):
        check(lambda torch, a, b, function=function: function(torch.linalg, a, b), given, right,
              tolerance=loose(dtype), second=False)


def test_determinants_of_hard_matrices():
    singular, infinite = np.ones((40, 40)), np.full((40, 40), np.nan)
    exchanged = np.roll(np.eye(41), 1, axis=0)
    for matrix in (singular, infinite, exchanged, exchanged[:40, :40], np.zeros((2, 40, 40))):
        check(lambda torch, a: (torch.linalg.det(a), *torch.linalg.slogdet(a)), values(matrix), grad=False)
    for function, matrix in ((lambda torch, a: torch.linalg.inv(a), singular),
                             (lambda torch, a: torch.linalg.solve(a, a), np.zeros((2, 40, 40)))):
        said = []
        for torch in (ours, theirs):
            with pytest.raises(torch.linalg.LinAlgError) as raised:
                function(torch, torch.tensor(matrix))
            said.append(str(raised.value))
        assert said[0] == said[1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40, 40), (2, 5, 3), (3, 5)])
def test_elimination_without_lapack(monkeypatch, dtype, shape):
    """Without access to NumPy's LAPACK, the results are the same."""
    monkeypatch.setattr("mindtorch_v2._backends.cpu.blas.lapack", lambda name: None)
    check(lambda torch, a: tuple(torch.linalg.lu_factor(a)), data(*shape, dtype=dtype), tolerance=loose(dtype),
          second=False)
    if shape[-1] == shape[-2]:
        check(lambda torch, a: torch.linalg.det(a / 4), data(*shape, dtype=dtype), tolerance=loose(dtype), second=False)


def test_lu_without_pivoting():
    check_error(lambda torch, a: torch.linalg.lu(a, pivot=False), data(2, 2))
    check_error(lambda torch, a: torch.linalg.lu_factor(a, pivot=False), data(2, 2))


def test_lu_names_and_flags():
    check(lambda torch, a: torch.lu(a), data(3, 3), nodes=False)
    check(lambda torch, a: a.lu(get_infos=True), data(3, 3), nodes=False)
    check(lambda torch, a: torch.lu_unpack(*torch.linalg.lu_factor(a), unpack_data=False)[0], data(3, 3), grad=False)
    check(lambda torch, a: torch.linalg.lu_factor_ex(a).info, values([[1.0, 2.0], [2.0, 4.0]]), grad=False)
    for torch in (ours, theirs):
        made = torch.linalg.lu(torch.eye(2))
        assert type(made).__name__ == "linalg_lu"
        assert made.P.shape == made.L.shape == made.U.shape
    check_error(lambda torch, a: torch.linalg.lu_factor(a), values([[0.0, 0.0], [0.0, 0.0]]))
    check_error(lambda torch, a: torch.linalg.lu(a), data(3))
    check_error(lambda torch, a: torch.linalg.lu(a), data(3, 3, dtype="int64"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(dtype, left, adjoint):
    b = data(2, 3, 2, dtype=dtype) if left else data(2, 2, 3, dtype=dtype)
    check(lambda torch, a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, left=left, adjoint=adjoint),
          data(2, 3, 3, dtype=dtype), b, tolerance=loose(dtype), nodes=False, second=False)
    if left and not adjoint:
        check(lambda torch, a, b: torch.lu_solve(b, *torch.linalg.lu_factor(a)), data(3, 3, dtype=dtype),
              data(3, 2, dtype=dtype), tolerance=loose(dtype), nodes=False, second=False)
        check(lambda torch, a, b: b.lu_solve(*torch.linalg.lu_factor(a)), data(3, 3, dtype=dtype),
              data(3, 2, dtype=dtype), tolerance=loose(dtype), nodes=False, grad=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 5, 20])
def test_cholesky_of_nan(dtype, size):
    def given(torch):
        a = torch.eye(size, dtype=getattr(torch, dtype))
        a[size // 2, size // 2] = math.nan
        return a

    for torch in (ours, theirs):
        with pytest.raises(torch.linalg.LinAlgError, match=rf"leading minor of order {size // 2 + 1} is not"):
            torch.linalg.cholesky(given(torch))
    check(lambda torch: torch.linalg.cholesky_ex(given(torch))[1], grad=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_solve_triangular(dtype, upper, left, unit):
    b = (3, 2) if left else (2, 3)
    check(lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit),
          data(3, 3, dtype=dtype, low=0.5), data(*b, dtype=dtype), tolerance=loose(dtype))
    check(lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit),
          data(4, 3, 3, dtype=dtype, low=0.5), data(2, 1, *b, dtype=dtype), tolerance=loose(dtype), second=False)
    if left:
        check(lambda torch, a, b: torch.triangular_solve(b, a, upper=upper, transpose=True, unitriangular=unit),
              data(3, 3, dtype=dtype, low=0.5), data(*b, dtype=dtype), tolerance=loose(dtype), nodes=False,
              second=False)


def test_solve_triangular_edges():
    check(lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=True), values([[0.0, 1.0], [0.0, 2.0]]),
          values([[1.0], [4.0]]), grad=False)
    check(lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=False), values([[1.0, 0.0], [3.0, 0.0]]),
          values([[1.0], [4.0]]), grad=False)
    check_error(lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=True), data(3, 3), data(2, 2))
    check_error(lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=True), data(3, 2), data(2, 2))
    with pytest.raises(RuntimeError, match="same dtype"):
        ours.linalg.solve_triangular(ours.eye(2), ours.ones(2, 1, dtype=ours.float64), upper=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [True, False])
def test_cholesky_solve_and_inverse(dtype, upper):
    def factor(torch, a):
        return torch.linalg.cholesky(a @ a.mH + 3 * torch.eye(3, dtype=a.dtype), upper=upper)

    check(lambda torch, a, b: torch.cholesky_solve(b, factor(torch, a), upper=upper), data(2, 3, 3, dtype=dtype),
          data(2, 3, 2, dtype=dtype), tolerance=loose(dtype))
    check(lambda torch, a: torch.cholesky_inverse(factor(torch, a), upper), data(2, 3, 3, dtype=dtype),
          tolerance=loose(dtype))
    check(lambda torch, a, b: b.cholesky_solve(factor(torch, a), upper), data(3, 3, dtype=dtype),
          data(3, 1, dtype=dtype), tolerance=loose(dtype), second=False)
    check_error(lambda torch, a, b: torch.cholesky_solve(b, a), data(3, 3), data(2, 2))
    check_error(lambda torch, a: torch.cholesky_inverse(a), data(3, 2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig(dtype):
    check(lambda torch, a: torch.linalg.eig(a).eigenvalues, data(4, 4, dtype=dtype), tolerance=loose(dtype))
    check(lambda torch, a: torch.linalg.eigvals(a), data(2, 3, 3, dtype=dtype), tolerance=loose(dtype), second=False)

    def without_phase(torch, a):
        values_, vectors = torch.linalg.eig(a)
        return values_, vectors.abs()

    check(without_phase, data(3, 3, dtype=dtype, seed=4), tolerance=loose(dtype), nodes=False)
    check_error(lambda torch, a: torch.linalg.eig(a), data(3, 2, dtype=dtype))
    check_error(lambda torch, a: torch.linalg.eig(a), values([[math.inf, 0.0], [0.0, 1.0]], dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [0.01, 1.0, 6.0])
def test_matrix_exp(dtype, scale):
    check(lambda torch, a: torch.linalg.matrix_exp(a * scale), data(2, 3, 3, dtype=dtype), second=scale < 2,
          tolerance=loose(dtype))
    check(lambda torch, a: torch.matrix_exp(a * scale), data(1, 1, dtype=dtype), second=False, tolerance=loose(dtype))
    check(lambda torch, a: a.matrix_exp(), data(0, 0, dtype=dtype), grad=False)
    check_error(lambda torch, a: torch.matrix_exp(a), data(2, 3, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (2, 5, 2)])
def test_reflections(dtype, shape):
    def factored(torch, a):
        made = torch.geqrf(a.detach())
        return made.a, made.tau

    check(lambda torch, a: factored(torch, a), data(*shape, dtype=dtype), grad=False, tolerance=loose(dtype))
    check(lambda torch, a: torch.linalg.householder_product(*factored(torch, a)), data(*shape, dtype=dtype), grad=False,
          tolerance=loose(dtype))
    check(lambda torch, a, t: torch.orgqr(a, t), data(*shape, dtype=dtype), data(*shape[:-2], shape[-1], dtype=dtype),
          nodes=False, second=False, tolerance=loose(dtype))
    for left in (True, False):
        for transpose in (True, False):
            rows = shape[-2]
            other = (*shape[:-2], rows, 2) if left else (*shape[:-2], 2, rows)
            check(lambda torch, a, c, left=left, transpose=transpose: torch.ormqr(
                *factored(torch, a), c, left, transpose), data(*shape, dtype=dtype), data(*other, dtype=dtype),
                grad=False, tolerance=loose(dtype))


def test_reflection_errors():
    check_error(lambda torch, a, t: torch.linalg.householder_product(a, t), data(2, 3), data(2))
    check_error(lambda torch, a, t: torch.linalg.householder_product(a, t), data(3, 2), data(3))
    check_error(lambda torch, a: torch.geqrf(a), data(3))
    a = ours.ones(2, 2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="geqrf"):
        ours.geqrf(a).tau.sum().backward()


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, math.inf, -math.inf, "fro", "nuc"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cond(p, dtype):
    # (PyTorch 2.13 cannot differentiate the others: it changes a saved tensor in place.)
    check(lambda torch, a: torch.linalg.cond(a, p), data(2, 3, 3, dtype=dtype), tolerance=loose(dtype), second=False,
          nodes=False, grad=p in (None, 2, -2))
    if p in (None, 2, -2):
        check(lambda torch, a: torch.linalg.cond(a, p), data(4, 2, dtype=dtype), tolerance=loose(dtype), second=False,
              nodes=False)
    else:
        check_error(lambda torch, a: torch.linalg.cond(a, p), data(4, 2, dtype=dtype))
    check_error(lambda torch, a: torch.linalg.cond(a, 3), data(3, 3))
    check(lambda torch, a: torch.linalg.cond(a, 1), values([[1.0, 1.0], [1.0, 1.0]]), grad=False)


def test_small_functions():
    check(lambda torch, a: torch.linalg.diagonal(a), data(2, 3, 4))
    check(lambda torch, a: torch.linalg.diagonal(a, offset=1, dim1=0, dim2=1), data(2, 3, 4))
    for dtype in DTYPES:
        check(lambda torch, x, y: torch.linalg.vecdot(x, y), data(2, 3, dtype=dtype), data(3, dtype=dtype),
              nodes=False, tolerance=loose(dtype))
        check(lambda torch, x, y: torch.linalg.vecdot(x, y, dim=0), data(2, 3, dtype=dtype), data(2, 3, dtype=dtype),
              nodes=False, tolerance=loose(dtype))
    check_error(lambda torch, x, y: torch.linalg.vecdot(x, y), data(2, dtype="int64"), data(2, dtype="int64"))
    for dtype in (*DTYPES, "int64"):
        check(lambda torch, x: torch.linalg.vander(x), data(2, 3, dtype=dtype), nodes=False, tolerance=loose(dtype))
        check(lambda torch, x: torch.linalg.vander(x, N=5), data(3, dtype=dtype), nodes=False, tolerance=loose(dtype))
        # (PyTorch cannot differentiate this one.)
        check(lambda torch, x: torch.vander(x), data(4, dtype=dtype), grad=False, tolerance=loose(dtype))
        check(lambda torch, x: torch.vander(x, N=3, increasing=True), data(4, dtype=dtype), grad=False,
              tolerance=loose(dtype))
    check_error(lambda torch, x: torch.vander(x), data(2, 2))
    check_error(lambda torch, x, y: torch.linalg.vecdot(x, y), data(2, 2), data(2, 3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensor_equations(dtype):
    check(lambda torch, a: torch.linalg.tensorinv(a), data(2, 3, 6, dtype=dtype), nodes=False, tolerance=loose(dtype))
    check(lambda torch, a: torch.linalg.tensorinv(a, ind=1), data(6, 3, 2, dtype=dtype), nodes=False,
          tolerance=loose(dtype))
    check(lambda torch, a, b: torch.linalg.tensorsolve(a, b), data(2, 3, 6, dtype=dtype), data(2, 3, dtype=dtype),
          nodes=False, tolerance=loose(dtype))
    check(lambda torch, a, b: torch.linalg.tensorsolve(a, b, dims=(0, 2)), data(3, 4, 4, 3, dtype=dtype),
          data(4, 3, dtype=dtype), nodes=False, tolerance=loose(dtype), second=False)
    check_error(lambda torch, a: torch.linalg.tensorinv(a), data(2, 3, 5, dtype=dtype))
    check_error(lambda torch, a: torch.linalg.tensorinv(a, ind=0), data(2, 3, 6, dtype=dtype))
    check_error(lambda torch, a, b: torch.linalg.tensorsolve(a, b), data(2, 3, 6, dtype=dtype), data(2, 2, dtype=dtype))


def test_solve_ex():
    check(lambda torch, a, b: tuple(torch.linalg.solve_ex(a, b)), data(2, 3, 3), data(2, 3, 1), nodes=False,
          tolerance=1e-3)
    check(lambda torch, a, b: torch.linalg.solve_ex(a, b).info, values([[1.0, 2.0], [2.0, 4.0]]), data(2, 1),
          grad=False)
    for torch in (ours, theirs):
        with pytest.raises(torch.linalg.LinAlgError, match="singular"):
            torch.linalg.solve_ex(torch.ones(2, 2), torch.ones(2, 1), check_errors=True)


@pytest.mark.parametrize("shape", [(8, 5), (5, 8), (2, 7, 6)])
def test_low_rank(shape):
    def run(torch, a):
        torch.manual_seed(3)
        u, s, v = torch.svd_lowrank(a, q=4)
        torch.manual_seed(3)
        p, t, q = torch.pca_lowrank(a, q=3)
        return (u * s.unsqueeze(-2)) @ v.mT, s, (p * t.unsqueeze(-2)) @ q.mT, t

    check(run, data(*shape, dtype="float64"), grad=False, tolerance=1e-8)
    check_error(lambda torch, a: torch.pca_lowrank(a, q=9), data(4, 4))


@pytest.mark.parametrize("name", ["hfft2", "hfftn", "ihfft2", "ihfftn"])
@pytest.mark.parametrize("norm", [None, "forward", "ortho", "backward"])
def test_hermitian_transforms(name, norm):
    dtype = "float64" if name.startswith("ih") else "complex128"
    check(lambda torch, x: getattr(torch.fft, name)(x, norm=norm), data(3, 4, 6, dtype=dtype), tolerance=1e-9,
          nodes=False)
    check(lambda torch, x: getattr(torch.fft, name)(x, s=(3, 5), norm=norm), data(3, 4, 6, dtype=dtype),
          tolerance=1e-9, nodes=False)
    check(lambda torch, x: getattr(torch.fft, name)(x, dim=(0, 1), norm=norm), data(3, 4, 6, dtype=dtype),
          tolerance=1e-9, nodes=False)
    check(lambda torch, x: getattr(torch.fft, name)(x, norm=norm), data(4, 6), tolerance=1e-4, nodes=False)
    if name.startswith("ih"):
        check_error(lambda torch, x: getattr(torch.fft, name)(x), data(3, 4, dtype="complex64"))


def test_tests_are_not_vacuous():
    assert not np.allclose(ours.linalg.matrix_exp(ours.eye(2)).numpy(), np.eye(2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [True, False])
def test_ldl(dtype, hermitian):
    def solved(torch, a, b):
        a = a + (a.mH if hermitian else a.mT)
        return torch.linalg.ldl_solve(*torch.linalg.ldl_factor(a, hermitian=hermitian), b, hermitian=hermitian)

    check(solved, data(2, 4, 4, dtype=dtype), data(2, 4, 3, dtype=dtype), tolerance=loose(dtype), grad=False)
    check(lambda torch, a: torch.linalg.ldl_factor_ex(a), data(3, 5, 5, dtype=dtype), tolerance=loose(dtype),
          grad=False)
    check_error(lambda torch, a: torch.linalg.ldl_factor(a), data(3, 2, dtype=dtype))
    check_error(lambda torch, a: torch.linalg.ldl_solve(a, torch.tensor([1, 2]), a), data(3, 3, dtype=dtype))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("library", [True, False])
def test_products_of_reflections(left, transpose, library, monkeypatch):
    if not library:
        monkeypatch.setattr("mindtorch_v2._backends.cpu.lapack.has", lambda name, dtype: False)
    for dtype in ("float64", "complex128"):
        check(lambda torch, a, tau, b: torch.ormqr(a, tau, b, left, transpose), data(2, 4, 3, dtype=dtype),
              data(2, 3, dtype=dtype), data(2, 4, 4, dtype=dtype))
        check(lambda torch, a, tau: torch.linalg.householder_product(a, tau), data(2, 4, 3, dtype=dtype),
              data(2, 2, dtype=dtype))


@pytest.mark.parametrize("library", [True, False])
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares_by_each_driver(driver, library, monkeypatch):
    if not library:
        monkeypatch.setattr("mindtorch_v2._backends.cpu.lapack.has", lambda name, dtype: False)
    for dtype in DTYPES:
        for shape in ((5, 3), (3, 5), (2, 4, 4), (2, 40, 30)):
            check(lambda torch, a, b: torch.linalg.lstsq(a, b, driver=driver), data(*shape, dtype=dtype),
                  data(*shape[:-1], 2, dtype=dtype), tolerance=loose(dtype), second=False)


def test_determinant_of_a_singular_matrix():
    import mindtorch_v2 as torch

    for content in ([[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]):
        for dtype in (torch.float64, torch.complex128):
            a = torch.tensor(content, dtype=dtype, requires_grad=True)
            assert torch.autograd.gradcheck(torch.linalg.det, a)

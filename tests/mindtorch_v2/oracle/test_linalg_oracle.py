"""Linear algebra against PyTorch."""

from __future__ import annotations

import pytest
from harness import check, check_error, data, ours, theirs, values

DTYPES = ["float32", "float64", "complex64", "complex128"]
LOOSE = {"float32": 2e-3, "complex64": 2e-3, "float64": 1e-8, "complex128": 1e-8}
SQUARE = [(3, 3), (2, 3, 3), (1, 1)]


def well(torch, x):
    """A matrix that is far from singular."""
    return x + 5 * torch.eye(x.shape[-1], dtype=x.dtype)


def positive(torch, x):
    """A positive definite matrix."""
    return x @ x.mH + 2 * torch.eye(x.shape[-1], dtype=x.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize("name", ["inv", "det"])
def test_inverse_and_determinant(name, shape, dtype):
    check(lambda torch, x: getattr(torch.linalg, name)(well(torch, x)), data(*shape, dtype=dtype),
          tolerance=LOOSE[dtype] * (30 if name == "det" else 1), second=shape != (1, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_slogdet(shape, dtype):
    check(lambda torch, x: torch.linalg.slogdet(well(torch, x)), data(*shape, dtype=dtype), tolerance=LOOSE[dtype])


@pytest.mark.parametrize("name", ["inverse", "det", "slogdet", "logdet"])
def test_names_in_the_main_namespace(name):
    given = data(3, 3, dtype="float64")
    check(lambda torch, x: getattr(torch, name)(well(torch, x)), given)
    check(lambda torch, x: getattr(well(torch, x), name)(), given)


def test_logdet_of_a_negative_determinant_is_nan():
    check(lambda torch, x: torch.logdet(x), values([[-1.0, 0.0], [0.0, 1.0]]), grad=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("a", "b"), [((3, 3), (3, 2)), ((3, 3), (3,)), ((2, 3, 3), (2, 3, 1)), ((2, 3, 3), (2, 3)),
                                      ((2, 3, 3), (3, 4)), ((3, 3), (2, 3, 4))])
def test_solve(a, b, dtype):
    check(lambda torch, x, y: torch.linalg.solve(well(torch, x), y), data(*a, dtype=dtype),
          data(*b, dtype=dtype, seed=1), tolerance=LOOSE[dtype])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_solve_from_the_right(dtype):
    check(lambda torch, x, y: torch.linalg.solve(well(torch, x), y, left=False).resolve_conj(),
          data(3, 3, dtype=dtype), data(2, 3, dtype=dtype, seed=1), nodes=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", SQUARE)
def test_cholesky(shape, upper, dtype):
    check(lambda torch, x: torch.linalg.cholesky(positive(torch, x), upper=upper), data(*shape, dtype=dtype),
          tolerance=LOOSE[dtype], nodes=not upper)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 4, 3)])
def test_qr(shape, dtype):
    check(lambda torch, x: torch.linalg.qr(x), data(*shape, dtype=dtype), tolerance=LOOSE[dtype] * 10,
          second=dtype == "float64")


@pytest.mark.parametrize("mode", ["r", "complete"])
def test_other_modes_of_qr(mode):
    check(lambda torch, x: torch.linalg.qr(x, mode=mode), data(4, 2, dtype="float64"), grad=False)


def gauge_free(torch, u, s, vh):
    """What does not depend on the sign or phase of singular vectors."""
    return s, u.abs(), (u * s.unsqueeze(-2).to(u.dtype)) @ vh


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 4, 3)])
def test_svd(shape, dtype):
    check(lambda torch, x: gauge_free(torch, *torch.linalg.svd(x, full_matrices=False)), data(*shape, dtype=dtype),
          tolerance=LOOSE[dtype] * 10, second=dtype == "float64")


@pytest.mark.parametrize("shape", [(4, 2), (2, 4)])
def test_full_svd(shape):
    check(lambda torch, x: [t.abs() for t in torch.linalg.svd(x)], data(*shape, dtype="float64"), grad=False)


@pytest.mark.parametrize("name", ["svdvals", "pinv"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 4, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_singular_values(name, shape, dtype):
    check(lambda torch, x: getattr(torch.linalg, name)(x), data(*shape, dtype=dtype), tolerance=LOOSE[dtype] * 5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_eigh(shape, dtype):
    def run(torch, x):
        found, vectors = torch.linalg.eigh(positive(torch, x))
        return found, vectors.abs()

    check(run, data(*shape, dtype=dtype), tolerance=LOOSE[dtype] * 20, second=dtype == "float64")
    check(lambda torch, x: torch.linalg.eigvalsh(positive(torch, x)), data(*shape, dtype=dtype),
          tolerance=LOOSE[dtype] * 20, second=dtype == "float64")


def test_eigh_reads_one_triangle():
    for uplo in "LU":
        check(lambda torch, x, uplo=uplo: torch.linalg.eigh(x, UPLO=uplo)[0], data(3, 3, dtype="float64"), grad=False)


@pytest.mark.parametrize("tolerances", [{}, {"atol": 1.5}, {"rtol": 0.5}, {"atol": 0.1, "rtol": 0.2}])
def test_rank_and_pseudo_inverse_of_a_deficient_matrix(tolerances):
    given = values([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]], "float64")
    check(lambda torch, x: torch.linalg.matrix_rank(x, **tolerances), given)
    check(lambda torch, x: torch.linalg.pinv(x, **tolerances), given)
    check(lambda torch, x: torch.linalg.pinv(x, hermitian=True, **tolerances), given, grad=False)


def test_matrix_rank_of_batches():
    check(lambda torch, x: torch.linalg.matrix_rank(x), data(2, 3, 4))
    check(lambda torch, x: torch.linalg.matrix_rank(x, 1.0), data(2, 3, 4))


@pytest.mark.parametrize(("a", "b"), [((4, 2), (4, 3)), ((2, 4), (2, 3)), ((3, 3), (3, 1)), ((2, 4, 2), (2, 4, 1))])
def test_least_squares(a, b):
    check(lambda torch, x, y: torch.linalg.lstsq(x, y).solution, data(*a, dtype="float64"),
          data(*b, dtype="float64", seed=1), nodes=False)
    for driver in (None, "gels", "gelsd"):
        check(lambda torch, x, y, driver=driver: tuple(torch.linalg.lstsq(x, y, driver=driver)),
              data(*a, dtype="float64"), data(*b, dtype="float64", seed=1), grad=False)


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf")])
@pytest.mark.parametrize("keepdim", [False, True])
def test_matrix_norm(order, keepdim):
    check(lambda torch, x: torch.linalg.matrix_norm(x, order, keepdim=keepdim), data(2, 3, 4, dtype="float64"),
          nodes=not (keepdim and order in ("nuc", 2, -2)))
    check(lambda torch, x: torch.linalg.matrix_norm(x, order, dim=(2, 0), keepdim=keepdim),
          data(3, 2, 4, dtype="float64"), nodes=False)


@pytest.mark.parametrize(("shape", "order"), [
    ((3,), None), ((3,), 1), ((3,), 3), ((3,), 0.5), ((3,), float("inf")), ((3, 4), None), ((3, 4), 1), ((3, 4), 2),
    ((3, 4), float("inf")), ((3, 4), "fro"), ((3, 4), "nuc"), ((2, 3, 4), None)])
def test_norm(shape, order):
    check(lambda torch, x: torch.linalg.norm(x, order), data(*shape, dtype="float64"))


@pytest.mark.parametrize(("shape", "order"), [((3,), "fro"), ((3, 4), 3), ((3, 4), 0.5), ((2, 3, 4), 2)])
def test_orders_that_do_not_fit(shape, order):
    check_error(lambda torch, x: torch.linalg.norm(x, order), data(*shape))


def test_old_svd_and_qr():
    check(lambda torch, x: [t.abs() for t in torch.svd(x)], data(4, 2, dtype="float64"), grad=False)
    check(lambda torch, x: torch.qr(x)[1].abs() if torch is ours else theirs.linalg.qr(x)[1].abs(),
          data(4, 2, dtype="float64"), grad=False)


def test_cross_multi_dot_and_vector_norm_are_reachable():
    check(lambda torch, x, y: torch.linalg.cross(x, y), data(2, 3), data(2, 3, seed=1))
    check(lambda torch, x, y, z: torch.linalg.multi_dot([x, y, z]), data(2, 3), data(3, 4), data(4, 2), nodes=False)
    check(lambda torch, x: torch.linalg.vector_norm(x, 3, dim=1), data(2, 3))


def test_named_fields():
    for torch in (ours, theirs):
        assert torch.linalg.svd(torch.eye(2)).S.tolist() == [1.0, 1.0]
        assert torch.linalg.eigh(torch.eye(2)).eigenvalues.tolist() == [1.0, 1.0]
        assert torch.linalg.slogdet(torch.eye(2)).logabsdet.item() == 0.0


ERRORS = [
    lambda torch: torch.linalg.inv(torch.zeros(2, 2)),
    lambda torch: torch.linalg.inv(torch.stack([torch.eye(2), torch.zeros(2, 2)])),
    lambda torch: torch.linalg.inv(torch.tensor([[1.0, 2.0], [2.0, 4.0]])),
    lambda torch: torch.linalg.solve(torch.zeros(2, 2), torch.zeros(2, 2)),
    lambda torch: torch.linalg.cholesky(-torch.eye(2)),
    lambda torch: torch.linalg.cholesky(torch.tensor([[1.0, 0.0], [0.0, -1.0]])),
    lambda torch: torch.linalg.cholesky(torch.stack([torch.eye(2), -torch.eye(2)])),
    lambda torch: torch.linalg.inv(torch.ones(2, 3)),
    lambda torch: torch.linalg.inv(torch.ones(2)),
    lambda torch: torch.linalg.det(torch.ones(2, 3)),
    lambda torch: torch.linalg.inv(torch.ones(2, 2, dtype=torch.int64)),
    lambda torch: torch.linalg.inv(torch.ones(2, 2, dtype=torch.float16)),
    lambda torch: torch.linalg.eigh(torch.ones(2, 3)),
    lambda torch: torch.linalg.qr(torch.ones(2, 3), mode="x"),
    lambda torch: torch.linalg.svd(torch.ones(2)),
    lambda torch: torch.linalg.matrix_norm(torch.ones(2, 2), 3),
]


@pytest.mark.parametrize("position", range(len(ERRORS)))
def test_errors(position):
    with pytest.raises(Exception) as want:  # noqa: PT011
        ERRORS[position](theirs)
    with pytest.raises(RuntimeError) as got:
        ERRORS[position](ours)
    assert str(got.value) == str(want.value)
    assert isinstance(got.value, ours.linalg.LinAlgError) == isinstance(want.value, theirs.linalg.LinAlgError)


def test_inv_ex_reports_instead_of_raising():
    for torch in (ours, theirs):
        made, info = torch.linalg.inv_ex(torch.stack([2 * torch.eye(2), torch.zeros(2, 2)]))
        assert info.tolist() == [0, 1]
        assert made[0].tolist() == [[0.5, 0.0], [0.0, 0.5]]

"""The memory order of results of linear algebra and Fourier transforms: as LAPACK and PyTorch's transforms leave it."""

import numpy as np
import pytest
import torch as pytorch

import mindtorch_v2

DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(3, 3), (40, 40), (2, 4, 4), (2, 3, 5, 5)]
SQUARE = {
    "cholesky": lambda t, a, b: t.linalg.cholesky(a),
    "cholesky upper": lambda t, a, b: t.linalg.cholesky(a, upper=True),
    "cholesky_ex": lambda t, a, b: t.linalg.cholesky_ex(a),
    "cholesky_inverse": lambda t, a, b: t.cholesky_inverse(a),
    "cholesky_solve": lambda t, a, b: t.cholesky_solve(b, a),
    "eig": lambda t, a, b: t.linalg.eig(a),
    "eigh": lambda t, a, b: t.linalg.eigh(a, UPLO="U"),
    "geqrf": lambda t, a, b: t.geqrf(a),
    "householder_product": lambda t, a, b: t.linalg.householder_product(a, a[..., 0]),
    "inv": lambda t, a, b: t.linalg.inv(a),
    "inv into a tensor": lambda t, a, b: t.linalg.inv(a, out=t.empty(0, dtype=a.dtype)),
    "ldl": lambda t, a, b: t.linalg.ldl_factor(a, hermitian=True),
    "ldl_solve": lambda t, a, b: t.linalg.ldl_solve(*t.linalg.ldl_factor(a), b),
    "lstsq": lambda t, a, b: t.linalg.lstsq(a, b, driver="gelsd"),
    "lu": lambda t, a, b: t.linalg.lu(a),
    "lu_factor": lambda t, a, b: t.linalg.lu_factor(a),
    "lu_solve": lambda t, a, b: t.linalg.lu_solve(*t.linalg.lu_factor(a), b),
    "lu_solve from the right": lambda t, a, b: t.linalg.lu_solve(*t.linalg.lu_factor(a), b.mT, left=False),
    "ormqr": lambda t, a, b: t.ormqr(a, a[..., 0].contiguous(), b),
    "pinv": lambda t, a, b: t.linalg.pinv(a),
    "qr": lambda t, a, b: t.linalg.qr(a),
    "qr complete": lambda t, a, b: t.linalg.qr(a[..., :-1], "complete"),
    "qr r": lambda t, a, b: t.linalg.qr(a[..., :-1], "r"),
    "solve": lambda t, a, b: t.linalg.solve(a, b),
    "solve from the right": lambda t, a, b: t.linalg.solve(a, b.mT, left=False),
    "solve vectors": lambda t, a, b: t.linalg.solve(a, b[..., 0]),
    "solve_triangular": lambda t, a, b: t.linalg.solve_triangular(a, b, upper=True),
    "solve_triangular right": lambda t, a, b: t.linalg.solve_triangular(a, b.mT, upper=False, left=False),
    "svd": lambda t, a, b: t.linalg.svd(a[..., :-1]),
    "svd thin": lambda t, a, b: t.linalg.svd(a[..., :-1], full_matrices=False),
    "triangular_solve": lambda t, a, b: t.triangular_solve(b, a),
}
MANY = {
    "fft": (lambda t, x, dim: t.fft.fft(x, dim=dim), [0, 1, 2]),
    "ifft": (lambda t, x, dim: t.fft.ifft(x, n=4, dim=dim), [0, 1, 2]),
    "rfft": (lambda t, x, dim: t.fft.rfft(x.real, dim=dim), [0, 1, 2]),
    "hfft": (lambda t, x, dim: t.fft.hfft(x, dim=dim), [0, 1, 2]),
    "fftn": (lambda t, x, dim: t.fft.fftn(x, dim=dim), [(0, 1), (1, 0), (0, 2), (2, 1, 0), (1, 2)]),
    "rfftn": (lambda t, x, dim: t.fft.rfftn(x.real, dim=dim), [(0, 1), (1, 0), (0, 2), (2, 1, 0), (1, 2)]),
}


def flat(made):
    return list(made) if isinstance(made, tuple) else [made]


def numpy(tensor):
    return tensor.resolve_conj().numpy()


def both(compute, *arrays):
    """Results of both runtimes, which must have the same strides where a dimension has several elements."""
    theirs = flat(compute(pytorch, *[pytorch.tensor(a) for a in arrays]))
    ours = flat(compute(mindtorch_v2, *[mindtorch_v2.tensor(a) for a in arrays]))
    for got, want in zip(ours, theirs, strict=True):
        steps = [[step for step, extent in zip(one.stride(), one.shape, strict=True) if extent > 1]
                 for one in (got, want)]
        assert steps[0] == steps[1], f"strides {got.stride()}, PyTorch has {want.stride()}, shape {tuple(want.shape)}"
        yield numpy(got), numpy(want)


@pytest.mark.parametrize("name", SQUARE)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore")
def test_matrices(name, dtype):
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        a = rng.normal(size=shape) + 1j * rng.normal(size=shape) * dtype.startswith("complex")
        a = a @ np.swapaxes(a, -1, -2).conj() / shape[-1] + np.eye(shape[-1])
        a = a.astype(dtype) if dtype.startswith("complex") else a.real.astype(dtype)
        b = rng.normal(size=(*shape[:-1], 2)).astype(dtype)
        limit = 2e-3 if dtype in ("float32", "complex64") else 1e-8
        for got, want in both(SQUARE[name], a, b):
            if name == "eig":  # in any order
                continue
            if name.startswith(("eigh", "svd")):  # vectors are known up to a factor
                got, want = np.abs(got), np.abs(want)
                if name == "svd" and got.shape[-1] != shape[-1] - 1:
                    got, want = got[..., :-1], want[..., :-1]
            np.testing.assert_allclose(got, want, rtol=limit, atol=limit)


@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_transforms(name, dtype):
    compute, dims = MANY[name]
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(4, 6, 5)) + 1j * rng.normal(size=(4, 6, 5))).astype(dtype)
    for dim in dims:
        for turned in (x, x.transpose(2, 0, 1)):
            for got, want in both(lambda t, x, dim=dim: compute(t, x, dim), turned):
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("call", [
    "t.linalg.inv(a)", "t.linalg.solve(a, b)", "t.linalg.cholesky(a)", "t.linalg.lu_factor(a)[0]", "t.linalg.qr(a)[0]",
    "t.linalg.eigh(a)[1]", "t.linalg.ldl_factor_ex(a)[0]", "t.linalg.solve_triangular(a, b, upper=True)",
    "t.fft.fft(a, dim=1)", "t.cholesky_inverse(a)", "t.linalg.det(a)"])
def test_on_the_meta_device(call):
    found = []
    for torch in (mindtorch_v2, pytorch):
        a, b = (torch.empty(2, 4, n, device="meta") for n in (4, 3))
        made = eval(call, {"t": torch, "a": a, "b": b})
        found.append((tuple(made.shape), made.stride(), str(made.device)))
    assert found[0] == found[1]

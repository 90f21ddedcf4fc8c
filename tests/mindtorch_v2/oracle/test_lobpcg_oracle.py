"""Some eigenvalues of large matrices: values, vectors, gradients and refusals as PyTorch's."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from harness import ours, theirs, to_numpy

BATCHES: list[tuple[int, ...]] = [(), (2,), (2, 2)]


def positive(torch, *shape, size=12, seed=0):
    draw = np.random.default_rng(seed).normal(size=(*shape, size, size))
    return torch.tensor((draw @ np.swapaxes(draw, -1, -2) + np.eye(size)).tolist(), dtype=torch.float64)


def found(torch, a, **options):
    torch.manual_seed(0)
    return torch.lobpcg(a, tol=1e-9, **options)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("options", [{"k": 2}, {"k": 2, "largest": False}, {"k": 1, "n": 3, "method": "basic"}])
@pytest.mark.parametrize("general", [False, True])
def test_pairs(batch, options, general):
    made = [found(torch, positive(torch, *batch), **options,
                  **({"B": positive(torch, *batch, seed=1)} if general else {})) for torch in (ours, theirs)]
    (values, vectors), (wanted, other) = made
    np.testing.assert_allclose(to_numpy(values), to_numpy(wanted), rtol=1e-7)
    assert tuple(vectors.shape) == tuple(other.shape)
    a = positive(ours, *batch)
    right = positive(ours, *batch, seed=1) @ vectors if general else vectors
    np.testing.assert_allclose(to_numpy(a @ vectors), to_numpy(right * values.unsqueeze(-2)), atol=1e-4)


def test_sparse_matrix_and_preconditioner():
    for torch in (ours, theirs):
        diagonal = torch.diag(torch.arange(1.0, 41, dtype=torch.float64))
        inverse = torch.diag(1 / torch.arange(1.0, 41, dtype=torch.float64))
        values = found(torch, diagonal.to_sparse(), k=3, largest=False, iK=inverse)[0]
        np.testing.assert_allclose(to_numpy(values), [1, 2, 3], rtol=1e-7)


@pytest.mark.parametrize("largest", [True, False])
def test_gradient(largest):
    grads = []
    for torch in (ours, theirs):
        a = positive(torch).requires_grad_()
        values, vectors = found(torch, a, k=2, largest=largest)
        (vectors.abs().pow(3).sum() + (values * torch.tensor([1.0, 2.0], dtype=torch.float64)).sum()).backward()
        grads.append(to_numpy(a.grad))
    np.testing.assert_allclose(*grads, atol=1e-6)


def test_tracker_sees_the_state():
    seen = [[], []]
    for torch, notes in zip((ours, theirs), seen, strict=True):
        found(torch, positive(torch), k=2, n=3, niter=3, tracker=lambda one, notes=notes: notes.append(
            (one.ivars["istep"], one.ivars["iterations_left"], tuple(one.X.shape), tuple(one.S.shape),
             tuple(one.tvars["rerr"].shape), one.iparams["k"], one.bparams["largest"])))
    assert seen[0] == seen[1][:len(seen[0])]


@pytest.mark.parametrize(("shape", "options"), [((2, 3), {}), ((2, 2), {}), ((12, 12), {"k": 5})])
def test_refusals(shape, options):
    errors = []
    for torch in (ours, theirs):
        with pytest.raises((AssertionError, ValueError)) as caught:
            torch.lobpcg(torch.ones(shape), **options)
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]


def test_gradient_of_the_general_problem_is_refused():
    for torch in (ours, theirs):
        def run(torch=torch):
            torch.lobpcg(positive(torch).requires_grad_(), k=1, B=positive(torch, seed=1))[0].sum().backward()

        with pytest.raises(ValueError, match="does not support backward with B != I"):
            run()


def test_helpers():
    made = []
    for torch, package in ((ours, "mindtorch_v2"), (theirs, "torch")):
        utils = importlib.import_module(f"{package}._linalg_utils")
        a, x = positive(torch), torch.ones(12, 2, dtype=torch.float64)
        made.append([to_numpy(one) for one in (utils.matmul(a.to_sparse(), x), utils.matmul(None, x), utils.qform(a, x),
                                               utils.bform(x, None, x), utils.symeig(a)[0], utils.symeig(a, True)[0])])
    for got, want in zip(*made, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_principal_components_of_a_sparse_matrix():
    dense = np.where(np.random.default_rng(0).random((17, 4)) < 0.5, 0, np.arange(68).reshape(17, 4))
    for torch in (ours, theirs):
        u, s, v = torch.pca_lowrank(torch.tensor(dense.tolist(), dtype=torch.float64).to_sparse(), q=4)
        np.testing.assert_allclose(to_numpy(u @ torch.diag(s) @ v.T), dense - dense.mean(0), atol=1e-8)

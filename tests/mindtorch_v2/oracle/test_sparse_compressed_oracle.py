"""Compressed rows and columns: made, taken apart, printed, multiplied, differentiated, on both."""

from __future__ import annotations

import warnings

import pytest
from harness import assert_same, is_tensor

import mindtorch_v2 as ours

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
DENSE = [[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def matrix(t):
    return t.tensor(DENSE)


def factor(t):
    return t.arange(6.0).reshape(3, 2)


def factor_gradients(t):
    a, b, c = (one.requires_grad_() for one in (t.arange(8.0).reshape(4, 2), factor(t).t().clone(), factor(t)))
    t.sparse.sampled_addmm(matrix(t).to_sparse_csr(), a, b).to_dense().square().sum().backward()
    t.sparse.mm(matrix(t).to_sparse_csr(), c, "mean").square().sum().backward()
    return [a.grad, b.grad, c.grad]


CASES = {
    "csr parts": lambda t: [(m := matrix(t).to_sparse_csr()).crow_indices(), m.col_indices(), m.values(), m._nnz()],
    "csc parts": lambda t: [(m := matrix(t).to_sparse_csc()).ccol_indices(), m.row_indices(), m.values()],
    "facts": lambda t: [str((m := matrix(t).to_sparse_csr()).layout), m.is_sparse, m.is_sparse_csr, m.shape, m.dtype,
                        matrix(t).to_sparse().is_sparse_csr],
    "text": lambda t: [repr(matrix(t).to_sparse_csr()), repr(matrix(t).to_sparse_csc())],
    "dense": lambda t: [matrix(t).to_sparse_csr().to_dense(), matrix(t).to_sparse_csc().to_dense()],
    "between": lambda t: [matrix(t).to_sparse_csr().to_sparse_csc().ccol_indices(),
                          matrix(t).to_sparse_csc().to_sparse().coalesce().indices(),
                          matrix(t).to_sparse().to_sparse_csr().crow_indices(),
                          str(matrix(t).to_sparse(layout=t.sparse_csc).layout)],
    "made": lambda t: [t.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3)).to_dense(),
                       t.sparse_csc_tensor(t.tensor([0, 1, 3]), t.tensor([1, 0, 1]), t.ones(3), (2, 2)).to_dense(),
                       t.sparse_compressed_tensor([0, 1], [1], [5.0], (1, 2), layout=t.sparse_csr).to_dense()],
    "transposed": lambda t: [str(matrix(t).to_sparse_csr().t().layout), matrix(t).to_sparse_csr().t().to_dense()],
    "products": lambda t: [matrix(t).to_sparse_csr() @ t.ones(3, 2), matrix(t).to_sparse_csr() @ t.arange(3.0),
                           t.sparse.mm(matrix(t).to_sparse_csc(), t.ones(3, 2)),
                           t.ones(2, 4) @ matrix(t).to_sparse_csr()],
    "arithmetic": lambda t: [(matrix(t).to_sparse_csr() * 2).values(), str((matrix(t).to_sparse_csr() * 2).layout),
                             (matrix(t).to_sparse_csr() + matrix(t).to_sparse_csr()).to_dense(),
                             matrix(t).to_sparse_csr().sum()],
    "reductions of terms": lambda t: [t.sparse.mm(matrix(t).to_sparse_csr(), factor(t), how)
                                      for how in ("mean", "amax", "amin")],
    "sampled product": lambda t: [t.sparse.sampled_addmm(matrix(t).to_sparse_csr(), t.ones(4, 2), factor(t).t(), **how
                                                         ).values()
                                  for how in ({}, {"beta": 0.5, "alpha": 2.0}, {"beta": 0})],
    "gradients of the dense factors": lambda t: factor_gradients(t),
    "indices": lambda t: [t._convert_indices_from_coo_to_csr(t.tensor([0, 0, 2]), 4),
                          t._convert_indices_from_csr_to_coo(t.tensor([0, 2, 3]), t.tensor([1, 0, 1]))],
}


@pytest.mark.parametrize("name", CASES)
def test_same(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = CASES[name](torch)
    for got, want in zip(CASES[name](ours), reference, strict=True):
        if is_tensor(want):
            assert_same(got, want, name)
        else:
            assert str(got).replace("mindtorch_v2", "torch") == str(want)


ERRORS = {
    "crow": lambda t: matrix(t).crow_indices(), "indices": lambda t: matrix(t).to_sparse_csr().indices(),
    "coalesce": lambda t: matrix(t).to_sparse_csr().coalesce(),
    "ccol": lambda t: matrix(t).to_sparse_csr().ccol_indices(),
}


REFUSED = {
    "reduction": lambda t: t.sparse.mm(matrix(t).to_sparse_csr(), factor(t), "prod"),
    "dtypes": lambda t: t.sparse.mm(matrix(t).to_sparse_csr(), factor(t).double(), "mean"),
    "shape": lambda t: t.sparse.mm(matrix(t).to_sparse_csr(), t.ones(2, 2), "mean"),
    "sampled shapes": lambda t: t.sparse.sampled_addmm(matrix(t).to_sparse_csr(), t.ones(4, 3), factor(t).t()),
    "sampled rows": lambda t: t.sparse.sampled_addmm(matrix(t).to_sparse_csr(), t.ones(2, 2), factor(t).t()),
    "sampled dtypes": lambda t: t.sparse.sampled_addmm(matrix(t).to_sparse_csr(), t.ones(4, 2).double(), factor(t).t()),
    "sampled sparse": lambda t: t.sparse.sampled_addmm(matrix(t).to_sparse_csr(), matrix(t).to_sparse_csr(), factor(t)),
    "sampled integers": lambda t: t.sparse.sampled_addmm(matrix(t).int().to_sparse_csr(), t.ones(4, 2).int(),
                                                         factor(t).t().int()),
}
ERRORS.update(REFUSED)


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    found = []
    for t in (ours, torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(RuntimeError) as caught:
                ERRORS[name](t)
        found.append(str(caught.value))
    assert found[0] == found[1]


@pytest.mark.parametrize("wrong", [([1, 2], [0, 1], [1.0, 2.0]), ([0, 2], [0, 5], [1.0, 2.0]),
                                   ([0, 3], [0, 1], [1.0, 2.0]), ([0, 2], [0, 1], [1.0])])
def test_wrong_parts_are_refused(wrong):
    with pytest.raises(RuntimeError, match="indices"):
        ours.sparse_csr_tensor(*wrong, (1, 3))


def test_gradient_of_values_and_of_the_dense_factor():
    def run(t):
        values = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
        dense = t.arange(6.0).reshape(3, 2).requires_grad_()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sparse = t.sparse_csr_tensor(t.tensor([0, 2, 3]), t.tensor([0, 2, 1]), values, (2, 3))
            (sparse @ dense).square().sum().backward()
        return dense.grad

    assert_same(run(ours), run(torch), "dense")

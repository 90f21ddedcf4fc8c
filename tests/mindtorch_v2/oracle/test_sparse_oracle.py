"""Sparse tensors in coordinate form beside PyTorch's."""

from __future__ import annotations

import pytest
from harness import assert_same, check_error

import mindtorch_v2 as ours

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse", "ignore:torch.sparse.SparseTensor")

INDICES = [[0, 1, 1, 2, 1], [2, 0, 2, 1, 0]]


def matrix(t, requires_grad=False, repeat=True, dtype=None):
    count = 5 if repeat else 4
    values = t.tensor([1.0, 2.0, 3.0, 4.0, 5.0][:count], requires_grad=requires_grad, dtype=dtype)
    return values, t.sparse_coo_tensor(t.tensor([row[:count] for row in INDICES]), values, (3, 4))


def dense(t, *shape):
    return (t.arange(float(shape[0] * shape[1])).reshape(shape) / 3).requires_grad_()


def parts(made):
    return made._indices(), made._values(), made.is_coalesced(), tuple(made.shape), made._nnz()


CALLS = {
    "to_dense": lambda t, a, x: a.to_dense(),
    "spmm": lambda t, a, x: t.spmm(a, x),
    "sparse.mm": lambda t, a, x: t.sparse.mm(a, x),
    "operator": lambda t, a, x: a @ x,
    "mv": lambda t, a, x: t.mv(a, x[:, 0]),
    "transposed": lambda t, a, x: a.t().to_dense(),
    "transposed product": lambda t, a, x: a.t() @ x[:3],
    "sum": lambda t, a, x: t.sparse.sum(a),
    "norms": lambda t, a, x: t.stack([a.norm(), a.norm(1), t.norm(a, float("inf")), a.norm(p=3, dim=(0, 1))]),
    "sum of rows": lambda t, a, x: t.sparse.sum(a, 1).to_dense(),
    "addmm": lambda t, a, x: t.sparse.addmm(t.ones(3, 2), a, x, beta=0.5, alpha=2.0),
    "dense and sparse": lambda t, a, x: t.ones(3, 4) + a,
    "scaled": lambda t, a, x: (a * 2 / 3).to_dense(),
    "by dense": lambda t, a, x: (a * t.arange(12.0).reshape(3, 4)).to_dense(),
    "dsmm": lambda t, a, x: t.dsmm(a, x),
    "product of two": lambda t, a, x: (a * a.coalesce()).to_dense(),
    "product of two that meet in one place": lambda t, a, x: (
        a.coalesce() * t.sparse_coo_tensor([[1], [0]], [2.0], (3, 4)).coalesce()).to_dense(),
    "sum of two": lambda t, a, x: (a + a).to_dense(),
    "negative": lambda t, a, x: (-a).to_dense(),
    "sparse by sparse": lambda t, a, x: t.sparse.mm(a, a.t()).to_dense(),
    "double": lambda t, a, x: a.double().to_dense(),
    "values": lambda t, a, x: a.coalesce().values(),
    "indices": lambda t, a, x: a.coalesce().indices(),
    "clone": lambda t, a, x: a.clone().to_dense(),
    "power": lambda t, a, x: (a.coalesce() ** 2).to_dense(),
    "old constructor": lambda t, a, x: t.sparse.FloatTensor(t.tensor(INDICES), t.ones(5), t.Size([3, 4])).to_dense(),
    "new": lambda t, a, x: a.new(a._indices(), a._values() * 2, a.size()).to_dense(),
    "new of a size": lambda t, a, x: t.tensor([*a.new(2, 3).shape, a.new(2, 3)._nnz(), a.new().numel(), a.new(
        a.size()).is_sparse]),
    "resized as another": lambda t, a, x: t.tensor([*a.new().resize_as_(a).shape, a.new().resize_as_(a)._nnz(),
                                                    a.new().resize_as_(a).is_sparse]),
    "of a size": lambda t, a, x: t.sparse_coo_tensor((2, 3)).to_dense(),
    "to_sparse": lambda t, a, x: t.eye(3).to_sparse().to_dense(),
    "sparse rows": lambda t, a, x: t.tensor([[0.0, 0.0], [1.0, 0.0]]).to_sparse(1)._values(),
    "size from indices": lambda t, a, x: t.sparse_coo_tensor(INDICES, [1.0, 2.0, 3.0, 4.0, 5.0]).to_dense(),
    "facts": lambda t, a, x: t.tensor([a.sparse_dim(), a.dense_dim(), a.dim(), a.numel(), int(a.is_sparse)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_values(name):
    got, want = (CALLS[name](t, matrix(t)[1], dense(t, 4, 2)) for t in (ours, torch))
    assert_same(got, want, name, 1e-6)


@pytest.mark.parametrize("name", ["spmm", "sparse.mm", "operator", "mv", "transposed product"])
def test_gradients(name):
    found = []
    for t in (ours, torch):
        values, a = matrix(t, requires_grad=name == "sparse.mm")
        x = dense(t, 4, 2)
        made = CALLS[name](t, a, x)
        (made**2).sum().backward()
        found.append((made.grad_fn.name(), x.grad, values.grad if name == "sparse.mm" else None))
    assert found[0][0] == found[1][0]
    assert_same(found[0][1], found[1][1], "dense", 1e-5)
    if name == "sparse.mm":
        assert_same(found[0][2], found[1][2], "values", 1e-5)


def test_gradient_of_values():
    found = []
    for t in (ours, torch):
        values, a = matrix(t, requires_grad=True, repeat=False)
        (a.coalesce().values() ** 2).sum().backward()
        first = values.grad.clone()
        values.grad = None
        made = t.sparse_coo_tensor(t.tensor(INDICES)[:, :4], values, (3, 4)).to_dense()
        (matrix(t)[1].to_dense() * made).sum().backward()
        found.append((first, values.grad))
    for got, want in zip(*found):
        assert_same(got, want, "values", 1e-6)


@pytest.mark.parametrize("make", [lambda t: matrix(t)[1], lambda t: matrix(t)[1].coalesce(),
                                  lambda t: matrix(t)[1].t(), lambda t: t.eye(2).to_sparse()])
def test_parts(make):
    got, want = parts(make(ours)), parts(make(torch))
    for a, b in zip(got[:2], want[:2]):
        assert_same(a, b, "part", 0.0)
    assert got[2:] == want[2:]


@pytest.mark.parametrize("make", [lambda t: matrix(t)[1], lambda t: matrix(t, dtype=t.float64)[1],
                                  lambda t: matrix(t, requires_grad=True)[1]])
def test_text(make):
    assert repr(make(ours)) == repr(make(torch))


def test_layout():
    assert ours.eye(2).to_sparse().layout is ours.sparse_coo
    assert not ours.eye(2).is_sparse


ERRORS = [
    lambda t: t.sparse_coo_tensor(t.tensor([[0, 5]]), t.ones(2), (3,), check_invariants=True),
    lambda t: t.sparse_coo_tensor(t.tensor([[0, -1]]), t.ones(2), (3,), check_invariants=True),
    lambda t: t.sparse_coo_tensor(t.tensor([[0, 1]]), t.ones(3), (3,)),
    lambda t: matrix(t)[1].values(),
    lambda t: matrix(t)[1].indices(),
    lambda t: matrix(t)[1] @ t.ones(3, 3),
    lambda t: matrix(t)[1].norm(p=2, dim=0),
    lambda t: matrix(t)[1].norm(p=2, dim=(0, 1), keepdim=True),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    check_error(ERRORS[number])


@pytest.mark.parametrize("call", [lambda a: a.exp(), lambda a: a.clone().resize_(5, 4), lambda a: a.cumsum(0),
                                  lambda a: a.to_sparse_bsr((1, 1))])
def test_what_is_missing_says_so(call):
    with pytest.raises(NotImplementedError):
        call(matrix(ours)[1])


def test_profile():
    a, x = matrix(ours)[1], dense(ours, 4, 2)
    with ours.profiler.profile(record_shapes=True, profile_memory=True) as recorded:
        ours.sparse.mm(a, x).sum().backward()
    event = next(e for e in recorded.events() if e.name == "aten::_sparse_mm")
    assert event.input_shapes == [[3, 4], [4, 2]]


# -- gradients of embeddings -------------------------------------------------------------------------------------------

STEPPERS = {
    "SparseAdam": lambda t, p: t.optim.SparseAdam(p, lr=0.1),
    "SparseAdam upwards": lambda t, p: t.optim.SparseAdam(p, lr=0.1, betas=(0.8, 0.9), eps=1e-3, maximize=True),
    "SGD": lambda t, p: t.optim.SGD(p, lr=0.1),
    "Adagrad": lambda t, p: t.optim.Adagrad(p, lr=0.1, lr_decay=0.01),
}
TABLES = {
    "embedding": lambda t: t.nn.Embedding(6, 3, sparse=True, padding_idx=0),
    "bags": lambda t: t.nn.EmbeddingBag(6, 3, sparse=True, mode="mean"),
    "sums": lambda t: t.nn.EmbeddingBag(6, 3, sparse=True, mode="sum", padding_idx=2),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("stepper", STEPPERS)
def test_training_of_sparse_tables(stepper, table):
    found = []
    for t in (ours, torch):
        t.manual_seed(0)
        module = TABLES[table](t)
        optimizer = STEPPERS[stepper](t, list(module.parameters()))
        losses = []
        for _ in range(4):
            x = t.randint(0, 6, (2, 3))
            optimizer.zero_grad()
            loss = (module(x) ** 2).sum() + (module(x[:1]) * 3).sum()
            loss.backward()
            optimizer.step()
            losses += [loss.item(), module.weight.grad.is_sparse, module.weight.grad.coalesce()._nnz()]
        found.append((losses, module.weight.detach().tolist(), repr(optimizer)))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-4)
    for got, want in zip(found[0][1], found[1][1]):
        assert got == pytest.approx(want, abs=1e-5)
    assert found[0][2] == found[1][2]


def test_sparse_gradients_add_up_and_with_dense_ones():
    for more in (False, True):
        grads = []
        for t in (ours, torch):
            t.manual_seed(0)
            module = t.nn.Embedding(6, 3, sparse=True)
            module(t.tensor([1])).sum().backward()
            module(t.tensor([1, 2])).sum().backward()
            if more:
                (module.weight * 2).sum().backward()
            grads.append((module.weight.grad.is_sparse, module.weight.grad.to_dense().tolist()))
        assert grads[0] == grads[1]


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "SparseAdam without lr", "Adagrad with decay", "SparseAdam"])
def test_what_optimizers_say_of_gradients_they_do_not_take(name):
    def run(t):
        weight = t.nn.Embedding(3, 2, sparse=name != "SparseAdam")
        weight(t.tensor([1])).sum().backward()
        make = {"SparseAdam without lr": lambda p: t.optim.SparseAdam(p, lr=0.0), "Adagrad with decay": lambda p:
                t.optim.Adagrad(p, weight_decay=0.1)}.get(name, lambda p: getattr(t.optim, name)(p))
        make(weight.parameters()).step()

    check_error(run)


def test_elements_at_the_places_of_another():
    x, mask = dense(torch, 3, 4), matrix(torch)[1].coalesce()
    y, ours_mask = dense(ours, 3, 4), matrix(ours)[1].coalesce()
    want, got = x.sparse_mask(mask), y.sparse_mask(ours_mask)
    assert got._values().tolist() == want._values().tolist()
    assert got._indices().tolist() == want._indices().tolist()
    want.to_dense().sum().backward()
    got.to_dense().sum().backward()
    assert y.grad.tolist() == x.grad.tolist()
    check_error(lambda t: t.ones(2, 2).sparse_mask(matrix(t)[1]))

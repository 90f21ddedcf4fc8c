"""Index expressions, reading and writing, against PyTorch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import check, check_error, data, values  # noqa: E402

import mindtorch_v2 as ours  # noqa: E402

X = data(4, 5, 6)
# Written with `torch` for either module; `L` makes an integer tensor, `B` a boolean one.
READS = [
    "x[0]", "x[-1]", "x[1:3]", "x[:]", "x[...]", "x[()]", "x[2:1]", "x[-100:100]", "x[1:99:2]", "x[None]", "x[:, 1]",
    "x[0, 1, 2]", "x[0, 1:3, None]", "x[..., 0]", "x[..., None]", "x[None, ..., None]", "x[0, ..., 1]", "x[..., ...]",
    "x[:, ::2, 1:]", "x[True]", "x[False]", "x[True, 0]", "x[0, True]", "x[True, True]", "x[None, True]",
    "x[L(1)]", "x[L(0):L(2), L(1)]", "x[L([0, 2])]", "x[L([[0, 2], [1, 1]])]", "x[L([-1, 0, 0])]", "x[:, L([0, 2])]",
    "x[L([0, 1]), L([0, 1])]", "x[L([0, 1]), :, L([0, 1])]", "x[:, L([0, 1]), L([2, 3])]", "x[0, :, L([0, 1])]",
    "x[L([0, 1]), 0]", "x[L([0, 1]), :, 0]", "x[L([0, 1]), None, L([0, 1])]", "x[None, L([0, 1])]",
    "x[:, None, L([0, 1])]", "x[..., L([0, 1])]", "x[L([0, 1]), ..., L([0, 1])]", "x[L([[0], [1]]), L([0, 1, 2])]",
    "x[L([0, 1]), 1:3]", "x[L([0, 1])[:, None], :, L([0, 2, 4])]", "x[L([], dtype=torch.int64)]", "x[[]]",
    "x[[0, 2]]", "x[[0, 1], [1, 2]]", "x[(0, 1), (1, 2)]", "x[[[0], [1]], [[0, 1]]]", "x[range(2)]",
    "x[[True, False, True, True]]", "x[x > 0]", "x[x > 9]", "x[(x > 0)[:, 0, 0]]", "x[(x > 0)[:, :, 0]]",
    "x[:, (x > 0)[0]]", "x[(x > 0)[:, :, 0], 0]", "x[(x > 0)[:, :, 0], :2]", "x[:, (x > 0)[0, :, 0], 0]",
    "x[(x > 0)[:, :, 0], None]", "x[(x > 0)[:, :, 0], L([1])]",
    "x[L(True)]", "x[True, L([0, 1])]", "x[L([0, 1]), True]",
    "x[L([0, 1], dtype=torch.int32)]", "x[np.int64(1)]", "x[np.array(1)]", "x[np.array([0, 2])]",
    "x[np.array([True, False, True, False])]", "x[np.array([1], dtype=np.int32)]", "x[0:4, 1]", "x[0:99, 1]",
    "x.permute(2, 0, 1)[L([0, 1])]", "x.permute(2, 0, 1)[:, L([0, 1])]", "x[L(1, dtype=torch.int8)]",
    "x[0][1][2]", "x[1:][L([0, 0])][:, 1]",
]
WRITES = [
    ("0", "1.5"), ("slice(None)", "2"), ("...", "3"), ("()", "1"), ("(0, 0, 0)", "7"), ("(slice(1, 3), 2)", "v(6)"),
    ("0", "v(5, 6)"), ("0", "v()"), ("0", "v(6)"), ("0", "v(1, 1, 6)"), ("None", "1."), ("(None, 0)", "v(6)"),
    ("True", "1"), ("False", "1"), ("(True, 0)", "1."), ("(..., 0)", "v(4, 5)"), ("L(1)", "1"), ("L([0, 2])", "1"),
    ("L([0, 2])", "v(2, 5, 6)"), ("L([0, 2])", "v(6)"), ("L([0, 2])", "v()"), ("L([0, 2])", "v(1, 2, 5, 6)"),
    ("(slice(None), L([0, 2]))", "v(4, 2, 6)"), ("(0, L([0, 2]))", "1."), ("(L([0, 1]), L([1, 2]))", "v(2, 6)"),
    ("(L([0, 1]), slice(None), L([1, 2]))", "v(2, 5)"), ("x > 0", "1.5"), ("x > 0", "v()"), ("x > 0", "v(1)"),
    ("L([True, False, True, False])", "v(6)"), ("L([True, False, True, False])", "0"), ("(x > 0)[:, :, 0]", "2."),
    ("[0, 2]", "v(2, 5, 6)"), ("(slice(1, 3), L([0, 1]), 2)", "v(2, 2)"), ("np.array([0, 1])", "1"),
    ("(0, L([True, False, True, True, False]))", "3"),
]
BAD_READS = [
    "x[9]", "x[0, 0, 0, 0]", "x[:, 7]", "x[L([9])]", "x[L([-9])]", "x[L([0, 1]), L([0, 1, 2])]",
    "x[L([True, False])]", "x[[True, False]]", "x[1.5]", "x[L([1.5])]", "x[L([0]), L([0]), L([0]), L([0])]",
    "torch.tensor(1.)[0]", "torch.tensor(1.)[:]", "x[::-1]", "x[::0]", "x[{1}]", "x[L(9)]", "x[0.0:2]", "x[x]",
    "x[1j]", "x[np.bool_(True)]", "x[L([1], dtype=torch.int16)]", "torch.tensor(1.)[L([0])]", "x[0, ..., 0, 0, 0]",
    "x[:, L([[True, False]])]",
]
BAD_WRITES = [
    ("0", "[1, 2]"), ("0", "v(2)"), ("0", "v(2, 5, 6)"), ("L([0, 1])", "v(2)"), ("L([0, 1])", "v(2, 5, 6).double()"),
    ("L([0, 1])", "L(1)"), ("0", "np.zeros(6)"), ("0", "None"), ("0", "'a'"), ("x > 0", "v(2)"), ("9", "1"),
    ("L([9])", "1"), ("0", "1j"),
]


def evaluate(torch, expression, x, **more):
    names = {"x": x, "torch": torch, "np": np, "L": torch.tensor, **more}
    return eval(expression, names)


def write(torch, key, value, x, source):
    made = x * 1

    def v(*shape):
        return source.reshape(-1)[: int(np.prod(shape))].reshape(shape)

    made[evaluate(torch, key, x)] = evaluate(torch, value, x, v=v)
    return made


@pytest.mark.parametrize("expression", READS)
def test_read(expression):
    check(lambda torch, x: evaluate(torch, expression, x), X)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int64", "bool", "complex64"])
@pytest.mark.parametrize("expression", ["x[0]", "x[L([0, 0, 1])]", "x[:, L([0, 1]), 1:]", "x[L([0, 0]), L([1, 1])]"])
def test_read_dtypes(expression, dtype):
    check(lambda torch, x: evaluate(torch, expression, x), data(3, 4, 2, dtype=dtype))


@pytest.mark.parametrize("expression", READS)
def test_view_or_copy(expression):
    """Views share memory with x exactly where PyTorch's do."""

    def shared(torch):
        x = torch.arange(120.0).reshape(4, 5, 6)
        found = evaluate(torch, expression, x)
        found.fill_(-1.0)
        # The layout of what is read out of a transposed tensor is left to the runtime.
        return [(x == -1).sum().item(), found.is_contiguous() or "permute" in expression]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert shared(ours) == shared(torch)


@pytest.mark.parametrize(("key", "value"), WRITES)
def test_write(key, value):
    check(lambda torch, x, s: write(torch, key, value, x, s), X, data(200, seed=3), nodes=False)


@pytest.mark.parametrize("expression", BAD_READS)
def test_read_errors(expression):
    check_error(lambda torch, x: evaluate(torch, expression, x), X)


@pytest.mark.parametrize(("key", "value"), BAD_WRITES)
def test_write_errors(key, value):
    check_error(lambda torch, x, s: write(torch, key, value, x, s), X, data(200, seed=3))


def test_writing_integers():
    def writes(torch, x):
        x[0] = 1.7
        x[torch.tensor([1])] = 2.9
        x[2] = torch.tensor(3.9)
        x[3] = True
        return x

    check(writes, values([1, 2, 3, 4], "int64"), grad=False)
    check(writes, values([0, 2, 0, 4], "bool"), grad=False)
    check(writes, values([0, 2, 0, 4], "bfloat16"), grad=False)

    def overflows(torch, x):
        x[0] = 300

    check_error(overflows, values([1, 2], "int8"))


def test_compound_assignment():
    def change(torch, x, y):
        z = x * 1
        z[0] += y[0]
        z[torch.tensor([1, 2])] *= y[0]
        z[:, 1] -= 2
        z[z > 1] += 0.5
        return z

    check(change, data(3, 4), data(3, 4, seed=1), nodes=False)


def test_old_sequences_warn():
    for torch_like in (ours, torch):
        x = torch_like.arange(12.0).reshape(3, 4)
        with pytest.warns(UserWarning, match="non-tuple sequence"):
            assert x[[[0, 1], [1, 2]]].tolist() == [1.0, 6.0]
        with pytest.warns(UserWarning, match="uint8"):
            assert x[torch_like.tensor([1, 0, 0], dtype=torch_like.uint8)].shape == (1, 4)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("indices", [
    ([0, 2],), ([0, 0, 1],), ([[0, 1], [1, 0]],), ([0, 1, 1], [1, 2, 2]), ([0, -1, -1], [1, 2, 2], [0, 1, 1]),
    ([1],), ([],), ([True, False, True],), (0,), (2, 1),
])
def test_index_put(indices, accumulate):
    if not accumulate and indices in (([0, 0, 1],), ([[0, 1], [1, 0]],), ([0, 1, 1], [1, 2, 2]),
                                      ([0, -1, -1], [1, 2, 2], [0, 1, 1])):
        value = data()  # which of several values stays is not defined
    else:
        value = None

    def call(torch, x, v):
        keys = tuple(torch.tensor(i, dtype=torch.int64 if i == [] else None) for i in indices)
        shaped = v if value is not None else (x[keys] * 0 + v.reshape(-1)[0]).detach() * v.reshape(-1)[1]
        return x.index_put(keys, shaped, accumulate), (x * 1).index_put_(keys, shaped, accumulate)

    check(call, data(3, 4, 2), data(5, seed=1) if value is None else value)


def test_index_put_errors():
    for call in (
        lambda torch, x: x.index_put((torch.tensor([0]),), torch.tensor(1)),
        lambda torch, x: x.index_put(torch.tensor([0]), torch.tensor(1.0)),
        lambda torch, x: x.index_put((torch.tensor([0, 1]),), torch.tensor([1.0, 2.0, 3.0])),
        lambda torch, x: x.index_put([torch.tensor([7])], torch.tensor(1.0)),
        lambda torch, x: x.index_put([torch.tensor([7])], torch.tensor(1.0), True),
        lambda torch, x: x.index_put((None, torch.tensor([0])), torch.tensor(1.0)),
        lambda torch, x: x.index_put((torch.tensor([0.5]),), torch.tensor(1.0)),
        lambda torch, x: x.index_put((torch.tensor([0]),) * 3, torch.tensor(1.0)),
    ):
        check_error(call, data(3, 4))


def test_changed_index_is_noticed():
    def change(torch, x):
        x.requires_grad_()
        index = torch.tensor([0, 1])
        found = x[index].sum()
        index += 1
        found.backward()

    check_error(change, data(3, 4))


def test_leaves_are_not_written():
    def into_leaf(key, value):
        def write(torch, x):
            x = x.clone().requires_grad_()
            x[evaluate(torch, key, x)] = value

        return write

    for key in ("0", "(slice(None), 1)", "L([0])", "x > 0", "..."):
        check_error(into_leaf(key, 1.0), data(3, 4))


def test_leaves_are_written_without_grad():
    def write(torch, x):
        with torch.no_grad():
            x[0] = 1
            x[torch.tensor([1])] = 2
            x[x > 1] = 3
        return x

    check(write, data(3, 4))


def test_views_follow_writes():
    def write(torch, x, y):
        z = x * 1
        row = z[0]
        z[:, 1] = y[0]
        column = z[:, 1]
        column *= 2
        z[torch.tensor([1, 2])] = column[1] * 1
        return z, row * 1, column * 1

    check(write, data(3, 4), data(3, seed=1), nodes=False)


def test_an_index_of_a_subclass():
    def read(torch, x):
        class Places(torch.Tensor):
            pass

        places = torch.tensor([2, 0]).as_subclass(Places)
        return x[places].as_subclass(torch.Tensor), x[0, places].as_subclass(torch.Tensor)

    check(read, data(3, 4))

"""Joining, repeating, turning, padding and scattering into windows, against PyTorch."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import check, check_error, data, make, values  # noqa: E402

import mindtorch_v2 as ours  # noqa: E402

DTYPES = ["float32", "float64", "bfloat16", "int64", "uint8", "bool", "complex64"]


def functional(torch_like, name):
    """A function of torch.nn.functional; on this runtime, which may have no such module yet, the op itself."""
    if torch_like is ours:
        return getattr(ours._dispatch.namespace.aten, name)
    return getattr(torch_like.nn.functional, name)


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
@pytest.mark.parametrize("name", ["cat", "concat", "concatenate", "stack"])
def test_join(name, dim):
    given = [data(2, 3, seed=i) for i in range(3)]
    check(lambda torch, x, y, z: getattr(torch, name)([x, y, z], dim), *given)
    check(lambda torch, x, y, z: getattr(torch, name)((x.t(), y.t(), x.t()), dim=dim), *given)


@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
def test_join_promotes(first, second):
    given = data(2, 3, dtype=first), data(2, 3, dtype=second, seed=1)
    check(lambda torch, x, y: torch.cat([x, y]), *given)
    check(lambda torch, x, y: torch.stack([x, y], 1), *given)


def test_join_uneven_and_empty():
    check(lambda torch, x, y: torch.cat([x, y], 1), data(2, 3), data(2, 1, seed=1))
    check(lambda torch, x, y: torch.cat([x, y], 1), data(2, 3), data(0))
    check(lambda torch, x, y: torch.cat([y, x]), data(2, 3), data(0))
    check(lambda torch, x, y: torch.cat([x, y], 1), data(2, 3), data(0, dtype="float64"))
    check(lambda torch, x: torch.cat([x, x]), data(0))
    check(lambda torch, x: torch.cat([x, x, x], axis=-1), data(2, 0))
    check(lambda torch, x: torch.stack([x, x]), data())
    check(lambda torch, x: torch.stack([x, x], -1), data())
    check(lambda torch, x: torch.cat([x, x], out=torch.empty(0)), data(2, 3), grad=False)
    check(lambda torch, x: torch.stack(tensors=[x, x], dim=1, out=torch.empty(0)), data(2, 3), grad=False)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4)])
@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack", "row_stack"])
def test_stackers(name, shape):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(lambda torch, x, y: getattr(torch, name)((x, y)), data(*shape), data(*shape, seed=1))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (2, 1, 2, 1)])
@pytest.mark.parametrize("name", ["atleast_1d", "atleast_2d", "atleast_3d"])
def test_at_least(name, shape):
    check(lambda torch, x: getattr(torch, name)(x), data(*shape))
    check(lambda torch, x: getattr(torch, name)(x, x * 2), data(*shape))
    check(lambda torch, x: getattr(torch, name)([x, x * 2]), data(*shape))


def test_block_diag():
    check(lambda torch, x, y, z, w: torch.block_diag(x, y, z, w), data(), data(2), data(2, 3), data(1, 0))
    check(lambda torch, x, y: torch.block_diag(x, y), data(2, 2, dtype="int64"), data(2))
    check(lambda torch: torch.block_diag())


@pytest.mark.parametrize("dtype", DTYPES)
def test_turn(dtype):
    x = data(2, 3, 4, dtype=dtype)
    for dims in ((0,), (0, -1), (), (1, 2, 0)):
        check(lambda torch, x, d=dims: torch.flip(x, d), x)
    check(lambda torch, x: x.flip(0, 1), x)
    check(lambda torch, x: x.t().flip([0]), data(3, 4, dtype=dtype))
    check(lambda torch, x: x.fliplr(), x)
    check(lambda torch, x: x.flipud(), x)
    for arguments in ((1,), (-2, 0), (5, 1), ((1, 2), (0, 2)), (0, 0), ((1, 1), (1, 1))):
        check(lambda torch, x, a=arguments: torch.roll(x, *a), x)
    for arguments in ((), (2,), (3,), (-1, (1, 2)), (1, (0, -1)), (4,)):
        check(lambda torch, x, a=arguments: torch.rot90(x, *a), x)


def test_turn_small():
    check(lambda torch, x: x.flip(0), data())
    check(lambda torch, x: x.roll(1, 0), data(0, 3))
    check(lambda torch, x: x.roll(1), data())


@pytest.mark.parametrize("repeats", [(2, 1), (1, 1), (2, 3), (2, 1, 3), (0, 1), (3, 2, 1, 2)])
def test_repeat(repeats):
    check(lambda torch, x: x.repeat(repeats), data(2, 3))
    check(lambda torch, x: x.t().repeat(*repeats), data(2, 3))
    check(lambda torch, x: x.tile(repeats), data(2, 3))


def test_repeat_other():
    check(lambda torch, x: x.repeat(3), data())
    check(lambda torch, x: x.tile(2), data(2, 3))
    check(lambda torch, x: torch.tile(x, (2, 2, 2)), data(3, dtype="int64"))


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_repeat_interleave(dim):
    check(lambda torch, x: x.repeat_interleave(2, dim), data(3, 3))
    check(lambda torch, x: torch.repeat_interleave(x, 0, dim=dim), data(3, 3))
    check(lambda torch, x: x.repeat_interleave(torch.tensor(2), dim), data(3, 3))
    check(lambda torch, x: x.repeat_interleave(torch.tensor([3]), dim), data(3, 3))
    if dim is not None:
        check(lambda torch, x: x.repeat_interleave(torch.tensor([1, 0, 2]), dim), data(3, 3))
        check(lambda torch, x: x.repeat_interleave(torch.tensor([1, 0, 2]), dim, output_size=3), data(3, 3))
    check(lambda torch: torch.repeat_interleave(torch.tensor([1, 0, 2])))
    check(lambda torch, x: x.repeat_interleave(3), data())


def test_one_hot():
    for content, classes in (([0, 3], -1), ([[0, 1], [2, 0]], 5), (1, -1), ([], 3)):
        check(lambda torch, c=content, n=classes: functional(torch, "one_hot")(torch.tensor(c, dtype=torch.int64), n))


@pytest.mark.parametrize("padding", [(1, 2), (0, 0), (-1, 2), (1, 1, 2, 0), (-1, -1, 1, 1), (0, 1, 0, 0, 2, 1), ()])
def test_constant_pad(padding):
    check(lambda torch, x: functional(torch, "pad")(x, padding), data(2, 3, 4))
    check(lambda torch, x: functional(torch, "pad")(x, padding, value=1.5), data(2, 3, 4))
    check(lambda torch, x: functional(torch, "pad")(x, padding, "constant", 1), data(2, 3, 4, dtype="int64"))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(("shape", "padding"), [
    ((2, 4), (1, 2)), ((2, 3, 4), (3, 3)), ((2, 3, 4), (-1, 2)), ((2, 3, 4), (1, 2, 2, 1)),
    ((2, 3, 4, 5), (1, 0, 2, -1)), ((2, 3, 4, 5), (1, 2, 0, 1, 2, 1)), ((1, 2, 3, 4, 3), (1, 2, 1, 1, 2, 0)),
    ((2, 4), (0, 0)),
])
def test_mirrored_pad(mode, shape, padding):
    check(lambda torch, x: functional(torch, "pad")(x, padding, mode), data(*shape), nodes=mode != "circular")
    check(lambda torch, x: functional(torch, "pad")(x, padding, mode=mode), data(*shape, dtype="float64"),
          nodes=mode != "circular", second=False)


def test_grids():
    for indexing in ("ij", "xy"):
        check(lambda torch, x, y, z, i=indexing: torch.meshgrid(x, y, z, indexing=i), data(2), data(3), data())
        check(lambda torch, x, y, i=indexing: torch.meshgrid([x, y], indexing=i), data(2), data(3))
        check(lambda torch, x, i=indexing: torch.meshgrid(x, indexing=i), data(2))
    check(lambda torch, x, y: torch.cartesian_prod(x, y), data(2), data(3))
    check(lambda torch, x, y, z: torch.cartesian_prod(x, y, z), data(2), data(3), data(1))
    check(lambda torch, x: torch.cartesian_prod(x), data(2))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("replacement", [True, False])
def test_combinations(count, replacement):
    check(lambda torch, x: torch.combinations(x, count, replacement), data(3))
    check(lambda torch, x: torch.combinations(x, r=count, with_replacement=replacement), values([5, 6, 7], "int64"))


def test_windows_of_a_copy():
    x = data(3, 4)
    check(lambda torch, x, s: torch.select_scatter(x, s, 0, 1), x, data(4, seed=1))
    check(lambda torch, x, s: x.select_scatter(s, -1, -2), x, data(3, seed=1))
    check(lambda torch, x, s: torch.slice_scatter(x, s, 0, 1), x, data(2, 4, seed=1))
    check(lambda torch, x, s: torch.slice_scatter(x, s, 1, 0, 4, 2), x, data(3, 2, seed=1))
    check(lambda torch, x, s: torch.slice_scatter(x, s, dim=1, start=-2), x, data(3, 2, seed=1))
    check(lambda torch, x, s: torch.diagonal_scatter(x, s), x, data(3, seed=1))
    check(lambda torch, x, s: torch.diagonal_scatter(x, s, 1), x, data(3, seed=1))
    check(lambda torch, x, s: torch.select_scatter(x, s, 0, 1), x, data(4, dtype="float64", seed=1))
    check(lambda torch, x: torch.narrow_copy(x, 1, 1, 2), x)
    check(lambda torch, x: torch.narrow_copy(x, 1, -2, 2), x, grad=False)


def test_unravel_index():
    for shape in ((3, 4), (2, 2, 5), 12):
        check(lambda torch, s=shape: torch.unravel_index(torch.tensor([[0, 5], [11, 7]]), s))
    check(lambda torch: torch.unravel_index(torch.tensor(3), (2, 2)))


BAD = [
    lambda t, x: t.cat([]), lambda t, x: t.cat([x, t.tensor([1.0])]), lambda t, x: t.cat([x, t.zeros(3, 5)]),
    lambda t, x: t.cat([x, x], 2), lambda t, x: t.cat([t.tensor(1.0), t.tensor(2.0)]), lambda t, x: t.cat(x),
    lambda t, x: t.cat([x, 1]), lambda t, x: t.cat([x, t.tensor(1.0)]), lambda t, x: t.stack([]),
    lambda t, x: t.stack([x, t.zeros(2, 2, 2)]), lambda t, x: t.stack([x, t.zeros(3, 5)]),
    lambda t, x: t.stack([x, x], 3), lambda t, x: t.stack(x), lambda t, x: t.hstack([]),
    lambda t, x: t.block_diag(t.zeros(2, 2, 2)), lambda t, x: x.flip(0, 0), lambda t, x: x.flip(2),
    lambda t, x: t.tensor([1.0]).fliplr(), lambda t, x: t.tensor(1.0).flipud(), lambda t, x: x.roll(1, 2),
    lambda t, x: x.roll((1, 2)), lambda t, x: x.roll((1, 2), 0),
    lambda t, x: x.roll(1, (0, 1)), lambda t, x: x.roll(()),
    lambda t, x: x.rot90(1, (0, 0)), lambda t, x: x.rot90(1, (0,)), lambda t, x: x.rot90(1, (0, 5)),
    lambda t, x: x.repeat(2), lambda t, x: x.repeat(2, -1), lambda t, x: x.repeat_interleave(-1),
    lambda t, x: x.repeat_interleave(t.tensor([1, 2]), 0), lambda t, x: x.repeat_interleave(t.tensor([1.0]), 0),
    lambda t, x: x.repeat_interleave(t.tensor([[1]]), 0), lambda t, x: x.repeat_interleave(t.tensor([-1, 1, 1]), 0),
    lambda t, x: x.repeat_interleave(t.tensor([1, 2, 3]), 0, output_size=7), lambda t, x: x.repeat_interleave(2, 5),
    lambda t, x: x.repeat_interleave([1, 2, 3], 0),
    lambda t, x: functional(t, "one_hot")(t.tensor([0, 3]), 2), lambda t, x: functional(t, "one_hot")(t.tensor([-1])),
    lambda t, x: functional(t, "one_hot")(t.tensor([0.0])),
    lambda t, x: functional(t, "one_hot")(t.tensor([], dtype=t.int64)),
    lambda t, x: functional(t, "pad")(x, (1,)), lambda t, x: functional(t, "pad")(x, (1, 1, 1, 1, 1, 1)),
    lambda t, x: functional(t, "pad")(x, (-3, -3)), lambda t, x: functional(t, "pad")(x, (1, 1), "foo"),
    lambda t, x: functional(t, "pad")(x, (1, 1), "reflect", 1.0),
    lambda t, x: functional(t, "pad")(x, (4, 1), "reflect"),
    lambda t, x: functional(t, "pad")(x, (1, 1, 1, 1), "reflect"),
    lambda t, x: functional(t, "pad")(x, (5, 1), "circular"),
    lambda t, x: functional(t, "pad")(t.zeros(2, 0, 3), (1, 1), "reflect"),
    lambda t, x: t.meshgrid(x, indexing="ij"), lambda t, x: t.meshgrid(t.tensor(1), t.tensor([1.0]), indexing="ij"),
    lambda t, x: t.meshgrid(t.tensor(1), t.tensor([1]), indexing="ab"), lambda t, x: t.cartesian_prod(x),
    lambda t, x: t.combinations(x), lambda t, x: t.combinations(x[0], -1), lambda t, x: t.narrow_copy(x, 0, 1, 3),
    lambda t, x: t.select_scatter(x, t.zeros(3), 0, 0), lambda t, x: t.select_scatter(x, t.zeros(4), 0, 5),
    lambda t, x: t.slice_scatter(x, t.zeros(3, 4), 0, 1), lambda t, x: t.diagonal_scatter(x, t.zeros(4)),
    lambda t, x: t.unravel_index(t.tensor([1.0]), (2, 2)), lambda t, x: t.unravel_index(t.tensor([1]), (2, -2)),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_errors(number):
    check_error(BAD[number], data(3, 4))


def test_meshgrid_warns_without_indexing():
    with pytest.warns(UserWarning, match="indexing"):
        found = ours.meshgrid(make(ours, data(2), False), make(ours, data(3), False))
    assert [tuple(f.shape) for f in found] == [(2, 3), (2, 3)]

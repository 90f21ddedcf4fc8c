"""Operators of the simulator, called through the C ABI, against PyTorch."""

from __future__ import annotations

import ctypes as c

import ml_dtypes
import numpy as np
import pytest
from acl import BFLOAT16, DTYPES, Acl, AclError, Buffer, Scalar

torch = pytest.importorskip("torch")
F = torch.nn.functional

FLOATS = ["float32", "float16", "bfloat16", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8"]
TOLERANCE = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2, "float64": 1e-12}


def to_numpy(tensor: object) -> np.ndarray:
    tensor = torch.as_tensor(tensor).detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def to_torch(array: np.ndarray) -> object:
    if array.dtype == BFLOAT16:
        return torch.from_numpy(np.array(array, order="C").view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.array(array, order="C"))


def values(
    shape: tuple[int, ...], dtype: str = "float32", seed: int = 0, low: float = -3, high: float = 3
) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype in INTEGERS:
        return random.integers(0 if dtype == "uint8" else int(low), int(high) + 1, shape).astype(dtype)
    return random.uniform(low, high, shape).astype(BFLOAT16 if dtype == "bfloat16" else dtype)


def compare(got: np.ndarray, expected: object, tolerance: float | None = None) -> None:
    want = to_numpy(expected)
    assert got.shape == tuple(want.shape)
    kind = got.dtype.name
    if kind in TOLERANCE:
        tolerance = TOLERANCE[kind] if tolerance is None else tolerance
        np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, want.astype(got.dtype))


UNARY = {
    "Relu": torch.relu,
    "Gelu": lambda x: F.gelu(x, approximate="tanh"),
    "Silu": F.silu,
    "Sigmoid": torch.sigmoid,
    "Tanh": torch.tanh,
    "Exp": torch.exp,
    "Log": torch.log,
    "Sqrt": torch.sqrt,
    "Rsqrt": torch.rsqrt,
    "Neg": torch.neg,
    "Abs": torch.abs,
    "Reciprocal": torch.reciprocal,
    "Sin": torch.sin,
    "Cos": torch.cos,
    "Erf": torch.erf,
    "Sign": torch.sign,
    "Floor": torch.floor,
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_unary(acl: Acl, name: str, dtype: str) -> None:
    x = values((5, 7), dtype, low=0.1 if name in ("Log", "Sqrt", "Rsqrt", "Reciprocal") else -3)
    out = acl.empty(x.shape, dtype)
    acl.op(name, acl.buffer(x), out)
    compare(out.numpy(), UNARY[name](to_torch(x)))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["Neg", "Abs", "Sign", "Relu"])
def test_unary_of_integers(acl: Acl, name: str, dtype: str) -> None:
    x = values((40,), dtype)
    out = acl.empty(x.shape, dtype)
    acl.op(name, acl.buffer(x), out)
    compare(out.numpy(), UNARY[name](to_torch(x)))


@pytest.mark.parametrize("name", ["Exp", "Sqrt", "Tanh", "Sigmoid"])
def test_integers_become_floating(acl: Acl, name: str) -> None:
    x = values((9,), "int64", low=0)
    out = acl.empty(x.shape, "float32")
    acl.op(name, acl.buffer(x), out)
    compare(out.numpy(), UNARY[name](to_torch(x)))


def test_special_values(acl: Acl) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5], "f4")
    out, truth = acl.empty(x.shape, "float32"), acl.empty(x.shape, "bool")
    for name in ("Relu", "Abs", "Sign", "Floor", "Exp", "Tanh"):
        acl.op(name, acl.buffer(x), out)
        compare(out.numpy(), UNARY[name](to_torch(x)))
    acl.op("IsFinite", acl.buffer(x), truth)
    compare(truth.numpy(), torch.isfinite(to_torch(x)))
    acl.op("LogicalNot", acl.buffer(x), truth)
    compare(truth.numpy(), torch.logical_not(to_torch(x)))
    acl.op("Maximum", acl.buffer(x), acl.buffer(x[::-1].copy()), out)
    compare(out.numpy(), torch.maximum(to_torch(x), to_torch(x[::-1].copy())))
    acl.op("Clamp", acl.buffer(x), Scalar(-1.0), Scalar(1.0), out)
    compare(out.numpy(), torch.clamp(to_torch(x), -1, 1))


BINARY = {
    "Mul": torch.mul,
    "Div": torch.div,
    "Maximum": torch.maximum,
    "Minimum": torch.minimum,
    "PowTensorTensor": torch.pow,
}
COMPARISONS = {"Eq": torch.eq, "Ne": torch.ne, "Gt": torch.gt, "Ge": torch.ge, "Lt": torch.lt, "Le": torch.le}


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int64"])
@pytest.mark.parametrize("name", [*BINARY, "Add", "Sub"])
def test_binary_broadcast(acl: Acl, name: str, dtype: str) -> None:
    x, y = values((4, 1, 6), dtype, 1, low=1), values((5, 6), dtype, 2, low=1)
    a, b = to_torch(x), to_torch(y)
    if name in ("Add", "Sub"):
        expected, extra = (torch.add if name == "Add" else torch.sub)(a, b, alpha=2), [Scalar(2)]
    else:
        expected, extra = BINARY[name](a, b), []
    out = acl.empty(tuple(expected.shape), str(expected.dtype).removeprefix("torch."))
    acl.op(name, acl.buffer(x), acl.buffer(y), *extra, out)
    compare(out.numpy(), expected)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("float32", "int64"),
        ("float16", "float32"),
        ("int8", "int32"),
        ("bool", "int64"),
        ("bfloat16", "float16"),
        ("float64", "float32"),
        ("uint8", "int8"),
        ("bool", "bool"),
    ],
)
def test_promotion(acl: Acl, left: str, right: str) -> None:
    x, y = values((3, 4), left, 1), values((4,), right, 2)
    expected = to_torch(x) + to_torch(y)
    out = acl.empty((3, 4), str(expected.dtype).removeprefix("torch."))
    acl.op("Add", acl.buffer(x), acl.buffer(y), Scalar(1), out)
    compare(out.numpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool"])
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(acl: Acl, name: str, dtype: str) -> None:
    x, y = values((6, 8), dtype, 1, -1, 1), values((8,), dtype, 2, -1, 1)
    out = acl.empty((6, 8), "bool")
    acl.op(f"{name}Tensor", acl.buffer(x), acl.buffer(y), out)
    compare(out.numpy(), COMPARISONS[name](to_torch(x), to_torch(y)))
    acl.op(f"{name}Scalar", acl.buffer(x), Scalar(1), out)
    compare(out.numpy(), COMPARISONS[name](to_torch(x), 1))


def test_big_integers_are_exact(acl: Acl) -> None:
    x = np.array([2**62 + 1, -(2**62) - 3, 2**53 + 1], "i8")
    out = acl.empty((3,), "int64")
    acl.op("Adds", acl.buffer(x), Scalar(1), Scalar(1), out)
    np.testing.assert_array_equal(out.numpy(), x + 1)
    for name in ("Permute",):
        acl.op(name, acl.buffer(x), (0,), out)
        np.testing.assert_array_equal(out.numpy(), x)
    acl.op("InplaceMaskedFillScalar", out, acl.buffer(np.array([True, False, False])), Scalar(2.0))
    np.testing.assert_array_equal(out.numpy(), [2, *x[1:]])


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_div_mod(acl: Acl, mode: int, dtype: str) -> None:
    x, y = values((50,), dtype, 1, -9, 9), values((50,), dtype, 2, 1, 4)
    y[::2] *= -1
    expected = torch.div(to_torch(x), to_torch(y), rounding_mode=[None, "trunc", "floor"][mode])
    out = acl.empty((50,), str(expected.dtype).removeprefix("torch."))
    acl.op("DivMod", acl.buffer(x), acl.buffer(y), c.c_int32(mode), out)
    compare(out.numpy(), expected)


def test_scalars(acl: Acl) -> None:
    x = values((3, 5))
    a, out = to_torch(x), acl.empty((3, 5), "float32")
    for name, arguments, expected in [
        ("Adds", (Scalar(2), Scalar(3)), a + 6),
        ("Subs", (Scalar(2), Scalar(3)), a - 6),
        ("Muls", (Scalar(2.5),), a * 2.5),
        ("Divs", (Scalar(3),), a / 3),
        ("PowTensorScalar", (Scalar(2),), a**2),
        ("ClampMin", (Scalar(0.5),), a.clamp_min(0.5)),
        ("Clamp", (Scalar(-1), Scalar(1.5)), a.clamp(-1, 1.5)),
        ("LeakyRelu", (Scalar(0.1),), F.leaky_relu(a, 0.1)),
        ("Threshold", (Scalar(0.5), Scalar(9)), F.threshold(a, 0.5, 9)),
    ]:
        acl.op(name, acl.buffer(x), *arguments, out)
        compare(out.numpy(), expected)
    acl.op("PowScalarTensor", Scalar(2.0), acl.buffer(x), out)
    compare(out.numpy(), 2.0**a)


def test_in_place(acl: Acl) -> None:
    x, y = values((4, 6)), values((6,), seed=1)
    for name, arguments, expected in [
        ("InplaceAdd", (acl.buffer(y), Scalar(2)), lambda a, b: a + 2 * b),
        ("InplaceSub", (acl.buffer(y), Scalar(2)), lambda a, b: a - 2 * b),
        ("InplaceMul", (acl.buffer(y),), lambda a, b: a * b),
        ("InplaceDiv", (acl.buffer(y),), lambda a, b: a / b),
        ("InplaceMuls", (Scalar(3),), lambda a, b: a * 3),
        ("InplaceDivs", (Scalar(3),), lambda a, b: a / 3),
        ("InplaceAdds", (Scalar(3), Scalar(2)), lambda a, b: a + 6),
        ("InplaceSubs", (Scalar(3), Scalar(2)), lambda a, b: a - 6),
        ("InplaceRelu", (), lambda a, b: a.relu()),
        ("InplaceExp", (), lambda a, b: a.exp()),
        ("InplaceZero", (), lambda a, b: a * 0),
        ("InplaceOne", (), lambda a, b: a * 0 + 1),
        ("InplaceFillScalar", (Scalar(7),), lambda a, b: a * 0 + 7),
        ("InplaceCopy", (acl.buffer(y),), lambda a, b: b.expand(4, 6)),
    ]:
        buffer = acl.buffer(x)
        acl.op(name, buffer, *arguments)
        compare(buffer.numpy(), expected(to_torch(x), to_torch(y)))


def test_views(acl: Acl) -> None:
    """Strides and offsets of every operand are honoured, and nothing outside the output's view is touched."""
    x = values((6, 8))
    transposed = acl.buffer(x, shape=(8, 6), strides=(1, 8))
    part = acl.buffer(x, shape=(3, 4), strides=(16, 2), offset=9)
    out = acl.empty((8, 6), "float32")
    acl.op("Adds", transposed, Scalar(1), Scalar(1), out)
    np.testing.assert_array_equal(out.numpy(), x.T + 1)
    target = acl.buffer(np.zeros((5, 7), "f4"), shape=(3, 4), strides=(7, 1), offset=8)
    acl.op("Muls", part, Scalar(2), target)
    np.testing.assert_array_equal(target.numpy(), x[1::2, 1::2] * 2)
    whole = Buffer.numpy(target)
    assert whole.sum() == (x[1::2, 1::2] * 2).sum(dtype="f4") or np.isclose(whole.sum(), (x[1::2, 1::2] * 2).sum())
    target.strides, target.shape, target.offset = None, (5, 7), 0
    full = target.numpy()
    assert np.count_nonzero(full) == 12
    assert full[0].sum() == 0


def test_overlapping_copy(acl: Acl) -> None:
    """A shifted copy within one storage reads all before it writes."""
    x = np.arange(10, dtype="f4")
    whole = acl.buffer(x)
    source = acl.buffer(x, shape=(9,), offset=0)
    source.pointer = whole.pointer
    target = acl.buffer(x, shape=(9,), offset=1)
    target.pointer = whole.pointer
    acl.op("InplaceCopy", target, source)
    np.testing.assert_array_equal(whole.numpy(), [0, *range(9)])


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("target", [*FLOATS, *INTEGERS, "bool"])
def test_cast(acl: Acl, source: str, target: str) -> None:
    x = values((33,), source, low=0 if target == "uint8" else -3)
    out = acl.empty((33,), target)
    acl.op("Cast", acl.buffer(x), c.c_int32(DTYPES[target]), out)
    compare(out.numpy(), to_torch(x).to(getattr(torch, target)))


def test_half_precision_rounds_as_torch_does(acl: Acl) -> None:
    x = np.concatenate([np.linspace(-70000, 70000, 4001), np.logspace(-9, 5, 3000), [np.nan, np.inf]]).astype("f4")
    for target in ("float16", "bfloat16"):
        out = acl.empty(x.shape, target)
        acl.op("Cast", acl.buffer(x), c.c_int32(DTYPES[target]), out)
        want = to_numpy(to_torch(x).to(getattr(torch, target)))
        np.testing.assert_array_equal(out.numpy().astype("f4"), want.astype("f4"))


def test_three_inputs(acl: Acl) -> None:
    x, y, z = values((3, 4)), values((4,), seed=1), values((3, 1), seed=2, low=1)
    a, b, d = map(to_torch, (x, y, z))
    out = acl.empty((3, 4), "float32")
    acl.op("Addcmul", acl.buffer(x), acl.buffer(y), acl.buffer(z), Scalar(0.5), out)
    compare(out.numpy(), torch.addcmul(a, b, d, value=0.5))
    acl.op("Addcdiv", acl.buffer(x), acl.buffer(y), acl.buffer(z), Scalar(0.5), out)
    compare(out.numpy(), torch.addcdiv(a, b, d, value=0.5))
    acl.op("Lerps", acl.buffer(x), acl.buffer(y), Scalar(0.3), out)
    compare(out.numpy(), torch.lerp(a, b.expand(3, 4), 0.3))
    mask = values((3, 4), "bool")
    acl.op("SWhere", acl.buffer(mask), acl.buffer(x), acl.buffer(y), out)
    compare(out.numpy(), torch.where(to_torch(mask), a, b))
    filled = acl.buffer(x)
    acl.op("InplaceMaskedFillTensor", filled, acl.buffer(mask), acl.buffer(np.float32(5)))
    compare(filled.numpy(), a.masked_fill(to_torch(mask), 5))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_activation_gradients(acl: Acl, dtype: str) -> None:
    x, g = values((5, 6), dtype), values((5, 6), dtype, 1)
    grad = to_torch(g)
    out = acl.empty((5, 6), dtype)

    def gradient(function: object) -> object:
        leaf = to_torch(x).requires_grad_()
        function(leaf).backward(grad)
        return leaf.grad

    for name, arguments, function in [
        ("GeluBackward", (), lambda v: F.gelu(v, approximate="tanh")),
        ("GeluBackwardV2", ("none",), F.gelu),
        ("GeluBackwardV2", ("tanh",), lambda v: F.gelu(v, approximate="tanh")),
        ("SiluBackward", (), F.silu),
        ("ThresholdBackward", (Scalar(0),), F.relu),
        ("LeakyReluBackward", (Scalar(0.2), c.c_bool(False)), lambda v: F.leaky_relu(v, 0.2)),
    ]:
        acl.op(name, acl.buffer(g), acl.buffer(x), *arguments, out)
        compare(out.numpy(), gradient(function), 4e-3 if dtype == "float16" else None)
    for name, function in [("SigmoidBackward", torch.sigmoid), ("TanhBackward", torch.tanh)]:
        acl.op(name, acl.buffer(g), acl.buffer(to_numpy(function(to_torch(x)))), out)
        compare(out.numpy(), gradient(function), 4e-3 if dtype == "float16" else None)
    acl.op("GeluV2", acl.buffer(x), c.c_int64(0), out)
    compare(out.numpy(), F.gelu(to_torch(x)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 4), (4, 5)),
        ((70, 300), (300, 37)),
        ((2, 3, 4), (4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((4,), (4,)),
        ((3, 4), (4,)),
        ((4,), (4, 3)),
        ((5, 0), (0, 3)),
    ],
)
def test_matmul(acl: Acl, left: tuple[int, ...], right: tuple[int, ...], dtype: str) -> None:
    x, y = values(left, dtype, 1, -1, 1), values(right, dtype, 2, -1, 1)
    expected = torch.matmul(to_torch(x), to_torch(y))
    out = acl.empty(tuple(expected.shape), dtype)
    acl.op("Matmul", acl.buffer(x), acl.buffer(y), out, c.c_int8(0))
    compare(out.numpy(), expected, {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}.get(dtype))


def test_matmul_of_transposed_views(acl: Acl) -> None:
    x, y = values((4, 3)), values((5, 4), seed=1)
    out = acl.empty((3, 5), "float32")
    acl.op(
        "Mm", acl.buffer(x, shape=(3, 4), strides=(1, 3)), acl.buffer(y, shape=(4, 5), strides=(1, 4)), out, c.c_int8(0)
    )
    compare(out.numpy(), to_torch(x).T @ to_torch(y).T)


def test_added_products(acl: Acl) -> None:
    s, x, y = values((5,)), values((3, 4), seed=1), values((4, 5), seed=2)
    out = acl.empty((3, 5), "float32")
    acl.op("Addmm", acl.buffer(s), acl.buffer(x), acl.buffer(y), Scalar(2), Scalar(0.5), out, c.c_int8(0))
    compare(out.numpy(), torch.addmm(to_torch(s), to_torch(x), to_torch(y), beta=2, alpha=0.5))
    start = values((3, 5), seed=3)
    target = acl.buffer(start)
    acl.op("InplaceAddmm", target, acl.buffer(x), acl.buffer(y), Scalar(1), Scalar(1), c.c_int8(0))
    compare(target.numpy(), torch.addmm(to_torch(start), to_torch(x), to_torch(y)))
    b1, b2, b3 = values((2, 3, 5)), values((2, 3, 4)), values((2, 4, 5))
    out = acl.empty((2, 3, 5), "float32")
    acl.op("Baddbmm", acl.buffer(b1), acl.buffer(b2), acl.buffer(b3), Scalar(1), Scalar(2), out, c.c_int8(0))
    compare(out.numpy(), torch.baddbmm(to_torch(b1), to_torch(b2), to_torch(b3), alpha=2))
    vector = acl.empty((3,), "float32")
    acl.op("Mv", acl.buffer(x), acl.buffer(s[:4]), vector, c.c_int8(0))
    compare(vector.numpy(), to_torch(x) @ to_torch(s[:4]))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dims", [(0,), (1,), (-1,), (0, 2), (0, 1, 2), ()])
def test_reductions(acl: Acl, dims: tuple[int, ...], keep: bool) -> None:
    x = values((4, 5, 6))
    a, every = to_torch(x), dims or (0, 1, 2)
    for name, arguments, function in [
        ("ReduceSum", (c.c_int32(0),), lambda: a.sum(every, keepdim=keep)),
        ("Mean", (c.c_int32(0),), lambda: a.mean(every, keepdim=keep)),
        ("Amax", (), lambda: a.amax(every, keepdim=keep)),
        ("Amin", (), lambda: a.amin(every, keepdim=keep)),
    ]:
        expected = function()
        out = acl.empty(tuple(expected.shape), "float32")
        acl.op(name, acl.buffer(x), dims, c.c_bool(keep), *arguments, out)
        compare(out.numpy(), expected)
    expected = a.var(every, unbiased=True, keepdim=keep)
    out = acl.empty(tuple(expected.shape), "float32")
    acl.op("Var", acl.buffer(x), dims, c.c_bool(True), c.c_bool(keep), out)
    compare(out.numpy(), expected)
    acl.op("Std", acl.buffer(x), dims, c.c_int64(0), c.c_bool(keep), out)
    compare(out.numpy(), a.std(every, correction=0, keepdim=keep))
    for p in (2.0, 1.0, 3.0, float("inf"), 0.0):
        acl.op("LinalgVectorNorm", acl.buffer(x), Scalar(p), dims, c.c_bool(keep), c.c_int32(0), out)
        compare(out.numpy(), torch.linalg.vector_norm(a, p, every, keepdim=keep))
        acl.op("Norm", acl.buffer(x), Scalar(p), dims, c.c_bool(keep), out)
        compare(out.numpy(), torch.linalg.vector_norm(a, p, every, keepdim=keep))


def test_reductions_of_other_types(acl: Acl) -> None:
    x = values((50, 3), "int32", low=-100, high=100)
    out = acl.empty((3,), "int64")
    acl.op("ReduceSum", acl.buffer(x), (0,), c.c_bool(False), c.c_int32(9), out)
    np.testing.assert_array_equal(out.numpy(), x.sum(0))
    flags = values((6, 3), "bool")
    truth = acl.empty((3,), "bool")
    for name, method in (("Any", "any"), ("All", "all")):
        acl.op(name, acl.buffer(flags), (0,), c.c_bool(False), truth)
        np.testing.assert_array_equal(truth.numpy(), getattr(flags, method)(0))
    one = acl.empty((), "int32")
    acl.op("Max", acl.buffer(x), one)
    assert one.numpy() == x.max()
    acl.op("Min", acl.buffer(x), one)
    assert one.numpy() == x.min()


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_extremes_along_a_dimension(acl: Acl, dim: int, dtype: str) -> None:
    x = np.random.default_rng(0).permutation(60).reshape(3, 4, 5).astype(dtype)
    shape = tuple(np.delete(x.shape, dim))
    for name, function in (("MaxDim", torch.max), ("MinDim", torch.min)):
        out, index = acl.empty(shape, dtype), acl.empty(shape, "int64")
        acl.op(name, acl.buffer(x), c.c_int64(dim), c.c_bool(False), out, index)
        expected = function(to_torch(x), dim)
        compare(out.numpy(), expected.values)
        compare(index.numpy(), expected.indices)
    for name, function in (("ArgMax", torch.argmax), ("ArgMin", torch.argmin)):
        acl.op(name, acl.buffer(x), c.c_int64(dim), c.c_bool(False), index)
        compare(index.numpy(), function(to_torch(x), dim))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_softmax_and_cumsum(acl: Acl, dim: int) -> None:
    x, g = values((3, 4, 5)), values((3, 4, 5), seed=1)
    out = acl.empty((3, 4, 5), "float32")
    for name, function in (("Softmax", F.softmax), ("LogSoftmax", F.log_softmax)):
        leaf = to_torch(x).requires_grad_()
        expected = function(leaf, dim)
        acl.op(name, acl.buffer(x), c.c_int64(dim), out)
        compare(out.numpy(), expected)
        expected.backward(to_torch(g))
        acl.op(f"{name}Backward", acl.buffer(g), acl.buffer(to_numpy(expected)), c.c_int64(dim), out)
        compare(out.numpy(), leaf.grad)
    acl.op("Cumsum", acl.buffer(x), c.c_int64(dim), c.c_int32(0), out)
    compare(out.numpy(), to_torch(x).cumsum(dim))


def test_moving_elements(acl: Acl) -> None:
    x, y = values((3, 4)), values((3, 2), seed=1)
    a, b = to_torch(x), to_torch(y)
    out = acl.empty((3, 6), "float32")
    acl.op("Cat", [acl.buffer(x), acl.buffer(y)], c.c_int64(1), out)
    compare(out.numpy(), torch.cat([a, b], 1))
    for dim in (0, 1, 2):
        stacked = torch.stack([a, a * 2], dim)
        out = acl.empty(tuple(stacked.shape), "float32")
        acl.op("Stack", [acl.buffer(x), acl.buffer(x * 2)], c.c_int64(dim), out)
        compare(out.numpy(), stacked)
    parts = [acl.empty((3, size), "float32") for size in (3, 1)]
    acl.op("SplitTensor", acl.buffer(x), c.c_uint64(3), c.c_int64(1), parts)
    for part, expected in zip(parts, torch.split(a, 3, 1)):
        compare(part.numpy(), expected)
    parts = [acl.empty((size, 4), "float32") for size in (1, 2)]
    acl.op("SplitWithSize", acl.buffer(x), (1, 2), c.c_int64(0), parts)
    for part, expected in zip(parts, torch.split(a, [1, 2], 0)):
        compare(part.numpy(), expected)
    cube = values((2, 3, 4))
    out = acl.empty((4, 2, 3), "float32")
    acl.op("Permute", acl.buffer(cube), (2, 0, 1), out)
    compare(out.numpy(), to_torch(cube).permute(2, 0, 1))
    out = acl.empty((2, 6, 8), "float32")
    acl.op("Repeat", acl.buffer(x), (2, 2, 2), out)
    compare(out.numpy(), a.repeat(2, 2, 2))
    out = acl.empty((5, 3, 4), "float32")
    acl.op("Expand", acl.buffer(x), (5, 3, 4), out)
    compare(out.numpy(), a.expand(5, 3, 4))
    for diagonal in (-1, 0, 2):
        for name, function in (("Tril", torch.tril), ("Triu", torch.triu)):
            out = acl.empty((2, 3, 4), "float32")
            acl.op(name, acl.buffer(cube), c.c_int64(diagonal), out)
            compare(out.numpy(), function(to_torch(cube), diagonal))
    for pad in ((1, 2), (1, 0, 2, 1), (-1, 1, 0, -1)):
        expected = F.pad(a, pad, value=7.0)
        out = acl.empty(tuple(expected.shape), "float32")
        acl.op("ConstantPadNd", acl.buffer(x), pad, Scalar(7.0), out)
        compare(out.numpy(), expected)
    out = acl.empty((4,), "int64")
    acl.op("Arange", Scalar(3), Scalar(14), Scalar(3), out)
    np.testing.assert_array_equal(out.numpy(), [3, 6, 9, 12])
    out = acl.empty((5,), "float32")
    acl.op("Arange", Scalar(0.0), Scalar(1.0), Scalar(0.2), out)
    compare(out.numpy(), torch.arange(0, 1, 0.2))
    labels = np.array([2, 0, 1], "i8")
    out = acl.empty((3, 4), "int64")
    acl.op(
        "OneHot",
        acl.buffer(labels),
        c.c_int32(4),
        acl.buffer(np.array([1], "i8")),
        acl.buffer(np.array([0], "i8")),
        c.c_int64(-1),
        out,
    )
    compare(out.numpy(), F.one_hot(to_torch(labels), 4))


def test_foreach(acl: Acl) -> None:
    xs, ys, zs = ([values(shape, seed=seed, low=1) for shape in ((3, 4), (5,), ())] for seed in (1, 2, 3))
    a, b, d = ([to_torch(array) for array in group] for group in (xs, ys, zs))

    def buffers(arrays: list[np.ndarray]) -> list[Buffer]:
        return [acl.buffer(array) for array in arrays]

    for name, arguments, expected in [
        ("ForeachAddScalarV2", (buffers(xs), Scalar(2.0)), torch._foreach_add(a, 2.0)),
        ("ForeachMulScalarV2", (buffers(xs), Scalar(2.0)), torch._foreach_mul(a, 2.0)),
        ("ForeachAddListV2", (buffers(xs), buffers(ys), Scalar(0.5)), torch._foreach_add(a, b, alpha=0.5)),
        ("ForeachSubListV2", (buffers(xs), buffers(ys), Scalar(0.5)), torch._foreach_sub(a, b, alpha=0.5)),
        ("ForeachLerpScalar", (buffers(xs), buffers(ys), Scalar(0.3)), torch._foreach_lerp(a, b, 0.3)),
        ("ForeachMulList", (buffers(xs), buffers(ys)), torch._foreach_mul(a, b)),
        ("ForeachDivList", (buffers(xs), buffers(ys)), torch._foreach_div(a, b)),
        ("ForeachSqrt", (buffers(xs),), torch._foreach_sqrt(a)),
        ("ForeachCopy", (buffers(xs),), a),
        (
            "ForeachAddcmulScalarV2",
            (buffers(xs), buffers(ys), buffers(zs), Scalar(0.5)),
            torch._foreach_addcmul(a, b, d, 0.5),
        ),
        (
            "ForeachAddcdivScalarV2",
            (buffers(xs), buffers(ys), buffers(zs), Scalar(0.5)),
            torch._foreach_addcdiv(a, b, d, 0.5),
        ),
    ]:
        outs = [acl.empty(array.shape, "float32") for array in xs]
        acl.op(name, *arguments, outs)
        for out, want in zip(outs, expected):
            compare(out.numpy(), want)
    outs = [acl.empty((), "float32") for _ in xs]
    acl.op("ForeachNorm", buffers(xs), Scalar(2.0), outs)
    for out, want in zip(outs, torch._foreach_norm(a)):
        compare(out.numpy(), want)
    targets = buffers(xs)
    acl.op("ForeachZeroInplace", targets)
    assert all(not target.numpy().any() for target in targets)


def test_refusals(acl: Acl) -> None:
    """An operator refuses unsupported arguments in phase 1, with a text that names them."""
    x, i = acl.buffer(values((3, 4))), acl.buffer(values((3, 4), "int32"))
    for name, arguments, part in [
        ("Add", (x, acl.buffer(values((5,))), Scalar(1), acl.empty((3, 4), "float32")), "broadcast"),
        ("Exp", (x, acl.empty((3, 4), "int32")), "INT32"),
        ("Mm", (x, x, acl.empty((3, 4), "float32"), c.c_int8(0)), "inner"),
        ("Mm", (i, i, acl.empty((3, 4), "int32"), c.c_int8(0)), "floating"),
        ("ReduceSum", (x, (5,), c.c_bool(False), c.c_int32(0), acl.empty((3,), "float32")), "dimension 5"),
        ("Softmax", (x, c.c_int64(2), acl.empty((3, 4), "float32")), "dimension 2"),
        ("Add", (x, x, None, x), "NULL"),
        ("Permute", (x, (0, 0), x), "permutation"),
        ("Cat", ([x, x], c.c_int64(0), acl.empty((5, 4), "float32")), "fit"),
    ]:
        with pytest.raises(AclError, match=part) as caught:
            acl.op(name, *arguments)
        assert caught.value.code in (161001, 161002)


# -- normalisation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm(acl: Acl, affine: bool, dtype: str) -> None:
    x, g, w, b = values((4, 3, 8), dtype), values((4, 3, 8), dtype, 1), values((8,), dtype, 2), values((8,), dtype, 3)
    leaf, weight, bias = (to_torch(array).float().requires_grad_() for array in (x, w, b))
    expected = F.layer_norm(leaf, (8,), weight if affine else None, bias if affine else None, 1e-5)
    expected.backward(to_torch(g).float())
    out, mean, rstd = acl.empty(x.shape, dtype), acl.empty((4, 3, 1), "float32"), acl.empty((4, 3, 1), "float32")
    wb, bb = (acl.buffer(w), acl.buffer(b)) if affine else (None, None)
    acl.op("LayerNorm", acl.buffer(x), (8,), wb, bb, c.c_double(1e-5), out, mean, rstd)
    tolerance = None if dtype == "float32" else 1e-2
    compare(out.numpy(), expected, tolerance)
    dx, dw, db = acl.empty(x.shape, dtype), acl.empty((8,), "float32"), acl.empty((8,), "float32")
    acl.op(
        "LayerNormBackward",
        acl.buffer(g),
        acl.buffer(x),
        (8,),
        mean,
        rstd,
        wb or acl.buffer(np.ones(8, dtype)),
        bb,
        (True, True, True),
        dx,
        dw,
        db,
    )
    compare(dx.numpy(), leaf.grad, tolerance)
    if affine:
        compare(dw.numpy(), weight.grad, 1e-4)
        compare(db.numpy(), bias.grad, 1e-4)


def test_rms_and_group_norm(acl: Acl) -> None:
    x, g, w, b = values((2, 6, 5)), values((2, 6, 5), seed=1), values((5,), seed=2), values((6,), seed=3)
    leaf, weight = to_torch(x).requires_grad_(), to_torch(w).requires_grad_()
    expected = F.rms_norm(leaf, (5,), weight, 1e-6)
    expected.backward(to_torch(g))
    out, rstd = acl.empty(x.shape, "float32"), acl.empty((2, 6, 1), "float32")
    acl.op("RmsNorm", acl.buffer(x), acl.buffer(w), c.c_double(1e-6), out, rstd)
    compare(out.numpy(), expected)
    dx, dw = acl.empty(x.shape, "float32"), acl.empty((5,), "float32")
    acl.op("RmsNormGrad", acl.buffer(g), acl.buffer(x), rstd, acl.buffer(w), dx, dw)
    compare(dx.numpy(), leaf.grad, 1e-4)
    compare(dw.numpy(), weight.grad, 1e-4)
    gamma = values((6,), seed=4)
    mean, rstd = acl.empty((2, 3), "float32"), acl.empty((2, 3), "float32")
    integers = [c.c_int64(n) for n in (2, 6, 5, 3)]
    acl.op("GroupNorm", acl.buffer(x), acl.buffer(gamma), acl.buffer(b), *integers, c.c_double(1e-5), out, mean, rstd)
    compare(out.numpy(), F.group_norm(to_torch(x), 3, to_torch(gamma), to_torch(b)))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(6, 4), (3, 4, 5), (2, 4, 3, 3)])
def test_batch_norm(acl: Acl, shape: tuple[int, ...], training: bool) -> None:
    x, g, w, b = values(shape), values(shape, seed=1), values((4,), seed=2), values((4,), seed=3)
    running_mean, running_var = values((4,), seed=4), values((4,), seed=5, low=1)
    leaf, weight, bias = (to_torch(array).requires_grad_() for array in (x, w, b))
    theirs = [to_torch(running_mean), to_torch(running_var)]
    expected = F.batch_norm(leaf, *theirs, weight, bias, training, 0.1, 1e-5)
    expected.backward(to_torch(g))
    ours = [acl.buffer(running_mean), acl.buffer(running_var)]
    out, mean, invstd = acl.empty(shape, "float32"), acl.empty((4,), "float32"), acl.empty((4,), "float32")
    acl.op(
        "BatchNorm",
        acl.buffer(x),
        acl.buffer(w),
        acl.buffer(b),
        *ours,
        c.c_bool(training),
        c.c_double(0.1),
        c.c_double(1e-5),
        out,
        mean,
        invstd,
    )
    compare(out.numpy(), expected)
    for own, want in zip(ours, theirs):
        compare(own.numpy(), want)
    dx, dw, db = acl.empty(shape, "float32"), acl.empty((4,), "float32"), acl.empty((4,), "float32")
    acl.op(
        "BatchNormBackward",
        acl.buffer(g),
        acl.buffer(x),
        acl.buffer(w),
        *ours,
        mean,
        invstd,
        c.c_bool(training),
        c.c_double(1e-5),
        (True, True, True),
        dx,
        dw,
        db,
    )
    for own, want in ((dx, leaf.grad), (dw, weight.grad), (db, bias.grad)):
        compare(own.numpy(), want, 1e-4)


# -- convolution and pooling -------------------------------------------------------------------------------------------

CONVOLUTIONS = [  # input, weight, stride, padding, dilation, transposed, output padding, groups
    ((2, 4, 9), (6, 4, 3), (1,), (1,), (1,), False, (0,), 1),
    ((2, 4, 9, 8), (6, 2, 3, 2), (2, 1), (1, 0), (1, 2), False, (0, 0), 2),
    ((1, 3, 8, 8), (3, 1, 3, 3), (1, 1), (1, 1), (1, 1), False, (0, 0), 3),
    ((2, 2, 5, 6, 4), (3, 2, 2, 3, 2), (1, 2, 1), (0, 1, 1), (1, 1, 1), False, (0, 0, 0), 1),
    ((2, 4, 5, 6), (4, 3, 3, 3), (2, 2), (1, 1), (1, 1), True, (1, 0), 1),
    ((2, 4, 7), (4, 2, 3), (2,), (0,), (2,), True, (0,), 2),
]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(acl: Acl, case: tuple, dtype: str) -> None:
    shape, kernel, stride, padding, dilation, transposed, output_padding, groups = case
    outs = kernel[1] * groups if transposed else kernel[0]
    x, w, b = values(shape, dtype, 1, -1, 1), values(kernel, dtype, 2, -1, 1), values((outs,), dtype, 3)
    leaf, weight, bias = (to_torch(array).float().requires_grad_() for array in (x, w, b))
    expected = torch.convolution(leaf, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    g = values(tuple(expected.shape), dtype, 4, -1, 1)
    expected.backward(to_torch(g).float())
    tolerance = {"float32": 1e-4, "float16": 3e-2, "bfloat16": 2.5e-1}[dtype]
    out = acl.empty(tuple(expected.shape), dtype)
    acl.op(
        "Convolution",
        acl.buffer(x),
        acl.buffer(w),
        acl.buffer(b),
        stride,
        padding,
        dilation,
        c.c_bool(transposed),
        output_padding,
        c.c_int64(groups),
        out,
        c.c_int8(0),
    )
    compare(out.numpy(), expected, tolerance)
    dx, dw, db = acl.empty(shape, dtype), acl.empty(kernel, dtype), acl.empty((outs,), dtype)
    acl.op(
        "ConvolutionBackward",
        acl.buffer(g),
        acl.buffer(x),
        acl.buffer(w),
        (outs,),
        stride,
        padding,
        dilation,
        c.c_bool(transposed),
        output_padding,
        c.c_int32(groups),
        (True, True, True),
        c.c_int8(0),
        dx,
        dw,
        db,
    )
    for own, want in ((dx, leaf.grad), (dw, weight.grad), (db, bias.grad)):
        compare(own.numpy(), want, tolerance)
    only = acl.empty(kernel, dtype)
    acl.op(
        "ConvolutionBackward",
        acl.buffer(g),
        acl.buffer(x),
        acl.buffer(w),
        None,
        stride,
        padding,
        dilation,
        c.c_bool(transposed),
        output_padding,
        c.c_int32(groups),
        (False, True, False),
        c.c_int8(0),
        None,
        only,
        None,
    )
    np.testing.assert_array_equal(only.numpy(), dw.numpy())


@pytest.mark.parametrize(
    "arguments",
    [
        ((2, 2), (2, 2), (0, 0), (1, 1), False),
        ((3, 2), (2, 1), (1, 1), (1, 1), True),
        ((2, 3), (2, 2), (0, 1), (2, 1), False),
    ],
)
def test_max_pool(acl: Acl, arguments: tuple) -> None:
    kernel, stride, padding, dilation, ceil = arguments
    x = values((2, 3, 9, 8))
    leaf = to_torch(x).requires_grad_()
    expected, where = F.max_pool2d(leaf, kernel, stride, padding, dilation, ceil, return_indices=True)
    g = values(tuple(expected.shape), seed=1)
    expected.backward(to_torch(g))
    common = (kernel, stride, padding, dilation, c.c_bool(ceil))
    out, index, dx = acl.empty(g.shape, "float32"), acl.empty(g.shape, "int32"), acl.empty(x.shape, "float32")
    acl.op("MaxPool2dWithIndices", acl.buffer(x), *common, out, index)
    compare(out.numpy(), expected)
    np.testing.assert_array_equal(index.numpy(), where.numpy())
    acl.op("MaxPool2dWithIndicesBackward", acl.buffer(g), acl.buffer(x), index, *common, dx)
    compare(dx.numpy(), leaf.grad)
    mask = acl.empty((2, 3, kernel[0] * kernel[1], (-(-g.shape[2] * g.shape[3] // 16) + 1) * 32), "int8")
    again, dx = acl.empty(g.shape, "float32"), acl.empty(x.shape, "float32")
    acl.op("MaxPool2dWithMask", acl.buffer(x), *common, again, mask)
    np.testing.assert_array_equal(again.numpy(), out.numpy())
    acl.op("MaxPool2dWithMaskBackward", acl.buffer(g), acl.buffer(x), mask, *common, dx)
    compare(dx.numpy(), leaf.grad)


@pytest.mark.parametrize(
    "arguments",
    [
        ((2, 2), (2, 2), (0, 0), False, True, 0),
        ((3, 3), (2, 2), (1, 1), True, False, 0),
        ((3, 2), (2, 2), (1, 1), True, True, 0),
        ((2, 2), (1, 1), (0, 0), False, True, 3),
    ],
)
def test_avg_pool(acl: Acl, arguments: tuple) -> None:
    kernel, stride, padding, ceil, count_pad, divisor = arguments
    x = values((2, 3, 8, 9))
    leaf = to_torch(x).requires_grad_()
    expected = F.avg_pool2d(leaf, kernel, stride, padding, ceil, count_pad, divisor or None)
    g = values(tuple(expected.shape), seed=1)
    expected.backward(to_torch(g))
    common = (kernel, stride, padding, c.c_bool(ceil), c.c_bool(count_pad), c.c_int64(divisor), c.c_int8(0))
    out, dx = acl.empty(g.shape, "float32"), acl.empty(x.shape, "float32")
    acl.op("AvgPool2d", acl.buffer(x), *common, out)
    compare(out.numpy(), expected)
    acl.op("AvgPool2dBackward", acl.buffer(g), acl.buffer(x), *common, dx)
    compare(dx.numpy(), leaf.grad)


@pytest.mark.parametrize("size", [(1, 1), (3, 4), (7, 5)])
def test_adaptive_pool(acl: Acl, size: tuple[int, int]) -> None:
    x = values((2, 3, 7, 9))
    leaf = to_torch(x).requires_grad_()
    expected = F.adaptive_avg_pool2d(leaf, size)
    g = values(tuple(expected.shape), seed=1)
    expected.backward(to_torch(g))
    out, dx = acl.empty(g.shape, "float32"), acl.empty(x.shape, "float32")
    acl.op("AdaptiveAvgPool2d", acl.buffer(x), size, out)
    compare(out.numpy(), expected)
    acl.op("AdaptiveAvgPool2dBackward", acl.buffer(g), acl.buffer(x), dx)
    compare(dx.numpy(), leaf.grad)


# -- losses ------------------------------------------------------------------------------------------------------------

REDUCTIONS = ["none", "mean", "sum"]


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("shape", [(5, 4), (2, 4, 3, 3)])
def test_nll_loss(acl: Acl, shape: tuple[int, ...], reduction: int) -> None:
    x, w = values(shape), values((4,), seed=2, low=0.5)
    target = np.random.default_rng(1).integers(0, 4, (shape[0], *shape[2:]))
    target.reshape(-1)[0] = -100
    leaf = to_torch(x).requires_grad_()
    expected = F.nll_loss(leaf, to_torch(target), to_torch(w), ignore_index=-100, reduction=REDUCTIONS[reduction])
    g = values(tuple(expected.shape), seed=3)
    expected.backward(to_torch(g))
    suffix = "2d" if len(shape) == 4 else ""
    common = (acl.buffer(x), acl.buffer(target), acl.buffer(w), c.c_int64(reduction), c.c_int64(-100))
    out, total, dx = acl.empty(g.shape, "float32"), acl.empty((), "float32"), acl.empty(shape, "float32")
    acl.op(f"NLLLoss{suffix}", *common, out, total)
    compare(out.numpy(), expected)
    acl.op(f"NLLLoss{suffix}Backward", acl.buffer(g), *common, total, dx)
    compare(dx.numpy(), leaf.grad)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy(acl: Acl, reduction: str, weighted: bool, smoothing: float) -> None:
    x, w, target = values((6, 5)), values((5,), seed=2, low=0.5), np.array([0, 4, 2, -100, 1, 3])
    leaf = to_torch(x).requires_grad_()
    expected = F.cross_entropy(
        leaf, to_torch(target), to_torch(w) if weighted else None, reduction=reduction, label_smoothing=smoothing
    )
    g = values(tuple(expected.shape), seed=3)
    expected.backward(to_torch(g))
    weight = acl.buffer(w) if weighted else None
    out, log_prob, dx = acl.empty(g.shape, "float32"), acl.empty((6, 5), "float32"), acl.empty((6, 5), "float32")
    acl.op(
        "CrossEntropyLoss",
        acl.buffer(x),
        acl.buffer(target),
        weight,
        reduction,
        c.c_int64(-100),
        c.c_double(smoothing),
        c.c_double(0),
        c.c_bool(False),
        out,
        log_prob,
        None,
        None,
    )
    compare(out.numpy(), expected)
    compare(log_prob.numpy(), F.log_softmax(leaf, 1))
    acl.op(
        "CrossEntropyLossGrad",
        acl.buffer(g),
        log_prob,
        acl.buffer(target),
        weight,
        None,
        None,
        reduction,
        c.c_int64(-100),
        c.c_double(smoothing),
        c.c_double(0),
        dx,
    )
    compare(dx.numpy(), leaf.grad)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_losses_of_pairs(acl: Acl, reduction: int) -> None:
    x, y, w, p = (
        values((4, 5)),
        values((4, 5), seed=1, low=0, high=1),
        values((5,), seed=2, low=0.5),
        values((5,), seed=3, low=0.5),
    )
    for name, arguments, function in [
        ("MseLoss", (), lambda v: F.mse_loss(v, to_torch(y), reduction=REDUCTIONS[reduction])),
        (
            "BinaryCrossEntropyWithLogits",
            (None, None),
            lambda v: F.binary_cross_entropy_with_logits(v, to_torch(y), reduction=REDUCTIONS[reduction]),
        ),
        (
            "BinaryCrossEntropyWithLogits",
            (acl.buffer(w), acl.buffer(p)),
            lambda v: F.binary_cross_entropy_with_logits(
                v, to_torch(y), to_torch(w), pos_weight=to_torch(p), reduction=REDUCTIONS[reduction]
            ),
        ),
    ]:
        leaf = to_torch(x).requires_grad_()
        expected = function(leaf)
        g = values(tuple(expected.shape), seed=4)
        expected.backward(to_torch(g))
        out, dx = acl.empty(g.shape, "float32"), acl.empty(x.shape, "float32")
        acl.op(name, acl.buffer(x), acl.buffer(y), *arguments, c.c_int64(reduction), out)
        compare(out.numpy(), expected)
        acl.op(f"{name}Backward", acl.buffer(g), acl.buffer(x), acl.buffer(y), *arguments, c.c_int64(reduction), dx)
        compare(dx.numpy(), leaf.grad)


# -- indices -----------------------------------------------------------------------------------------------------------


def test_embedding(acl: Acl) -> None:
    w, index = values((7, 4)), np.array([[1, 2, 6], [1, 0, 1]])
    g = values((2, 3, 4), seed=1)
    out = acl.empty((2, 3, 4), "float32")
    acl.op("Embedding", acl.buffer(w), acl.buffer(index), out)
    np.testing.assert_array_equal(out.numpy(), w[index])
    dw = acl.empty((7, 4), "float32")
    for padding in (-1, 1):
        for scaled in (False, True):
            acl.op(
                "EmbeddingDenseBackward",
                acl.buffer(g),
                acl.buffer(index),
                c.c_uint64(7),
                c.c_uint64(padding),
                c.c_bool(scaled),
                dw,
            )
            compare(
                dw.numpy(), torch.ops.aten.embedding_dense_backward(to_torch(g), to_torch(index), 7, padding, scaled)
            )


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
def test_gather_and_scatter(acl: Acl, dtype: str) -> None:
    x, s = values((4, 5), dtype), values((4, 5), dtype, 1)
    index = np.random.default_rng(0).integers(0, 4, (3, 5))
    columns = np.random.default_rng(0).integers(0, 5, (4, 2))
    a, b, i = to_torch(x), to_torch(s), to_torch(index)
    out = acl.empty((3, 5), dtype)
    acl.op("Gather", acl.buffer(x), c.c_int64(0), acl.buffer(index), out)
    compare(out.numpy(), a.gather(0, i))
    out = acl.empty((4, 2), dtype)
    acl.op("Gather", acl.buffer(x), c.c_int64(-1), acl.buffer(columns.astype("int32")), out)
    compare(out.numpy(), a.gather(-1, to_torch(columns)))
    out = acl.empty((4, 3), dtype)
    acl.op("IndexSelect", acl.buffer(x), c.c_int64(1), acl.buffer(np.array([3, 0, 3])), out)
    compare(out.numpy(), a.index_select(1, torch.tensor([3, 0, 3])))
    unique = np.stack([np.random.default_rng(k).permutation(4)[:3] for k in range(5)], 1)
    out = acl.empty((4, 5), dtype)
    for reduce, which, rows in ((0, "", unique), (1, "sum", index), (2, "prod", unique)):
        for source in (b, torch.full_like(b, 2)):
            rule = (
                torch.scatter_reduce(a, 0, to_torch(rows), source, which)
                if which
                else torch.scatter(a, 0, to_torch(rows), source)
            )
            if source is b:
                acl.op("Scatter", acl.buffer(x), c.c_int64(0), acl.buffer(rows), acl.buffer(s), c.c_int64(reduce), out)
            else:
                acl.op("ScatterValue", acl.buffer(x), c.c_int64(0), acl.buffer(rows), Scalar(2), c.c_int64(reduce), out)
            compare(out.numpy(), rule)
    target = acl.buffer(x)
    acl.op("InplaceScatter", target, c.c_int64(0), acl.buffer(unique), acl.buffer(s), c.c_int64(0))
    compare(target.numpy(), torch.scatter(a, 0, to_torch(unique), b))
    target = acl.buffer(x)
    acl.op("InplaceScatterValue", target, c.c_int64(0), acl.buffer(unique), Scalar(3), c.c_int64(0))
    compare(target.numpy(), torch.scatter(a, 0, to_torch(unique), 3))
    acl.op("ScatterAdd", acl.buffer(x), c.c_int64(0), acl.buffer(index), acl.buffer(s), out)
    compare(out.numpy(), torch.scatter_add(a, 0, i, b))
    acl.op("IndexAdd", acl.buffer(x), c.c_int64(0), acl.buffer(np.array([1, 3, 1, 0])), acl.buffer(s), Scalar(2), out)
    compare(out.numpy(), torch.index_add(a, 0, torch.tensor([1, 3, 1, 0]), b, alpha=2))


INDICES = [
    ([2, 0, -1],),
    ([[0, 1], [2, 3]],),
    ([1, 2], [0, 3]),
    (None, [1, 0]),
    (None, None, [2, 1, 0]),
    ([0, 1], None, [1, 2]),
    ([[0], [1]], [0, 2]),
    (None, [1, 0], [2, 3]),
]


@pytest.mark.parametrize("indices", INDICES)
def test_index(acl: Acl, indices: tuple) -> None:
    x = values((4, 5, 6))
    key = tuple(slice(None) if index is None else np.array(index) for index in indices)
    passed = [acl.buffer(np.zeros(0, "i8") if index is None else np.array(index)) for index in indices]
    expected = x[key]
    out = acl.empty(expected.shape, "float32")
    acl.op("Index", acl.buffer(x), passed, out)
    np.testing.assert_array_equal(out.numpy(), expected)
    source = values(expected.shape, seed=1)
    for accumulate in (False, True):
        target, theirs = acl.buffer(x), to_torch(x)
        acl.op("IndexPutImpl", target, passed, acl.buffer(source), c.c_bool(accumulate), c.c_bool(False))
        keys = tuple(slice(None) if index is None else torch.tensor(index) for index in indices)
        if accumulate:
            tensors = [
                torch.arange(size).view([-1 if d == k else 1 for d in range(3)]) for k, size in enumerate((4, 5, 6))
            ]
            flat = (tensors[0] * 30 + tensors[1] * 6 + tensors[2])[keys]
            theirs.view(-1).index_add_(0, flat.reshape(-1), to_torch(source).reshape(-1))
        else:
            theirs[keys] = to_torch(source)
        compare(target.numpy(), theirs)


def test_masks(acl: Acl) -> None:
    x = values((4, 5))
    mask = values((4, 5), "bool")
    out = acl.empty((int(mask.sum()),), "float32")
    acl.op("Index", acl.buffer(x), [acl.buffer(mask)], out)
    np.testing.assert_array_equal(out.numpy(), x[mask])
    target = acl.buffer(x)
    acl.op("IndexPutImpl", target, [acl.buffer(mask)], acl.buffer(np.float32(9)), c.c_bool(False), c.c_bool(False))
    np.testing.assert_array_equal(target.numpy(), np.where(mask, 9, x))
    rows = np.array([True, False, True, False])
    out = acl.empty((2, 5), "float32")
    acl.op("Index", acl.buffer(x), [acl.buffer(rows)], out)
    np.testing.assert_array_equal(out.numpy(), x[rows])


def test_masked_select_tells_its_shape(acl: Acl) -> None:
    x, mask = values((4, 5)), values((5,), "bool")
    out = acl.empty((20,), "float32")
    handles = [c.c_void_p(buffer.tensor()) for buffer in (acl.buffer(x), acl.buffer(mask), out)]
    size, executor = c.c_uint64(), c.c_void_p()
    acl.call("aclnnMaskedSelectGetWorkspaceSize", *handles, c.byref(size), c.byref(executor))
    acl.call("aclnnMaskedSelect", None, size, executor, None)
    dims, count = c.POINTER(c.c_int64)(), c.c_uint64()
    acl.call("aclGetViewShape", handles[2], c.byref(dims), c.byref(count))
    expected = x[np.broadcast_to(mask, x.shape)]
    assert (count.value, dims[0]) == (1, expected.size)
    np.testing.assert_array_equal(out.numpy()[: expected.size], expected)
    for handle in handles:
        acl.call("aclDestroyTensor", handle)


def test_index_out_of_range_fails_at_synchronisation(acl: Acl) -> None:
    out = acl.empty((1, 4), "float32")
    acl.op("Embedding", acl.buffer(values((3, 4))), acl.buffer(np.array([3])), out)
    with pytest.raises(AclError, match="index 3 is out of range") as caught:
        acl.call("aclrtSynchronizeDevice")
    assert caught.value.code == 507015
    acl.call("aclrtSynchronizeDevice")  # told once


# -- random numbers ----------------------------------------------------------------------------------------------------


def test_random_numbers(acl: Acl) -> None:
    draw = acl.empty((20000,), "float32")
    acl.op("InplaceUniform", draw, c.c_double(-1), c.c_double(3), c.c_uint64(7), c.c_uint64(10))
    first = draw.numpy()
    assert (
        first.min() >= -1
    )
    assert (
        first.max() < 3
    )
    assert (
        abs(first.mean() - 1) < 0.05
    )
    assert (
        abs(first.std() - 4 / 12**0.5) < 0.05
    )
    acl.op("InplaceUniform", draw, c.c_double(-1), c.c_double(3), c.c_uint64(7), c.c_uint64(10))
    np.testing.assert_array_equal(draw.numpy(), first)
    acl.op("InplaceUniform", draw, c.c_double(-1), c.c_double(3), c.c_uint64(7), c.c_uint64(20))
    assert abs(np.corrcoef(draw.numpy(), first)[0, 1]) < 0.03
    for dtype in ("float16", "bfloat16", "float64"):
        other = acl.empty((20000,), dtype)
        acl.op("InplaceUniform", other, c.c_double(0), c.c_double(1), c.c_uint64(7), c.c_uint64(10))
        assert other.numpy().astype("f8").max() < 1
    acl.op("InplaceNormal", draw, c.c_float(2), c.c_float(3), c.c_int64(1), c.c_int64(0))
    assert abs(draw.numpy().mean() - 2) < 0.1
    assert abs(draw.numpy().std() - 3) < 0.1
    acl.op("InplaceBernoulli", draw, Scalar(0.25), c.c_int64(1), c.c_int64(0))
    assert set(np.unique(draw.numpy())) == {0, 1}
    assert abs(draw.numpy().mean() - 0.25) < 0.02
    whole = acl.empty((20000,), "int64")
    acl.op("InplaceRandom", whole, c.c_int64(-3), c.c_int64(4), c.c_int64(1), c.c_int64(0))
    assert set(np.unique(whole.numpy())) == set(range(-3, 4))
    order = acl.empty((100,), "int64")
    acl.op("Randperm", c.c_int64(100), c.c_int64(3), c.c_int64(0), order)
    assert sorted(order.numpy()) == list(range(100))
    assert list(order.numpy()) != list(range(100))


def test_dropout(acl: Acl) -> None:
    x = np.ones((60, 50), "f4")
    out, mask = acl.empty(x.shape, "float32"), acl.empty((-(-3000 // 128) * 16,), "uint8")
    acl.op("Dropout", acl.buffer(x), c.c_double(0.25), c.c_bool(True), c.c_int64(5), c.c_int64(0), out, mask)
    kept = np.unpackbits(mask.numpy(), bitorder="little")[:3000].reshape(60, 50).astype(bool)
    assert abs(kept.mean() - 0.75) < 0.03
    np.testing.assert_allclose(out.numpy(), kept / 0.75, rtol=1e-6)
    again = acl.empty(mask.shape, "uint8")
    acl.op("DropoutGenMask", (60, 50), c.c_double(0.25), c.c_int64(5), c.c_int64(0), again)
    np.testing.assert_array_equal(again.numpy(), mask.numpy())
    acl.op("DropoutGenMaskV2", (60, 50), c.c_double(0.25), c.c_int64(5), c.c_int64(0), c.c_int32(0), again)
    np.testing.assert_array_equal(again.numpy(), mask.numpy())
    applied = acl.empty(x.shape, "float32")
    acl.op("DropoutDoMask", acl.buffer(x), mask, c.c_double(0.25), applied)
    np.testing.assert_array_equal(applied.numpy(), out.numpy())
    acl.op("DropoutBackward", acl.buffer(x), mask, c.c_double(1 / 0.75), applied)
    np.testing.assert_allclose(applied.numpy(), out.numpy(), rtol=1e-6)
    untouched = acl.buffer(np.full(mask.shape, 170, "u1"))
    acl.op("Dropout", acl.buffer(x), c.c_double(0.5), c.c_bool(False), c.c_int64(5), c.c_int64(0), out, untouched)
    np.testing.assert_array_equal(out.numpy(), x)
    assert (untouched.numpy() == 170).all()


# -- order, optimizer, attention ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_sort_and_topk(acl: Acl, dim: int, dtype: str) -> None:
    x = values((5, 6), dtype, low=-20, high=20)
    for descending in (False, True):
        out, index = acl.empty((5, 6), dtype), acl.empty((5, 6), "int64")
        acl.op("Sort", acl.buffer(x), c.c_bool(True), c.c_int64(dim), c.c_bool(descending), out, index)
        expected = torch.sort(to_torch(x), stable=True, dim=dim, descending=descending)
        compare(out.numpy(), expected.values)
        compare(index.numpy(), expected.indices)
        shape = tuple(3 if k == dim % 2 else size for k, size in enumerate((5, 6)))
        out, index = acl.empty(shape, dtype), acl.empty(shape, "int64")
        acl.op("Topk", acl.buffer(x), c.c_int64(3), c.c_int64(dim), c.c_bool(descending), c.c_bool(True), out, index)
        compare(out.numpy(), torch.topk(to_torch(x), 3, dim, descending).values)
        np.testing.assert_array_equal(np.take_along_axis(x, index.numpy(), dim), out.numpy())


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
def test_adam_w(acl: Acl, amsgrad: bool, maximize: bool) -> None:
    start = values((3, 4))
    parameter = torch.nn.Parameter(to_torch(start))
    optimizer = torch.optim.AdamW(
        [parameter], lr=0.01, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1, amsgrad=amsgrad, maximize=maximize
    )
    var, m, v = acl.buffer(start), acl.empty((3, 4), "float32"), acl.empty((3, 4), "float32")
    largest = acl.empty((3, 4), "float32") if amsgrad else None
    for step in (1, 2, 3):
        g = values((3, 4), seed=step)
        parameter.grad = to_torch(g)
        optimizer.step()
        acl.op(
            "ApplyAdamWV2",
            var,
            m,
            v,
            largest,
            acl.buffer(g),
            acl.buffer(np.array([step], "i8" if step == 2 else "f4")),
            *[c.c_float(number) for number in (0.01, 0.9, 0.99, 0.1, 1e-8)],
            c.c_bool(amsgrad),
            c.c_bool(maximize),
        )
        compare(var.numpy(), parameter)


@pytest.mark.parametrize("layout", ["BNSD", "BSND", "BSH", "SBH"])
@pytest.mark.parametrize("causal", [0, 1, 2])
def test_flash_attention(acl: Acl, layout: str, causal: int) -> None:
    """Causal: 0 no mask, 1 a whole mask, 2 the device's own causal mode; two query heads share a key head."""
    q, k, v = values((2, 4, 5, 8)), values((2, 2, 5, 8), seed=1), values((2, 2, 5, 8), seed=2)
    expected = F.scaled_dot_product_attention(*map(to_torch, (q, k, v)), is_causal=causal > 0, enable_gqa=True)

    def arranged(array: np.ndarray) -> np.ndarray:
        order = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "BSH": (0, 2, 1, 3), "SBH": (2, 0, 1, 3)}[layout]
        moved = np.ascontiguousarray(array.transpose(order))
        return moved if layout.endswith("D") else moved.reshape(*moved.shape[:2], -1)

    mask = acl.buffer(np.triu(np.ones((5, 5), bool), 1)) if causal == 1 else None
    out = acl.empty(arranged(q).shape, "float32")
    top, total = acl.empty((2, 4, 5, 8), "float32"), acl.empty((2, 4, 5, 8), "float32")
    acl.op(
        "FlashAttentionScore",
        *[acl.buffer(arranged(array)) for array in (q, k, v)],
        None,
        None,
        None,
        mask,
        None,
        c.c_double(8**-0.5),
        c.c_double(1),
        c.c_int64(65536),
        c.c_int64(65536),
        c.c_int64(4),
        layout,
        c.c_int64(0),
        c.c_int64(2 if causal == 2 else 0),
        top,
        total,
        None,
        out,
    )
    compare(out.numpy(), arranged(to_numpy(expected)))

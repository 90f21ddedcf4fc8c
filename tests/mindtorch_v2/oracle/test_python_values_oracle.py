"""Python's and NumPy's values beside tensors and as tensors, against PyTorch: results, types and errors."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

from harness import ours, theirs  # noqa: E402


def answer(t: Any, function: Any) -> tuple[Any, ...]:
    """What a call gives, or the error it raises, in words that can be compared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = function(t)
        except Exception as error:  # the error is what is compared
            return type(error).__name__, str(error).split(" (Triggered")[0]
    if isinstance(made, t.Tensor):
        return str(made.dtype), tuple(made.shape), made.tolist(), made.requires_grad
    return (repr(made),)


def same(function: Any) -> None:
    assert answer(ours, function) == answer(theirs, function)


OPERATORS = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift",
                 "rshift", "eq", "ne", "lt", "le", "gt", "ge", "iadd", "isub", "imul", "itruediv", "imatmul", "ipow",
                 "iand")
}
STRANGERS = {"None": None, "str": "a", "list": [1, 2], "dict": {}, "type": object, "array": np.array([1, 2]),
             "array of no dimensions": np.array(2), "number of numpy": np.float64(2)}


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_with_what_is_no_tensor(name: str, stranger: str) -> None:
    other = STRANGERS[stranger]
    if name == "iand" and stranger == "number of numpy":
        pytest.skip("both refuse, in other words")
    for values in ([1, 2], [1.0, 2.0]):
        same(lambda t, values=values: OPERATORS[name](t.tensor(values), other))
        if not name.startswith("i"):
            same(lambda t, values=values: OPERATORS[name](other, t.tensor(values)))


def test_functions_of_numpy_give_tensors() -> None:
    same(lambda t: np.sin(t.tensor([1.0, 2.0])))
    same(lambda t: np.greater(t.tensor([1.0, 2.0]), 1))
    same(lambda t: np.maximum(t.tensor([1, 2]), np.array([2, 1])))


@pytest.mark.parametrize("kind", [float, int, bool, complex, "float32", np.float32])
def test_types_of_python_as_dtypes(kind: Any) -> None:
    for name in ("zeros", "ones", "empty"):
        same(lambda t, name=name: getattr(t, name)(0, dtype=kind))
    if kind in (float, int):
        same(lambda t: t.arange(3, dtype=kind))
        same(lambda t: t.ones(2).sum(dtype=kind))
    same(lambda t: t.tensor([1, 0], dtype=kind))
    same(lambda t: t.zeros_like(t.ones(2), dtype=kind))
    if isinstance(kind, type):
        same(lambda t: t.tensor([1, 0]).to(dtype=kind) if kind is not np.float32 else None)


def test_unknown_keyword_of_a_factory() -> None:
    same(lambda t: t.zeros(2, foo=1))


NESTS = {
    "numpy and python": lambda t: [np.float32(1), 2.0], "python and numpy": lambda t: [2.0, np.float64(1)],
    "half and int": lambda t: [np.float16(1), 2], "complex and int": lambda t: [np.complex64(1), 2],
    "rows": lambda t: [[np.float32(1), 2.0], [3, 4]], "array without dimensions": lambda t: [np.array(1.5)],
    "vectors of one": lambda t: [t.tensor([1.0]), t.tensor([2.0])],
    "matrix of one": lambda t: [t.tensor([[1.0]]), t.tensor(2)],
    "vectors": lambda t: [t.tensor([1.0, 2.0]), t.tensor([2.0, 2.0])],
    "vectors of integers": lambda t: (t.tensor([1, 2]), t.tensor([2, 2])),
    "double": lambda t: [t.tensor(1.0, dtype=t.float64), 2], "int32": lambda t: [t.tensor(1, dtype=t.int32), 2.5],
    "number and tensor": lambda t: [1, t.tensor([2.0])], "row and tensor": lambda t: [[1, 2], t.tensor([2.0, 3.0])],
    "row and short tensor": lambda t: [[1, 2], t.tensor([2.0])], "empty tensor": lambda t: [t.tensor([])],
    "arrays": lambda t: [np.array([1, 2]), np.array([3, 4])], "array and list": lambda t: [np.array([1, 2]), [3, 4]],
    "arrays of two sizes": lambda t: [np.array([1, 2]), np.array([3])], "words": lambda t: ["a"],
    "number and word": lambda t: [1, "a"], "ragged": lambda t: [[1, 2], [3, 4], [5]],
    "row and number": lambda t: [[1, 2], 3], "number and row": lambda t: [1, [2]], "dict": lambda t: [{}],
    "None": lambda t: [None, 1], "long": lambda t: [2**63], "longest": lambda t: [2**63 - 1, -(2**63)],
    "very long": lambda t: 2**70, "range": lambda t: range(3), "bools": lambda t: [True, 2.5], "set": lambda t: {1, 2},
    "empty rows": lambda t: [[], []], "infinite": lambda t: [1e400],
}


@pytest.mark.parametrize("name", NESTS)
def test_tensors_of_nests(name: str) -> None:
    same(lambda t: t.tensor(NESTS[name](t)))
    if name not in ("set", "dict", "None", "words", "range", "long", "very long", "infinite"):
        same(lambda t: t.as_tensor(NESTS[name](t)))
        same(lambda t: t.tensor(NESTS[name](t), dtype=t.float64))


RANGES = [("uint8", 300), ("uint8", -1), ("uint8", -256), ("int8", -300), ("int32", 2**40), ("uint8", 300.7),
          ("int32", 1e10), ("int32", float("nan")), ("int64", 1.7), ("bool", 7), ("float32", 2**70),
          ("float32", 1 + 1j), ("float16", 1e5), ("uint64", 2**64 - 1)]


@pytest.mark.parametrize(("kind", "value"), RANGES)
def test_numbers_that_a_type_holds_or_not(kind: str, value: Any) -> None:
    same(lambda t: t.tensor([value], dtype=getattr(t, kind)))
    same(lambda t: t.tensor(value, dtype=getattr(t, kind)))


def test_items_are_taken_after_memory() -> None:
    names = []
    for t in (ours, theirs):
        value = t.ones(1)
        t.tensor([value])
        with t.profiler.profile() as prof:
            t.tensor([value])
        names.append([e.name for e in prof.events() if e.cpu_parent is None])
    assert names[0] == names[1]


STORED = {
    "fill_": lambda t, kind, value: t.zeros(2, dtype=kind).fill_(value),
    "full": lambda t, kind, value: t.full((2,), value, dtype=kind),
    "masked_fill": lambda t, kind, value: t.zeros(2, dtype=kind).masked_fill(t.tensor([True, False]), value),
    "index_fill": lambda t, kind, value: t.zeros(2, dtype=kind).index_fill(0, t.tensor([0]), value),
}
FILLS = [("float16", -1e9), ("float16", float("-inf")), ("bfloat16", -1e39), ("float32", 1e39), ("float32", -3.4e38),
         ("int64", float("inf")), ("int64", 2**63), ("int32", 2**40), ("int16", 40000), ("int8", -129), ("uint8", 256),
         ("uint8", -1), ("uint8", -255), ("bool", 300), ("int64", 7.5)]


@pytest.mark.parametrize(("kind", "value"), FILLS)
@pytest.mark.parametrize("name", STORED)
def test_numbers_that_a_tensor_can_store_or_not(name: str, kind: str, value: Any) -> None:
    if name == "index_fill" and kind == "bool":
        pytest.skip("both refuse, in other words")
    same(lambda t: STORED[name](t, getattr(t, kind), value))


def test_scalars_of_tensors_that_are_none() -> None:
    same(lambda t: float(t.ones(2)))
    same(lambda t: int(t.ones(2)))
    same(lambda t: complex(t.tensor([2.0])))


@pytest.mark.parametrize("given", [{"type": "cpu"}, {"type": "cpu", "index": 0}, {"device": "cpu"}])
def test_devices_by_keyword(given: dict[str, Any]) -> None:
    same(lambda t: str(t.device(**given)))


def test_sizes_after_tuples_are_sizes() -> None:
    same(lambda t: (1,) + t.Size([2]))  # noqa: RUF005


def test_strides_of_tensors_without_elements() -> None:
    for shape in ((0,), (0, 3), (3, 0, 2), (2, 3, 0)):
        same(lambda t, shape=shape: t.empty(shape).stride())


def test_alpha_of_integers() -> None:
    same(lambda t: t.add(t.ones(2, dtype=t.int32), 1, alpha=1.5))
    same(lambda t: t.sub(t.ones(2, dtype=t.int32), t.ones(2, dtype=t.int32), alpha=1.5))


def test_unflatten_into_sizes_that_do_not_fit() -> None:
    same(lambda t: t.ones(2, 4).unflatten(1, (3, -1)))
    same(lambda t: t.ones(2, 5).unflatten(1, (2, 2)))


def test_sparse_tensors_of_integers_print_without_dtype() -> None:
    assert repr(ours.eye(2, dtype=ours.int64).to_sparse()) == repr(theirs.eye(2, dtype=theirs.int64).to_sparse())


def test_asarray_keeps_the_history() -> None:
    def made(t: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return t.asarray(t.ones(2, requires_grad=True) * 2)

    same(made)
    same(lambda t: t.asarray(t.ones(2, requires_grad=True) * 2, requires_grad=False))


def changed_after(t: Any, function: Any) -> Any:
    x = t.ones(2, requires_grad=True)
    function(t, x).sum().backward()


def _add_to_input(t: Any, x: Any) -> Any:
    y = x * 2
    z = y * y
    y.add_(1)
    return z


def _add_to_leaf(t: Any, x: Any) -> Any:
    z = x * t.ones(2, requires_grad=True)
    with t.no_grad():
        x.add_(1)
    return z


@pytest.mark.parametrize("function", [lambda t, x: x.exp().add_(1), lambda t, x: x.relu().add_(1), _add_to_input,
                                      _add_to_leaf])
def test_words_about_a_tensor_that_changed_after_it_was_saved(function: Any) -> None:
    same(lambda t: changed_after(t, function))


def test_gradients_of_a_batch_of_vectors() -> None:
    for options in ({}, {"create_graph": True}):
        def batch(t: Any, options: dict[str, Any] = options) -> Any:
            x = t.tensor([1.0, 2.0], requires_grad=True)
            return t.autograd.grad(x * x, x, t.eye(2), is_grads_batched=True, **options)[0]

        same(lambda t, batch=batch: batch(t).detach())


def test_tensors_that_are_not_in_the_graph() -> None:
    def unused(t: Any) -> Any:
        x, z = (t.ones(2, requires_grad=True) for _ in range(2))
        return t.autograd.grad(x.sum(), (x, z))

    same(unused)


def test_grad_of_what_is_no_leaf_warns() -> None:
    for t in (ours, theirs):
        inner = t.ones(2, requires_grad=True) * 2
        with pytest.warns(UserWarning, match="that is not a leaf Tensor is being accessed"):
            assert inner.grad is None
        inner.retain_grad()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert inner.grad is None


WINDOWS = {"bartlett": [{}], "blackman": [{}], "cosine": [{}],
           "exponential": [{"tau": 0.5}, {"tau": -1}, {"center": 1.0}],
           "gaussian": [{"std": 0.9}, {"std": 0}], "general_cosine": [{"a": [0.46, 0.23, 0.31]}, {"a": []}, {"a": 3}],
           "general_hamming": [{"alpha": 0.5}], "hamming": [{}], "hann": [{}], "kaiser": [{"beta": 0.9}, {}],
           "nuttall": [{}]}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str) -> None:
    for options in WINDOWS[name]:
        for sym in (True, False):
            for count in (0, 1, 2, 7, 10, -1):
                made = [answer(t, lambda t, count=count, options=options, sym=sym: getattr(t.signal.windows, name)(
                    count, sym=sym, dtype=t.float64, **options)) for t in (ours, theirs)]
                if len(made[1]) == 2:
                    assert made[0] == made[1]
                else:
                    assert made[0][:2] == made[1][:2]
                    np.testing.assert_allclose(made[0][2], made[1][2], atol=1e-12)


def test_packed_sequences_come_apart() -> None:
    def parts(t: Any) -> Any:
        rnn = t.nn.utils.rnn
        return [x.tolist() for x in rnn.unpack_sequence(rnn.pack_sequence(
            [t.arange(2.0), t.arange(3.0)], enforce_sorted=False))]

    same(parts)


def test_limits_of_types_of_python() -> None:
    same(lambda t: (t.finfo(float).eps, t.iinfo(int).max, t.finfo(complex).bits))


NOTHING = {
    "nothing": lambda t, x, m: x.to(), "None": lambda t, x, m: x.to(None),
    "not blocking": lambda t, x, m: x.to(non_blocking=True),
    "no device": lambda t, x, m: x.to(device=None), "copy": lambda t, x, m: x.to(copy=True),
    "format": lambda t, x, m: x.to(memory_format=t.contiguous_format), "module": lambda t, x, m: m.to(),
    "module's dtype": lambda t, x, m: m.to(t.float32),
    "module's format": lambda t, x, m: m.to(memory_format=t.channels_last),
}


@pytest.mark.parametrize("name", NOTHING)
def test_conversions_that_ask_for_nothing_run_nothing(name: str) -> None:
    found = []
    for t in (ours, theirs):
        x, m = t.ones(2), t.nn.Sequential(t.nn.Conv2d(3, 4, 1), t.nn.BatchNorm2d(4))
        NOTHING[name](t, x, m)
        with t.profiler.profile(record_shapes=True) as prof:
            NOTHING[name](t, x, m)
        found.append([(e.name, str(e.input_shapes)) for e in prof.events() if e.cpu_parent is None])
    assert found[0] == found[1]


def test_operators_with_what_is_no_tensor_where_functions_are_overridden() -> None:
    class Mine(ours.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(func, types, args, kwargs or {})

    made = ours.ones(2).as_subclass(Mine)
    assert ((made + 1) == None) is False  # noqa: E711  (what is tested)
    for name in ("__rxor__", "__rmod__", "__ipow__", "__ror__"):
        assert getattr(ours.tensor([1, 2]), name)("a") is NotImplemented


def test_gradients_of_chosen_inputs_lie_as_their_leaves() -> None:
    def stride(t: Any) -> Any:
        x = t.ones(2, 3, requires_grad=True)
        x.sum().backward(inputs=[x])
        return x.grad.stride()

    same(stride)

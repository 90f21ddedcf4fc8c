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

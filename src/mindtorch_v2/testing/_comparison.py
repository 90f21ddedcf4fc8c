"""`torch.testing._comparison`: `assert_close`, and the pairs that compare two values up to a tolerance.

Two values, or containers of values, are taken apart into pairs (`originate_pairs`); each kind of pair compares its own.
What a pair finds is an `ErrorMeta`: the error and the place in the containers, for the caller to raise.
"""

from __future__ import annotations

import abc
import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from .._construct import as_tensor
from .._dispatch.namespace import aten
from .._dtype import ALL_DTYPES, PROMOTION, complex128, dtype, float64, int64, uint8
from .._named_dtypes import NAMED
from .._tensor import Tensor

# Relative and absolute tolerance by dtype; other dtypes must match exactly.
TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
              "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
              **dict.fromkeys(("quint8", "quint2x4", "quint4x2", "qint8", "qint32"), (1.3e-6, 1e-5))}
_DTYPE_PRECISIONS: dict[Any, tuple[float, float]] = {
    kind: TOLERANCES[kind.name] for kind in (*ALL_DTYPES, *NAMED.values()) if kind.name in TOLERANCES}
_NUMBER_DTYPES: dict[type, dtype] = {int: int64, float: float64, complex: complex128}
# What a layout calls the two parts of its indices: compressed, and plain.
_COMPRESSED = {"sparse_csr": ("crow_indices", "col_indices"), "sparse_bsr": ("crow_indices", "col_indices"),
               "sparse_csc": ("ccol_indices", "row_indices"), "sparse_bsc": ("ccol_indices", "row_indices")}
Message = str | Callable[[str], str] | None
Id = tuple[Any, ...]


def _unwrap_dtensor_for_comparison(actual: Any, expected: Any) -> tuple[Any, Any]:
    """Both unchanged: no tensor is spread over processes here."""
    return actual, expected


class ErrorMeta(Exception):
    """An error that a comparison found. The program sees `to_error()`, never this."""

    def __init__(self, type: type[Exception], msg: str, *, id: Id = ()) -> None:
        super().__init__("an ErrorMeta is not for users: raise ErrorMeta.to_error() instead")
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: Message = None) -> Exception:
        """The error to raise, with a text of the caller's or with the place in the containers."""
        if isinstance(msg, str):
            return self.type(msg)
        found = self.msg
        if self.id:
            found += f"\n\nThe failure occurred for item {_place(self.id)}"
        return self.type(msg(found) if callable(msg) else found)


class UnsupportedInputs(Exception):
    """A pair does not take these values; the next kind is tried."""


def _place(id: Id) -> str:
    return "".join(f"[{one!r}]" for one in id)


def default_tolerances(*inputs: Tensor | dtype,
                       dtype_precisions: dict[dtype, tuple[float, float]] | None = None) -> tuple[float, float]:
    """The widest tolerances among those of some dtypes.

    >>> import mindtorch_v2 as torch
    >>> default_tolerances(torch.float32, torch.float16)
    (0.001, 1e-05)
    """
    table = _DTYPE_PRECISIONS if dtype_precisions is None else dtype_precisions
    found = []
    for one in inputs:
        if not isinstance(one, (Tensor, dtype)):
            raise TypeError(f"Expected a torch.Tensor or a torch.dtype, but got {type(one)} instead.")
        found.append(table.get(one.dtype if isinstance(one, Tensor) else one, (0.0, 0.0)))
    return max(r for r, _ in found), max(a for _, a in found)


def get_tolerances(*inputs: Tensor | dtype, rtol: float | None, atol: float | None, id: Id = ()) -> tuple[float, float]:
    """The tolerances given, of which there are two or none, else those of the dtypes."""
    if rtol is None and atol is None:
        return default_tolerances(*inputs)
    if rtol is None or atol is None:
        raise ErrorMeta(ValueError, "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                                    f"{'rtol' if rtol is None else 'atol'}.", id=id)
    return rtol, atol


Identifier = str | Callable[[str], str] | None


def _head(default: str, identifier: Identifier, exact: bool) -> str:
    name = identifier(default) if callable(identifier) else identifier or default
    return f"{name} are not {'equal' if exact else 'close'}!\n\n"


def _allowed(limit: float, exact: bool) -> str:
    return "" if exact else f" (up to {limit} allowed)"


def make_scalar_mismatch_msg(actual: Any, expected: Any, *, rtol: float, atol: float,
                             identifier: Identifier = None) -> str:
    """The message about two numbers."""
    exact = rtol == 0 and atol == 0
    difference = abs(actual - expected)
    relative = difference / abs(expected) if expected != 0 else float("inf")
    return (f"{_head('Scalars', identifier, exact)}Expected {expected} but got {actual}.\n"
            f"Absolute difference: {difference}{_allowed(atol, exact)}\n"
            f"Relative difference: {relative}{_allowed(rtol, exact)}")


def _mismatched(matches: Any) -> str:
    count, total = int((~matches).sum()), matches.numel()
    return f"Mismatched elements: {count} / {total} ({count / total:.1%})\n"


def _index(number: int, shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(number, shape))


def make_tensor_mismatch_msg(actual: Tensor, expected: Tensor, matches: Tensor, *, rtol: float, atol: float,
                             identifier: Identifier = None) -> str:
    """The message about two tensors: how many elements differ, and the greatest differences."""
    exact = rtol == 0 and atol == 0
    if not actual.dtype.is_floating_point and not actual.dtype.is_complex:
        actual, expected = aten.to(actual, int64), aten.to(expected, int64)
    difference = aten.abs(actual - expected)
    lines = [_head("Tensor-likes", identifier, exact) + _mismatched(matches).rstrip()]
    for name, values, limit in (("absolute", difference, atol), ("relative", difference / aten.abs(expected), rtol)):
        # Only elements that are not close count for the greatest difference.
        shown = aten.flatten(aten.masked_fill(values, matches, 0))
        place = int(aten.argmax(shown))
        lines.append(f"Greatest {name} difference: {shown[place].item()} at index "
                     f"{_index(place, matches.shape)}{_allowed(limit, exact)}")
    return "\n".join(lines)


class Pair(abc.ABC):
    """Two values that are compared, and where in the containers they are."""

    def __init__(self, actual: Any, expected: Any, *, id: Id = (), **unknown_parameters: Any) -> None:
        self.actual, self.expected, self.id = actual, expected, id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: Any, cls: type | tuple[type, ...]) -> None:
        if not all(isinstance(one, cls) for one in inputs):
            Pair._inputs_not_supported()

    def _fail(self, type: type[Exception], msg: str, *, id: Id = ()) -> NoReturn:
        raise ErrorMeta(type, msg, id=id or self.__dict__.get("id", ()))

    @abc.abstractmethod
    def compare(self) -> None:
        """Raise an ErrorMeta if the values differ."""

    def extra_repr(self) -> Sequence[str | tuple[str, Any]]:
        """Attributes, by name or with a value, that `repr` shows besides the values."""
        return []

    def __repr__(self) -> str:
        shown = [("id", self.id), ("actual", self.actual), ("expected", self.expected),
                 *((one, getattr(self, one)) if isinstance(one, str) else one for one in self.extra_repr())]
        return f"{type(self).__name__}(\n" + "".join(f"    {name}={value!s},\n" for name, value in shown) + ")"


class ObjectPair(Pair):
    """Values that `==` compares."""

    def compare(self) -> None:
        """Equal or not."""
        try:
            equal = self.actual == self.expected
        except Exception as error:
            raise ErrorMeta(ValueError, f"{self.actual} == {self.expected} failed:\n{error}.", id=self.id) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """Values at least one of which is None."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        """Both are None."""
        if not (self.actual is None and self.expected is None):
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


class BooleanPair(Pair):
    """Booleans, of Python or NumPy."""

    def __init__(self, actual: Any, expected: Any, *, id: Id, **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        # PyTorch's pair of booleans does not keep its place, and so its errors do not name one.
        super().__init__(actual, expected, **other_parameters)

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (bool, np.bool_)

    def _process_inputs(self, actual: Any, expected: Any, *, id: Id) -> tuple[bool, bool]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_bool(actual, id=id), self._to_bool(expected, id=id)

    def _to_bool(self, bool_like: Any, *, id: Id) -> bool:
        if not isinstance(bool_like, (bool, np.bool_)):
            raise ErrorMeta(TypeError, f"Unknown boolean type {type(bool_like)}.", id=id)
        return bool(bool_like)

    def compare(self) -> None:
        """The same."""
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


class NumberPair(Pair):
    """Numbers, of Python or NumPy."""

    def __init__(self, actual: Any, expected: Any, *, id: Id = (), rtol: float | None = None, atol: float | None = None,
                 equal_nan: bool = False, check_dtype: bool = False, **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)
        kinds = [_NUMBER_DTYPES[type(one)] for one in (actual, expected)]
        self.rtol, self.atol = get_tolerances(*kinds, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_dtype = equal_nan, check_dtype

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (int, float, complex, np.number)

    def _process_inputs(self, actual: Any, expected: Any, *, id: Id) -> tuple[Any, Any]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_number(actual, id=id), self._to_number(expected, id=id)

    def _to_number(self, number_like: Any, *, id: Id) -> Any:
        if isinstance(number_like, np.number):
            return number_like.item()
        if not isinstance(number_like, (int, float, complex)):
            raise ErrorMeta(TypeError, f"Unknown number type {type(number_like)}.", id=id)
        return number_like

    def compare(self) -> None:
        """Close, and of one type if that is required."""
        if self.check_dtype and type(self.actual) is not type(self.expected):
            self._fail(AssertionError, f"The (d)types do not match: {type(self.actual)} != {type(self.expected)}.")
        if self.actual == self.expected:
            return
        if self.equal_nan and self.actual != self.actual and self.expected != self.expected:
            return
        difference = abs(self.actual - self.expected)
        if np.isfinite(difference) and difference <= self.atol + self.rtol * abs(self.expected):
            return
        self._fail(AssertionError, make_scalar_mismatch_msg(self.actual, self.expected, rtol=self.rtol, atol=self.atol))

    def extra_repr(self) -> Sequence[str]:
        """What it looks at."""
        return ("rtol", "atol", "equal_nan", "check_dtype")


class TensorLikePair(Pair):
    """Tensors, and values that can become tensors."""

    def __init__(self, actual: Any, expected: Any, *, id: Id = (), allow_subclasses: bool = True,
                 rtol: float | None = None, atol: float | None = None, equal_nan: bool = False,
                 check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
                 check_stride: bool = False, **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id, allow_subclasses=allow_subclasses)
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(actual, expected, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_device, self.check_dtype = equal_nan, check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def _process_inputs(self, actual: Any, expected: Any, *, id: Id, allow_subclasses: bool) -> tuple[Tensor, Tensor]:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or (not allow_subclasses and type(actual) is not type(expected)):
            self._inputs_not_supported()
        made = self._to_tensor(actual), self._to_tensor(expected)
        for one in made:
            self._check_supported(one, id=id)
        return made

    def _to_tensor(self, tensor_like: Any) -> Tensor:
        if isinstance(tensor_like, Tensor):
            return tensor_like
        try:
            return as_tensor(tensor_like)
        except Exception:
            self._inputs_not_supported()

    def _check_supported(self, tensor: Tensor, *, id: Id) -> None:
        name = str(tensor.layout).rpartition(".")[2]
        if name not in ("strided", "jagged", "sparse_coo", *_COMPRESSED):
            raise ErrorMeta(ValueError, f"Unsupported tensor layout {tensor.layout}", id=id)

    def compare(self) -> None:
        """First the properties of the tensors, then their elements."""
        actual, expected = aten.detach(self.actual), aten.detach(self.expected)
        self._compare_attributes(actual, expected)
        if "meta" in (actual.device.type, expected.device.type):
            return
        self._compare_values(*self._equalize_attributes(actual, expected))

    def _compare_attributes(self, actual: Tensor, expected: Tensor) -> None:
        looked_at: list[tuple[str, bool]] = [("shape", True), ("layout", self.check_layout),
                                             ("device", self.check_device), ("dtype", self.check_dtype),
                                             ("stride()", self.check_stride)]
        for name, wanted in looked_at:
            if not wanted:
                continue
            found = [getattr(one, name.removesuffix("()")) for one in (actual, expected)]
            first, second = (one() for one in found) if name.endswith("()") else found
            if first != second:
                self._fail(AssertionError, f"The values for attribute '{name}' do not match: {first} != {second}.")

    def _equalize_attributes(self, actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
        """Both on one device, with one dtype and layout, where a difference is allowed."""
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.dtype != expected.dtype:
            common: dtype = PROMOTION[actual.dtype, expected.dtype]
            actual, expected = aten.to(actual, common), aten.to(expected, common)
        if actual.layout != expected.layout:
            actual, expected = (one if str(one.layout) == "torch.strided" else one.to_dense()
                                for one in (actual, expected))
        return actual, expected

    def _compare_values(self, actual: Tensor, expected: Tensor) -> None:
        limits: dict[str, Any] = {"rtol": self.rtol, "atol": self.atol, "equal_nan": self.equal_nan}
        name = str(actual.layout).rpartition(".")[2]
        if name == "sparse_coo":
            self._compare_sparse_coo_values(actual, expected, **limits)
        elif name in _COMPRESSED:
            self._compare_sparse_compressed_values(actual, expected, **limits)
        else:
            self._compare_regular_values_close(actual, expected, **limits)

    def _compare_sparse_coo_values(self, actual: Any, expected: Any, *, rtol: float, atol: float,
                                   equal_nan: bool) -> None:
        self._compare_counts(actual, expected, "sparse COO")
        self._compare_regular_values_equal(actual._indices(), expected._indices(), identifier="Sparse COO indices")
        self._compare_regular_values_close(actual._values(), expected._values(), rtol=rtol, atol=atol,
                                           equal_nan=equal_nan, identifier="Sparse COO values")

    def _compare_sparse_compressed_values(self, actual: Any, expected: Any, *, rtol: float, atol: float,
                                          equal_nan: bool) -> None:
        name = str(actual.layout).rpartition(".")[2]
        shown = name.removeprefix("sparse_").upper()
        self._compare_counts(actual, expected, f"sparse {shown}")
        for part in _COMPRESSED[name]:
            self._compare_regular_values_equal(getattr(actual, part)(), getattr(expected, part)(),
                                               identifier=f"Sparse {shown} {part}")
        self._compare_regular_values_close(actual.values(), expected.values(), rtol=rtol, atol=atol,
                                           equal_nan=equal_nan, identifier=f"Sparse {shown} values")

    def _compare_counts(self, actual: Any, expected: Any, name: str) -> None:
        if actual._nnz() != expected._nnz():
            self._fail(AssertionError, f"The number of specified values in {name} tensors does not match: "
                                       f"{actual._nnz()} != {expected._nnz()}")

    def _compare_regular_values_equal(self, actual: Tensor, expected: Tensor, *, equal_nan: bool = False,
                                      identifier: Identifier = None) -> None:
        self._compare_regular_values_close(actual, expected, rtol=0, atol=0, equal_nan=equal_nan, identifier=identifier)

    def _compare_regular_values_close(self, actual: Any, expected: Any, *, rtol: float, atol: float, equal_nan: bool,
                                      identifier: Identifier = None) -> None:
        # Eight bits of floating point have no arithmetic: they are the same or not.
        bits = actual.dtype.is_floating_point and actual.dtype.itemsize == 1
        if bits and (rtol or atol):
            raise NotImplementedError(f"{actual.dtype} is compared bit by bit; a tolerance has no meaning for it")
        matches = (actual.view(uint8) == expected.view(uint8) if bits
                   else aten.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan))
        if bool(matches.all()):
            return
        if actual.ndim == 0:
            msg = make_scalar_mismatch_msg(actual.item(), expected.item(), rtol=rtol, atol=atol, identifier=identifier)
        elif bits:
            first = _index(int(aten.argmax(aten.flatten(aten.to(~matches, uint8)))), matches.shape)
            msg = (f"Tensor-likes are not 'equal'!\n\n{_mismatched(matches)}"
                   f"The first mismatched element is at index {first}.")
        else:
            msg = make_tensor_mismatch_msg(actual, expected, matches, rtol=rtol, atol=atol, identifier=identifier)
        self._fail(AssertionError, msg)

    def extra_repr(self) -> Sequence[str]:
        """What it looks at."""
        return ("rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout", "check_stride")


def originate_pairs(actual: Any, expected: Any, *, pair_types: Sequence[type[Pair]],
                    sequence_types: tuple[type, ...] = (Sequence,), mapping_types: tuple[type, ...] = (Mapping,),
                    id: Id = (), **options: Any) -> list[Pair]:
    """Take two values apart, down to pairs of the first kind that takes them."""

    def inside(keys: Any) -> list[Pair]:
        return [pair for key in keys
                for pair in originate_pairs(actual[key], expected[key], pair_types=pair_types,
                                            sequence_types=sequence_types, mapping_types=mapping_types,
                                            id=(*id, key), **options)]

    if _both(actual, expected, sequence_types) and not _both(actual, expected, (str,)):
        if len(actual) != len(expected):
            raise ErrorMeta(AssertionError, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
                            id=id)
        return inside(range(len(actual)))
    if _both(actual, expected, mapping_types):
        missing, extra = set(expected) - set(actual), set(actual) - set(expected)
        if missing or extra:
            raise ErrorMeta(AssertionError, "The keys of the mappings do not match:\n"
                            f"Missing keys in the actual mapping: {_ordered(missing)}\n"
                            f"Additional keys in the actual mapping: {_ordered(extra)}", id=id)
        return inside(_ordered(actual))
    for kind in pair_types:
        try:
            return [kind(actual, expected, id=id, **options)]
        except UnsupportedInputs:
            continue
        except ErrorMeta:
            raise
        except Exception as error:
            raise RuntimeError(f"Originating a {kind.__name__}() at item {_place(id)} with\n\n"
                               f"{type(actual).__name__}(): {actual}\n\nand\n\n"
                               f"{type(expected).__name__}(): {expected}\n\n"
                               "resulted in the unexpected exception above.") from error
    raise ErrorMeta(TypeError, f"No comparison pair was able to handle inputs of type {_type(actual)} and "
                               f"{_type(expected)}.", id=id)


def _both(actual: Any, expected: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(actual, kinds) and isinstance(expected, kinds)


def _ordered(keys: Any) -> list[Any]:
    with contextlib.suppress(TypeError):
        return sorted(keys)
    return list(keys)


def _type(value: Any) -> str:
    return "<class 'torch.Tensor'>" if type(value) is Tensor else str(type(value))


def not_close_error_metas(actual: Any, expected: Any, *, pair_types: Sequence[type[Pair]] = (ObjectPair,),
                          sequence_types: tuple[type, ...] = (Sequence,),
                          mapping_types: tuple[type, ...] = (Mapping,), **options: Any) -> list[ErrorMeta]:
    """The errors of the pairs that are not close."""
    __tracebackhide__ = True
    try:
        pairs = originate_pairs(actual, expected, pair_types=pair_types, sequence_types=sequence_types,
                                mapping_types=mapping_types, **options)
    except ErrorMeta as meta:
        # The caller's traceback, not that of the descent.
        raise meta.to_error() from None
    found = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as meta:
            found.append(meta)
        except Exception as error:
            raise RuntimeError(f"Comparing\n\n{pair}\n\nresulted in the unexpected exception above.") from error
    return found


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
                 atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
                 check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
                 msg: Message = None) -> None:
    """Raise AssertionError unless `|actual - expected| <= atol + rtol * |expected|` everywhere.

    >>> import mindtorch_v2 as torch
    >>> assert_close(torch.tensor([1.0]), torch.tensor([1.0 + 1e-7]))
    """
    __tracebackhide__ = True
    found = not_close_error_metas(
        actual, expected, pair_types=(NonePair, BooleanPair, NumberPair, TensorLikePair),
        allow_subclasses=allow_subclasses, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=check_device,
        check_dtype=check_dtype, check_layout=check_layout, check_stride=check_stride)
    if found:
        raise found[0].to_error(msg)


# The old tolerances, by the first value's dtype.
_OLD_TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None,
                    equal_nan: bool = True, msg: str = "") -> None:
    """The old `assert_close`: the expected value becomes a tensor like the first, NaN equals NaN."""
    warnings.warn("`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
                  "Please use `torch.testing.assert_close()` instead.", FutureWarning, stacklevel=2)
    first = actual if isinstance(actual, Tensor) else as_tensor(actual)
    second = as_tensor(expected, dtype=first.dtype)
    if rtol is None and atol is None:
        rtol, atol = _OLD_TOLERANCES.get(first.dtype.name, (0.0, 0.0))
    assert_close(first, second, rtol=rtol, atol=atol, equal_nan=equal_nan, msg=msg or None)

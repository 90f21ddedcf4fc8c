"""Turns a failed kernel call into PyTorch's error.

Checks that matter only when something is wrong are made here, after the failure, so the hot path has none.
"""

from __future__ import annotations

import dis
import os
import reprlib
import sys
import warnings
from typing import Any

import numpy as np

from .._backends.flipped import FlippedArray
from .._device import device, on_two_devices
from .._dtype import FLOAT, DefaultDtype, dtype
from .._numpy_names import MISSING
from .._shape import Size, broadcast_shapes
from .._tensor import Tensor, wrap
from .codegen import NUMBERS_ADD, PROMOTE_SCALAR
from .dtype_rules import unsupported
from .namespace import aten
from .observer import tell_refusal
from .out_rules import EXACT
from .overload_names import takes_several
from .overriding import PACKAGE, NobodyAnswers, Taken, claim, faces
from .promotion import NO_NUMBER, check_cast, no_room, number_array, result_dtype
from .registry import Op
from .schema import as_given

HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement
OPERANDS = (Tensor, int, float, complex, np.number, np.bool_)  # operands of a tensor in `x + y`
PACKAGE_FILES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NUMPY_FILES = os.path.dirname(os.path.abspath(np.__file__))
_TOO_BIG = ("array is too big", "Maximum allowed dimension exceeded")


def explain(op: Op, error: Exception, values: tuple[Any, ...], form: str, operator: Any = None) -> Any:
    """The exception to raise instead of `error`, possibly `error` itself; or `Taken`, with a result after all.

    NotImplemented if the op was called as an operator with an unknown operand: then `operator` answers.
    """
    taken = claim(values, sys._getframe(1), lambda: public_call(op, values, form, operator is not None))
    if taken is not None:
        return taken
    if op.namespace != "aten":
        return error  # the program's own function raised it
    if isinstance(error, NobodyAnswers):
        return TypeError(str(error)) if operator is None else NotImplemented
    if op.name in NUMBERS_ADD and not form.endswith("_") and isinstance(values[0], OPERANDS[1:]):
        values = (wrap(number_array(values[0])), *values[1:])  # the other operand is on a device
    for argument, value in zip(op.schema.arguments, values):
        if value is MISSING:
            return TypeError(f'{form}() missing 1 required positional arguments: "{argument.python_name}"')
    operands = OPERANDS if form != "matmul" else Tensor
    if operator is not None and not all(isinstance(value, operands) for value in values[:2]):
        return NotImplemented
    arguments = op.schema.arguments
    # A composite's parts have already said what does not fit.
    scalar_ok = op.promote in PROMOTE_SCALAR or (
        op.composite is not None and isinstance(error, RuntimeError))
    first = 0 if form.endswith("_") else 1  # in-place forms are methods, which do not count their tensor
    for position, (argument, value) in enumerate(zip(arguments, values), start=first):
        if not argument.is_tensor or isinstance(value, Tensor) or (value is None and argument.is_optional):
            continue
        if argument.is_list:
            problem = list_problem(form, position, argument.name, value)
            if problem is not None:
                return problem
            continue
        if scalar_ok and isinstance(value, (int, float, complex, np.number, np.bool_)) and argument.name != "self":
            continue
        return not_a_call(op, form, values, f"argument '{argument.python_name}' (position {position}) must be Tensor, "
                          f"not {kind_of(value)}")
    told = op.composite is not None and isinstance(error, RuntimeError)
    for position, (argument, value) in enumerate(zip(arguments, values), start=first):
        wanted = None if argument.is_tensor else wrong_kind(argument.type, value)
        # PyTorch looks at these before anything else.
        surely = wanted in ("str", "tuple of ints") or (wanted == "int" and type(value) is float)
        if wanted is not None and (surely or (isinstance(value, Tensor) and not told) or is_foreign(error)
                                   or str(error).startswith(NO_NUMBER)):
            place = "" if argument.keyword_only else f" (position {position})"
            return not_a_call(op, form, values, f"argument '{argument.python_name}'{place} must be {wanted}, "
                              f"not {kind_of(value)}")
    if isinstance(error, TypeError) and str(error).startswith(NO_NUMBER):
        return not_a_call(op, form, values, str(error))
    tensors = [v for v in values if isinstance(v, Tensor)]
    if is_foreign(error) and any(type(v) is complex and a.type.rstrip("?") == "Scalar"
                                 for a, v in zip(arguments, values)) and (
            tensors and not any(t.dtype.is_complex for t in tensors)):
        refused = no_cast(op, values, form, sys._getframe(1).f_locals.get("out"))
        return refused or no_room(tensors[0]._a.dtype)
    if any(type(t._a) is not np.ndarray for t in [*tensors, *listed(values)]):
        out = sys._getframe(1).f_locals.get("out")
        settled = on_plain_operands(op, values, form, out) or on_devices(op, values, form, out)
        if settled is not None:
            return settled
    if isinstance(error, ValueError) and "read-only" in str(error):
        out = sys._getframe(1).f_locals.get("out")
        settled = on_locked_memory(op, values, form, out)
        if settled is not None:
            return settled
    if op.promote not in (None, "float", "list") and isinstance(error, ValueError):
        try:
            shape = broadcast_shapes(*(t._a.shape for t in tensors))
        except RuntimeError as mismatch:
            return mismatch
        if form.endswith("_") and shape != tensors[0]._a.shape:
            return RuntimeError(
                f"output with shape {list(tensors[0]._a.shape)} doesn't match the broadcast shape {list(shape)}"
            )
    if isinstance(error, np.exceptions.AxisError):
        return IndexError(str(error))
    if isinstance(error, np.linalg.LinAlgError):
        return RuntimeError(str(error))
    foreign = isinstance(error, TypeError) and "ufunc" in str(error)
    if foreign or isinstance(error, NotImplementedError):
        refused = no_cast(op, values, form, sys._getframe(1).f_locals.get("out"))
        if refused is not None:
            return refused
    if operator is not None and op.name == "bitwise_not" and isinstance(error, NotImplementedError):
        return NotImplemented
    if foreign and tensors:
        named = "div_floor" if op.name == "floor_divide" else form.rstrip("_")
        numbers = [value for value in values if type(value) is complex]
        return unsupported(f"{named}_cpu", result_dtype([t._a for t in tensors], numbers).np)
    if isinstance(error, MemoryError):
        return no_memory(error)
    if isinstance(error, ValueError) and str(error).startswith(_TOO_BIG):
        sizes = next((value for argument, value in zip(arguments, values) if argument.name == "size"), None)
        if sizes is None:
            return RuntimeError(f"Storage size calculation overflowed: {form} would give too many elements")
        shown = ", ".join(map(str, sizes if isinstance(sizes, (list, tuple)) else [sizes]))
        return RuntimeError(f"Storage size calculation overflowed with sizes=[{shown}]")
    return in_own_words(error, values, form, tensors)


def no_cast(op: Op, values: tuple[Any, ...], form: str, out: Any) -> RuntimeError | None:
    """PyTorch's first check of dtypes that a kernel refuses: whether the target could hold the result."""
    inplace = form.endswith("_") and (not form.endswith("__") or form.startswith("__i"))  # `<<` is `__lshift__`
    target = values[0] if inplace else out
    beside = op.overload == "Scalar" and [argument.name for argument in op.schema.arguments[1:2]] == ["other"]
    if (op.promote is None and not beside) or op.promote in ("list", "compare") or not isinstance(target, Tensor):
        return None
    if out is not None and op.name in EXACT:
        return None
    operands = [value for argument, value in zip(op.schema.arguments, values)
                if argument.is_tensor or (beside and argument.name == "other")]
    numbers = [value for value in operands if isinstance(value, OPERANDS[1:])]
    result = result_dtype([value._a for value in operands if isinstance(value, Tensor)], numbers)
    if result.category < FLOAT and op.promote in ("float", "binary_float", "ternary_float", "quotient"):
        result = DefaultDtype.value
    try:
        check_cast(result.np, target._a.dtype)
    except RuntimeError as refused:
        return refused
    return None


def kind_of(value: Any) -> str:
    """The type of a value as C names it: types that are written in C carry the name of their module."""
    kind = type(value)
    if kind in (device, dtype, Size):
        return f"torch.{kind.__name__}"
    written_in_c = not kind.__flags__ & HEAP_TYPE and kind.__module__ != "builtins"
    return f"{kind.__module__}.{kind.__name__}" if written_in_c else kind.__name__


def not_a_call(op: Op, form: str, values: tuple[Any, ...], said: str) -> TypeError:
    """The error for an argument of the wrong kind, in PyTorch's form for functions with one or more signatures."""
    args, named = as_given(op.schema, values)
    if not takes_several(form, len(args) + len(named)):
        return TypeError(f"{form}(): {said}")
    kinds = ["Tensor" if isinstance(v, Tensor) else kind_of(v) for v in (*args, *named.values())]
    shown = ", ".join([*kinds[:len(args)], *(f"{name}={kind}" for name, kind in zip(named, kinds[len(args):]))])
    return TypeError(f"{form}() received an invalid combination of arguments - got ({shown}); {said}")


def wrong_kind(kind: str, value: Any) -> str | None:
    """The expected type of an argument, if a value clearly has another."""
    if value is None:
        return None
    name = kind.rstrip("?")
    if "[" in name and name.startswith(("int", "SymInt", "float")):
        elements = value if isinstance(value, (list, tuple)) else ()
        of = "ints" if not name.startswith("float") else "floats"
        plain = isinstance(value, (str, dict, bool)) or (of == "ints" and isinstance(value, float))
        if plain or any(isinstance(one, (str, *((float,) if of == "ints" else ()))) for one in elements):
            return f"tuple of {of}"
        return None
    if name == "str":
        return None if isinstance(value, str) else "str"
    wanted = {"Scalar": "Number", "float": "float", "int": "int", "SymInt": "int", "bool": "bool"}.get(name)
    if wanted == "int" and isinstance(value, Tensor) and value.dtype.category > 1:
        return wanted
    if wanted == "int" and isinstance(value, bool):
        return wanted
    more = {"int": (float, complex), "float": (complex,)}.get(wanted or "", ())
    wrong = (str, bytes, dict, list, tuple, *more)
    return wanted if wanted is not None and isinstance(value, wrong) else None


_RAISES = frozenset({dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"]})


def is_foreign(error: Exception) -> bool:
    """Whether NumPy or Python itself raised an error, not a `raise` in this package."""
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    if code.co_filename.startswith(("<mindtorch_v2", PACKAGE_FILES)):
        return code.co_code[trace.tb_lasti] not in _RAISES
    return code.co_filename.startswith(NUMPY_FILES)


def in_own_words(error: Exception, values: tuple[Any, ...], form: str, tensors: list[Tensor]) -> Exception:
    """Translate NumPy's error into one about the op and its arguments."""
    if not isinstance(error, (ValueError, TypeError, IndexError, AttributeError)) or not is_foreign(error):
        return error
    if isinstance(error, IndexError):
        if any(not t._a.shape for t in tensors):
            return IndexError(f"{form}(): Dimension specified as 0 but tensor has no dimensions")
        return IndexError(f"{form}(): index out of range, given {given(values)}")
    if isinstance(error, (TypeError, AttributeError)) or any(isinstance(v, np.ndarray) for v in values):
        kinds = ", ".join("Tensor" if isinstance(v, Tensor) else kind_of(v) for v in values if v is not None)
        return TypeError(f"{form}() received an invalid combination of arguments - got ({kinds})")
    return RuntimeError(f"{form}(): the arguments do not fit together: {given(values)}")


def given(values: tuple[Any, ...]) -> str:
    """A short description of arguments."""
    return ", ".join(f"a tensor of shape {list(v._a.shape)} and type {v.dtype}" if isinstance(v, Tensor) else
                     reprlib.repr(v) for v in values if v is not None)


def listed(values: tuple[Any, ...]) -> list[Tensor]:
    """The tensors in lists among the arguments."""
    return [one for value in values if isinstance(value, (list, tuple)) for one in value if isinstance(one, Tensor)]


def on_devices(op: Op, values: tuple[Any, ...], form: str, out: Any) -> Any:
    """The outcome for operands of which some are on a device other than the CPU; None if that is not the problem.

    A tensor of the CPU without dimensions works with any device, as a number does.
    """
    tensors = [v for v in values if isinstance(v, Tensor)]
    numbers = [t for t in tensors if t.is_cpu and not t._a.shape]
    placed = [t.device for t in [*tensors, *listed(values)] if not any(t is n for n in numbers)]
    if len(set(placed)) > 1:
        return on_two_devices(placed[0], next(where for where in placed if where != placed[0]))
    if not numbers or not placed or op.promote in (None, "float", "list") or not tensors[0].is_cpu:
        return None
    if form.endswith("_"):
        return on_two_devices(placed[0], tensors[0].device)
    moved = tuple([aten.to(v, placed[0]) if any(v is n for n in numbers) else v for v in values])
    args, named = as_given(op.schema, moved)
    return Taken(op.forms[False](*args, **named, **({} if out is None else {"out": out})))


def is_flipped(tensor: Tensor) -> bool:
    """Whether a tensor shows the conjugates or negatives of its memory."""
    return type(tensor._a) is FlippedArray


def on_plain_operands(op: Op, values: tuple[Any, ...], form: str, out: Any) -> Taken | None:
    """The outcome for flipped operands that a kernel could not read: the op runs again on their values."""
    if op.composite is not None or op.view:
        return None  # its parts have done so
    operands = [*values[form != op.name:], *listed(values)]  # without the target
    kept = [(t, t._a) for t in operands if isinstance(t, Tensor) and is_flipped(t)]
    if not kept:
        return None
    for tensor, array in kept:
        tensor._a = array.values()
    try:
        args, named = as_given(op.schema, values)
        return Taken(op.forms[form != op.name](*args, **named, **({} if out is None else {"out": out})))
    finally:
        for tensor, array in kept:
            tensor._a = array


# Ops that may write the same value to an element more than once.
DOUBTFUL = frozenset({"index_fill_", "masked_fill_", "_index_put_impl_"})
REPEATABLE = DOUBTFUL | {"fill_", "zero_", "index_put_", "threshold_", "tril_", "triu_"}


def on_locked_memory(op: Op, values: tuple[Any, ...], form: str, out: Any) -> Any:
    """The outcome of writing to locked memory, which shows elements twice, or to a view of such memory; or None."""
    targets = [t for t in ((values[0],) if out is None else out if isinstance(out, (tuple, list)) else (out,))
               if isinstance(t, Tensor) and type(t._a) is np.ndarray and not t._a.flags.writeable]
    again = [t for t in targets if t._a.size and any(s == 0 and n > 1 for s, n in zip(t._a.strides, t._a.shape))]
    if again and form not in REPEATABLE:
        return RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation.")
    if again and form in DOUBTFUL:
        warnings.warn(f"Use of {form.replace('_index_put_impl', 'index_put')} on expanded tensors is deprecated, since "
                      "it may write an element more than once. Please clone() the tensor before performing this "
                      "operation, also for tensor[indices] = tensor.", UserWarning, stacklevel=4)
    try:
        for tensor in targets:
            tensor._a.flags.writeable = True
    except ValueError:
        return None  # memory that its owner made read-only
    try:
        args, named = as_given(op.schema, values)
        return Taken(op.forms[form != op.name](*args, **named, **({} if out is None else {"out": out}))
                     ) if targets else None
    finally:
        for tensor in again:
            tensor._a.flags.writeable = False


def public_call(op: Op, values: tuple[Any, ...], form: str, operator: bool
                ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The function that a program called to run an op, and its arguments, without those at their defaults."""
    if operator:
        return faces().FACES.behind_operator(form), values[:2], {}
    public = getattr(sys.modules[PACKAGE], form, None) or op.forms[form != op.name]
    return public, *as_given(op.schema, values)


def no_memory(error: MemoryError) -> Exception:
    """PyTorch's error for a failed allocation, after reporting it to a recording."""
    size = tell_refusal(error)
    if size is None:
        return RuntimeError(f"DefaultCPUAllocator: can't allocate memory: {error}")
    return RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you "
                        f"tried to allocate {size} bytes. Error code 12 (Cannot allocate memory)")


def list_problem(form: str, position: int, name: str, value: Any) -> Exception | None:
    """What is wrong with a tensor-list argument, if anything."""
    if isinstance(value, Tensor) or not isinstance(value, (list, tuple)):
        return TypeError(f"{form}(): argument '{name}' (position {position}) must be tuple of Tensors, "
                         f"not {kind_of(value)}")
    for i, item in enumerate(value):
        if not isinstance(item, Tensor):
            return TypeError(
                f"expected Tensor as element {i} in argument {position - 1}, but got {kind_of(item)}")
    return None

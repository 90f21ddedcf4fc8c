"""Finds the kernel of an op: a line of the table, a composed function, or, if the environment says so, the CPU's.

Ops that have none of these but a formula of other ops (`_ops/stand_ins`) run as that.

`MINDTORCH_NPU_FALLBACK=1` runs ops that the NPU does not have on the CPU, with a warning for each; otherwise they raise
an error that names them.
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..._dispatch.promotion import check_cast, promote_list, result_dtype
from ..._errors import OutOfMemoryError
from ..._random import Generator
from ..base import BY_ARRAY, INPLACE, NEW, OUT
from ..flipped import unflipped
from ..meta import MetaArray
from . import arrays
from .arrays import BOOL, NpuArray
from .call import CALLS
from .composed import COMPOSED, draw
from .errors import AclError, MissingSymbol
from .native import LAUNCH
from .table import TABLE

Kernel = Callable[..., Any]
# Statuses with which an operator refuses its arguments, as opposed to failing at its work.
REFUSED = frozenset({100000, 107000, 161001, 161002, 561001, 561002, 561003})


def unsigned(generator: Any) -> tuple[int, int]:
    """Seed and offset for an operator that takes them as unsigned numbers."""
    seed, offset = draw(generator)
    return seed & 0xFFFF_FFFF_FFFF_FFFF, offset & 0xFFFF_FFFF_FFFF_FFFF


def check_common(target: Any, *others: Any) -> None:
    """Refuse to write a result of the operands' common dtype into a lesser one."""
    check_cast(result_dtype([target, *others], []).np, target.dtype)


SPACE: dict[str, Any] = {
    "CALLS": CALLS, "promote_list": promote_list, "check_common": check_common, "ndarray": np.ndarray, "draw": draw,
    "unsigned": unsigned, "INT64": arrays.INT64, "BOOL": arrays.BOOL,
    **{name: getattr(arrays, name) for name in ("like", "new", "spread", "boolean", "reduced", "all_dims", "one_dim",
                                                "placed", "lifted")},
    "GELU": {"none": 0, "tanh": 1},
}
# Ops whose operators or formulas accept what PyTorch refuses for other reasons than the dtype of the first operand.
LAX = frozenset({"celu", "cumprod", "cumsum", "hardtanh", "heaviside", "index_fill.int_Scalar",
                 "index_fill.int_Tensor", "linalg_cross", "linalg_vector_norm", "masked_scatter", "multi_margin_loss",
                 "nll_loss2d_forward", "nll_loss_forward", "renorm", "smooth_l1_loss", "take"})
# Ops in which masks decide about shapes: zeros in their place say nothing, so they refuse operands themselves.
BY_MASKS = frozenset({"index_put", "_index_put_impl"})
# Ops in which two operands have one dtype, or one that integers cannot always have: the position of the second.
MATCHED = {"addcdiv": 1, "scatter.src": 3, "scatter_add": 3, "index_add": 3, "lerp.Scalar": 1}
# Ops with a number whose fraction is dropped beside integers, and that number.
WHOLE = {"addcmul": "value"}
# Ops whose result has the operands' common dtype, if the dispatcher leaves that to the kernel.
PROMOTING = frozenset({"addcmul", "addcdiv", "clamp_max.Tensor", "clamp_min.Tensor"})


def source(op: Any, key: str) -> str:
    """The kernel for a line of the table: `print(source(OPS["add.Tensor"], "add.Tensor"))` shows it."""
    results, call, *by_number = TABLE[key]
    names = [argument.name for argument in op.schema.arguments]
    lines = [f"def kernel({', '.join(names)}):"]
    if op.key in PROMOTING:
        promoted = [argument.name for argument in op.schema.arguments if argument.is_tensor]
        operands = ", ".join(promoted)
        change = f"{operands} = promote_list([{operands}])" if results else f"check_common({operands})"
        lines.append(f"    if not {' is '.join(f'{name}.dtype' for name in promoted)}: {change}")
    if op.name in WHOLE:
        lines.append(f"    if self.dtype.kind in 'iu': {WHOLE[op.name]} = int({WHOLE[op.name]})")
    made = []
    if results:
        made = ["out"] + [f"out{i}" for i in range(1, len(op.schema.returns))]
        lines.append(f"    {', '.join(made)} = {results}")
    if by_number:
        tensors = [argument.name for argument in op.schema.arguments if argument.is_tensor]
        lines += [f"    if type({tensors[1]}) is ndarray: CALLS.{by_number[0]}", f"    else: CALLS.{call}"]
    else:
        lines.append(f"    CALLS.{call}")
    lines.append(f"    return {', '.join(made) if made else names[0]}")
    return "\n".join(lines) + "\n"


def from_table(op: Any, key: str) -> Kernel:
    """A kernel written from a line of the table."""
    space = dict(SPACE)
    exec(compile(source(op, key), f"<mindtorch_v2 npu {key}>", "exec"), space)
    return space["kernel"]


def find(op: Any, form: str) -> Kernel | None:
    """The kernel of an op in a form; None if it has none of its own."""
    if form == OUT:
        return None
    key = op.key if form == NEW else f"{op.key}/inplace"
    if key in TABLE:
        return explained(op, from_table(op, key))
    if key in COMPOSED:
        return explained(op, COMPOSED[key])
    return None


RESULTS = {"like": 1, "spread": 1, "boolean": 2}
OUT_ARRAY, CONSTANT = 100, 200  # in the launcher's templates; smaller numbers are the op's arguments


def quick(op: Any, form: str, kernel: Kernel) -> Kernel:
    """A line of the table in C, which calls the kernel given here if it cannot do the call; or that kernel."""
    key = op.key if form == NEW else f"{op.key}/inplace"
    if LAUNCH is None or form == OUT or key not in TABLE or op.key in LAX:
        return kernel
    results, call, *by_number = TABLE[key]
    arguments = op.schema.arguments
    names = [argument.name for argument in arguments]
    arrays = tuple([argument.is_tensor for argument in arguments])
    made = ast.parse(results or "None", mode="eval").body
    if results and not (isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id in RESULTS
                        and all(isinstance(one, ast.Name) for one in made.args)):
        return kernel
    constants: list[Any] = []
    first, second = (template(text, names, constants) for text in (call, by_number[0] if by_number else call))
    if first is None or second is None:
        return kernel
    numbers = [i for i, is_array in enumerate(arrays) if is_array][1:2]
    return LAUNCH.Kernel(kernel, arrays, RESULTS[made.func.id] if isinstance(made, ast.Call) else 0,  # type: ignore
                         numbers[0] if by_number else -1, *first, *((second) if by_number else (None, ())),
                         tuple(constants))


def template(text: str, names: list[str], constants: list[Any]) -> tuple[Any, tuple[int, ...]] | None:
    """An operator in C and the sources of its arguments; None for a call that is not that simple."""
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    try:
        operator = getattr(CALLS, call.func.id)
    except MissingSymbol:
        return None  # the caller gets the error
    if not isinstance(operator, LAUNCH.Operator):
        return None
    found = []
    for one in call.args:
        if isinstance(one, ast.Constant):
            constants.append(one.value)
            found.append(CONSTANT + len(constants) - 1)
        elif isinstance(one, ast.Name) and one.id == "out":
            found.append(OUT_ARRAY)
        elif isinstance(one, ast.Name) and one.id in names:
            found.append(names.index(one.id))
        else:
            return None
    return operator, tuple(found)


def explained(op: Any, kernel: Kernel) -> Kernel:
    """A kernel or formula that refuses wrong arguments with PyTorch's error, found by asking the CPU's kernel.

    Errors from the parts of a formula are about the parts, not about the op.
    """
    check = asking(op)

    def run(*arguments: Any) -> Any:
        check(arguments)
        try:
            return kernel(*arguments)
        except OutOfMemoryError:
            raise
        except (RuntimeError, IndexError, ValueError, TypeError, KeyError, ZeroDivisionError) as error:
            final = op.key in BY_MASKS and not isinstance(error, IndexError)
            if not final and (not isinstance(error, AclError) or error.code in REFUSED):
                ask(op, arguments)
            raise

    return run


def asking(op: Any) -> Callable[[tuple[Any, ...]], None]:
    """A check before a kernel: it asks the CPU's kernel about each new kind of arguments.

    A kernel runs after its call has returned, so what PyTorch refuses must be refused before. Operators accept most
    integers, and PyTorch's kernels do not, so all integers are checked. So are operands of different floating types,
    unless the op promotes them. Ops in `LAX` are always checked.
    """
    if (op.key in BY_MASKS or (op.cpu_full is None and op.cpu is None)
            or not op.schema.arguments):  # a function that is no op writes
        return lambda arguments: None
    lax, matched = op.key in LAX, MATCHED.get(op.key, 0)
    tensors = [i for i, argument in enumerate(op.schema.arguments) if argument.is_tensor and not argument.is_list]
    others = tensors[1:] if tensors[:1] == [0] and op.promote is None else []
    numbers = [i for i, argument in enumerate(op.schema.arguments) if argument.type.startswith("Scalar")]
    known: set[Any] = set()

    def check(arguments: tuple[Any, ...]) -> None:
        first = arguments[0]
        is_array = type(first) is NpuArray
        mixed = False
        if not lax and (not is_array or first.dtype.kind not in INTEGERS):
            for i in others:
                other = arguments[i]
                if type(other) is NpuArray and other.dtype is not first.dtype and (
                        i == matched or other.dtype.kind not in INTEGERS):
                    mixed = True
                    break
            else:
                return
        wide = [arguments[i] for i in numbers if is_array and beyond(arguments[i], first.dtype)]
        kind = kind_of(arguments, lax)
        if wide:
            kind = (kind, *wide)
        if kind in known:
            return
        limit = LARGE if mixed else SMALL
        cut = any(value.size > limit for value in arguments if isinstance(value, NpuArray))
        try:
            ask(op, arguments, cut)
        except (NotImplementedError, TypeError):
            raise
        except (RuntimeError, ValueError, IndexError) as error:
            # Zeros for values; other sizes, and memory with one element, have errors of their own.
            about_types = mixed or (is_array and first.dtype == BOOL)
            if wide and OF_RANGE.search(str(error)):
                raise
            if cut and not OF_TYPES.search(str(error)):
                about_types = False
            if (lax or about_types) and not OF_ZEROS.search(str(error)):
                raise
        if len(known) >= KINDS_KEPT:
            known.clear()
        known.add(kind)

    return check


# Elements; larger arrays are cut to three elements per dimension before the CPU is asked. Different floating types are
# rare.
SMALL, LARGE = 1 << 12, 1 << 20
KINDS_KEPT = 512
INTEGERS = "iub"
OF_ZEROS = re.compile("ZeroDivision|read-only|setStorage")
OF_TYPES = re.compile("type|[Bb]ool")
OF_RANGE = re.compile("without overflow")


def beyond(value: Any, dtype: np.dtype) -> bool:
    """Whether a number may be out of the range of an integer type: then PyTorch's answer depends on its value."""
    limit = 1 << (8 * dtype.itemsize - 1)
    return type(value) in (int, float) and not -limit <= value < limit


def kind_of(value: Any, lax: bool) -> Any:
    """What refusals depend on: dtypes and numbers of dimensions; if `lax`, also sizes and numbers."""
    if isinstance(value, (NpuArray, MetaArray)):
        return (value.dtype.num, value.shape) if lax else (value.dtype.num, len(value.shape))
    if type(value) in (list, tuple):
        return tuple([kind_of(one, lax) for one in value])
    if not lax and type(value) in (int, float, bool):
        return type(value)
    return type(value), value if type(value).__hash__ is not None else None


def ask(op: Any, arguments: tuple[Any, ...], cut: bool = False) -> None:
    """Run what an op would do on the CPU on zeros of the same shapes, to have it raise what is wrong with them."""
    kernel = op.cpu_full or op.cpu
    if kernel is None:
        return
    kernel(*[stand_in(value, cut) for value in arguments])


def stand_in(value: Any, cut: bool) -> Any:
    """Zeros of the same shape, without memory."""
    if isinstance(value, (NpuArray, MetaArray)):
        shape = tuple([min(size, 3) for size in value.shape]) if cut else value.shape
        return np.broadcast_to(np.zeros((), value.dtype), shape)
    if type(value) in (list, tuple):
        return type(value)(stand_in(one, cut) for one in value)
    return Generator() if isinstance(value, Generator) else value


# -- ops that the NPU does not have ------------------------------------------------------------------------------------

WARNED: set[str] = set()


def fallback_wanted() -> bool:
    """Whether the environment lets the CPU take over missing ops."""
    return os.environ.get("MINDTORCH_NPU_FALLBACK", "0").lower() not in ("", "0", "false", "off", "no")


def complex_on_cpu(kernel: Kernel, elsewhere: Kernel) -> Kernel:
    """A kernel, or the one on the CPU if an array is complex: operators do not take complex numbers."""

    def run(*arguments: Any) -> Any:
        if any(getattr(getattr(one, "dtype", None), "kind", "") == "c" for one in _each(arguments)):
            return elsewhere(*arguments)
        return kernel(*arguments)

    return run


def _each(arguments: Any) -> Iterator[Any]:
    for one in arguments:
        yield from one if type(one) in (list, tuple) else (one,)


def on_cpu(op: Any, form: str, to_host: Callable[[Any], np.ndarray], to_device: Callable[[np.ndarray, Any], Any],
           copy: Callable[[Any, Any], Any]) -> Kernel:
    """A kernel that copies its arrays to the host, runs the CPU's kernel, and copies the results back."""
    inplace = form == INPLACE and op.cpu_inplace is not None
    kernel = op.cpu_inplace if inplace else op.cpu_full or op.cpu
    name = f"aten::{op.key}"

    def run(*arguments: Any) -> Any:
        if name not in WARNED:
            WARNED.add(name)
            warnings.warn(f"{name} is not on the NPU and runs on the CPU (MINDTORCH_NPU_FALLBACK is set)", UserWarning,
                          stacklevel=5)
        given: list[tuple[NpuArray, np.ndarray]] = []
        result = kernel(*[_on_host(value, given, to_host) for value in arguments])
        where = given[0][0].device if given else None
        if inplace or not op.schema.arguments:
            # For a function that is not an op, it is unknown what was written, so everything is copied back.
            for array, host in given[:1] if inplace else given:
                copy(array, to_device(np.ascontiguousarray(host), array.device))
            if inplace:
                return arguments[0]
        return _from_host(result, where, to_device)

    return run


def _on_host(value: Any, given: list[Any], to_host: Any) -> Any:
    if isinstance(value, NpuArray):
        host = np.ascontiguousarray(to_host(value))
        given.append((value, host))
        return host
    if type(value) in (list, tuple):
        return type(value)(_on_host(one, given, to_host) for one in value)
    # The CPU's kernels draw from its own streams.
    return None if type(value).__name__ == "Generator" else value


def _from_host(value: Any, where: Any, to_device: Any) -> Any:
    value = unflipped(value)
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        return to_device(value, where)
    if type(value) in (list, tuple):
        return type(value)(_from_host(one, where, to_device) for one in value)
    if type(value) in BY_ARRAY:
        raise NotImplementedError("run on the CPU, this op gives a sparse tensor, which the NPU does not have")
    return value

"""Compiles ops into callables: the path to kernels, with the profiler's hook in it.

`compile_op` turns a declaration into a function (`codegen` shows one). The functions share one globals dictionary,
`observer.HOOK`. So turning the profiler on is one store there, and checking for it is one load.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from .._autograd.graph import Node, apply_pack_hooks, edge, leaf_edge, save, save_list, unpack, unpack_result
from .._autograd.inplace import (
    INFERENCE,
    MANY,
    NO_GRAD,
    bump,
    check_inference,
    check_inplace,
    original,
    rebase,
)
from .._backends.base import BY_ARRAY, copy_array, device_kernel
from .._backends.overlap import check_apart, check_overlap, check_shown_once, dense
from .._device import on_two_devices
from .._dtype import as_dtype, dtype
from .._shape import argument_missing
from .._storage import InferenceShared, Shared
from .._tensor import TENSOR_TYPES, Tensor, alias, new, wrap, wrap_known
from .._warn import warn_once
from . import promotion
from .autocast import autocast_call
from .describe import describe_any, describe_each, key_of, note, noting, remembering, stands_for_list
from .explain import explain
from .facts import facts_of, ufunc_of
from .layouts import following
from .namespace import COMPILER, LOCK, aten
from .native import NATIVE
from .observer import NAMES, event_id, first_use, open_stretch
from .out_rules import APART, BY_ROWS, RESIZED_FIRST, check_out
from .overload_names import overload_name
from .overriding import Taken
from .promotion import check_cast
from .recipes import Recipe, inputs_recipe, is_kept, recipe
from .registry import OPS, Op
from .state import THREAD


class _NoTensor:
    """Takes the place of a tensor: for a Python number or a missing optional argument. Gradients never flow to it."""

    _rg = False
    _edge = _of = _st = None


NO_TENSOR = _NoTensor()
NUMBERS = frozenset({bool, int, float, complex, type(None)})
SCALAR_TYPES = frozenset(d.type for d in promotion.FROM_NUMPY)
np_array = np.array
ndarray = np.ndarray


def number_of(value: Any) -> Any:
    """The number in a tensor that was given for one; other values as they are."""
    return value.item() if isinstance(value, Tensor) else value


def number_tensor(value: Any, other: Any) -> Tensor:
    """A Python number as a tensor without dimensions, which does not widen a tensor beside it."""
    made = promotion.number_array(value)
    if type(value) is not bool and isinstance(other, Tensor):
        wanted = promotion.result_dtype([other._a], [value]).np
        if wanted != made.dtype:
            made = promotion.scalar_array(value, wanted).copy()
    return wrap(made)


def as_array(value: Any) -> Any:
    """NumPy returns scalars where PyTorch returns 0-d tensors; arrays of other devices pass unchanged."""
    if type(value) in BY_ARRAY:
        return value
    if type(value) in SCALAR_TYPES or isinstance(value, (np.generic, bool, int, float, complex)):
        return np_array(value)
    return value


def store(target: Any, result: Any) -> Any:
    """Write an in-place op's result into its target; raise an error where PyTorch does."""
    if result is target:
        return target
    result = as_array(result)
    if result.shape != target.shape:
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(result.shape)}"
        )
    if result.dtype != target.dtype:
        check_cast(result.dtype, target.dtype)
    if type(target) is np.ndarray and type(result) is np.ndarray:
        target[...] = result
        return target
    return copy_array(target, result)


def write_out(op: Op, out: Any, result: Any, inputs: tuple[Any, ...] = ()) -> Any:
    """Store results into the tensors given as `out=`, resizing empty or differently shaped ones."""
    if isinstance(result, (tuple, list)):
        if not isinstance(out, (tuple, list)):
            raise TypeError(f"{op.name}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}")
        if len(out) != len(result):
            raise TypeError(f"{op.name}() expected {len(result)} elements in 'out' but got {len(out)}")
        for one, value in zip(out, result):
            write_out(op, one, value, inputs)
        # The fields of the result have their names here too.
        kind: Any = type(result)
        return out if kind in (tuple, list) else kind.written(out)
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if out._rg and THREAD.state.grad and (op.grad or op.composite is not None):
        raise_out_grad(op)
    if type(out._st) is InferenceShared:
        check_inference(out)
    if (type(out._a) is not ndarray or type(result._a) is not ndarray) and out.device != result.device and any(
            argument.is_tensor for argument in op.schema.arguments):  # others make their result anywhere
        raise on_two_devices(result.device, out.device)
    if result._a.dtype != out._a.dtype:
        check_out(op, result._a.dtype, out._a.dtype, inputs)
    if result.requires_grad:
        raise_out_grad(op)
    apart = op.name in APART
    # `gather` reads an index before it writes there, so `out=` may be the index itself, once it has its shape.
    late = inputs[1:] if op.name == "gather" else ()
    for array in inputs[:len(inputs) - len(late)]:
        (check_apart if apart else check_overlap)(out._a, array)
    if out._a.shape != result._a.shape:
        if (op.promote or (apart and op.name not in RESIZED_FIRST)) and not (
                type(out._a) is ndarray and out._a.flags.writeable):
            check_shown_once(out._a)
        if out._a.size:
            warnings.warn(f"An output with one or more elements was resized since it had shape {list(out._a.shape)}, "
                          f"which does not match the required output shape {list(result._a.shape)}. Resize it to zero "
                          "elements first, t.resize_(0), to say that this is meant.", UserWarning, stacklevel=4)
        aten.resize_(out, result._a.shape)
        if result._a.strides != out._a.strides and op.name not in BY_ROWS and dense(result._a):
            out.as_strided_(result.shape, result.stride())  # memory of its own gets the layout of a new result
        out.shared().version -= 1  # the new size and the new values are one change
    for array in late:
        check_overlap(out._a, array)
    copy_array(out._a, result._a)
    bump(out)
    return out


def write_results(name: str, out: Any, result: Any, operands: tuple[Any, ...] = ()) -> Any:
    """`write_out` for a function that is not an op; `operands` may not lie in a part of the memory of `out`."""
    op = Op(f"{name}(Tensor self) -> Tensor", composite=write_results)
    return write_out(op, out, result, tuple([one._a for one in operands if isinstance(one, Tensor)]))


@functools.lru_cache(maxsize=256)
def _result_type(kernel: Any, *dtypes: np.dtype) -> np.dtype:
    """The result of a ufunc for arrays of these types."""
    return ufunc_of(kernel).resolve_dtypes((*dtypes, None))[-1]


def writes_into(kernel: Any, out: Any, *arrays: Any) -> bool:
    """Write a ufunc's result into a tensor if that has the right shape and type; returns whether it had."""
    target: Any = out._a if isinstance(out, Tensor) and not out._rg else None
    if type(target) is not ndarray:
        return False
    shape, spread, kinds = target.shape, False, [kernel]
    for array in arrays:
        if type(array) is not ndarray:
            return False
        kinds.append(array.dtype)
        if array is not target and array.shape != shape:
            spread = True
    if spread and shape != np.broadcast_shapes(*[a.shape for a in arrays]):
        return False
    if _result_type(*kinds) != target.dtype:
        return False
    if type(out._st) is InferenceShared:
        check_inference(out)
    for array in arrays:
        if array is not target:
            check_overlap(target, array)
    kernel(*arrays, out=target)
    bump(out)
    return True


def older_form(function: Callable[..., Any], values: tuple[Any, ...], out: Any = None) -> Any:
    """A call with factors between the tensors, as in programs for old versions of PyTorch."""
    name = function.__name__
    tensors = [v for v in values if isinstance(v, Tensor)]
    factors = [v for v in values if not isinstance(v, Tensor)]
    names = ("alpha",) if name.startswith(("add_", "sub")) or name == "add" else (
        ("value",) if name.startswith("addc") else ("beta", "alpha"))
    wanted = 2 if names == ("alpha",) else 3
    if len(tensors) != wanted or not 1 <= len(factors) <= len(names) or not all(
            isinstance(f, (bool, int, float, complex)) for f in factors):
        kinds = ", ".join("Tensor" if isinstance(v, Tensor) else type(v).__name__ for v in values)
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({kinds})")
    warn_once(f"This overload of {name} is deprecated: give {' and '.join(names)} by name")
    return function(*tensors, **dict(zip(names, factors)), **({} if out is None else {"out": out}))


def refuse_saving() -> None:
    """Raise an error: memory of inference mode may change unnoticed, so no backward can rely on it."""
    raise RuntimeError("Inference tensors cannot be saved for backward. Clone them outside inference mode, or compute "
                       "with them under no_grad or inference_mode.")


def first_share(tensor: Tensor) -> Shared:
    """`tensor.shared()` for a new tensor, which has none yet."""
    shared = tensor._st = new(Shared)
    shared.storage = None
    shared.version = 0
    return shared


def raise_out_grad(op: Op) -> None:
    """Raise an error: gradients cannot flow through `out=`."""
    raise RuntimeError(
        f"{op.name}(): functions with out=... arguments don't support automatic differentiation, "
        "but one of the arguments requires grad."
    )


def wrap_views(source: Tensor, arrays: Any) -> tuple[Tensor, ...]:
    """Tensors for several views of one source."""
    shared = source.shared()
    state = THREAD.state
    kind = MANY if state.grad else INFERENCE if state.inference else NO_GRAD
    base = (source if source._of is None else source._of[0], shared.version, kind)
    views = []
    for array in arrays:
        view = wrap_known(array)
        view._st = shared
        view._of = base
        views.append(view)
    return tuple(views)


def zeros_for(node: Node, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    """Zero gradients for unused outputs, so that formulas need not check."""
    for grad in grads:
        if grad is None:
            break
    else:
        return grads
    where = next((g.device for g in grads if g is not None), None)
    return tuple(
        aten.zeros(shape, dtype=promotion.FROM_NUMPY[d], device=where) if g is None else g
        for g, (shape, d) in zip(grads, node.meta)
    )


def geometry(tensor: Tensor) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """How a tensor lies in its storage: shape, strides and offset, in elements."""
    array = tensor._a
    item = array.dtype.itemsize
    return array.shape, tuple(s // item for s in array.strides), tensor.storage_offset()


NAMES.update(
    {
        "AUTOCAST": False,
        "DTYPE": dtype,
        "alias": alias,
        "FLOAT32": promotion.FLOAT32,
        "FLOAT_DTYPES": promotion.FLOAT_DTYPES,
        "NO_TENSOR": NO_TENSOR,
        "NUMBERS": NUMBERS,
        "NUMBER_PLANS": promotion.NUMBER_PLANS,
        "ONE": 1,  # the number itself: True and 1.0 equal it, and are of another kind
        "WIDE_PLANS": promotion.WIDE_PLANS,
        "TENSOR_TYPES": TENSOR_TYPES,
        "Taken": Taken,
        "Tensor": Tensor,
        "__name__": "mindtorch_v2._dispatch.generated",
        "apply_pack_hooks": apply_pack_hooks,
        "InferenceShared": InferenceShared,
        "as_array": as_array,
        "as_dtype": as_dtype,
        "autocast_call": autocast_call,
        "bump": bump,
        "check_inference": check_inference,
        "check_inplace": check_inplace,
        "check_overlap": check_overlap,
        "describe_any": describe_any,
        "device_kernel": device_kernel,
        "edge": edge,
        "explain": explain,
        "first_share": first_share,
        "differing_arrays": promotion.differing_arrays,
        "differing_number": promotion.differing_number,
        "product_arrays": promotion.product_arrays,
        "product_number": promotion.product_number,
        "quotient_arrays": promotion.quotient_arrays,
        "quotient_number": promotion.quotient_number,
        "float_pair": promotion.float_pair,
        "float_number": promotion.float_number,
        "geometry": geometry,
        "leaf_edge": leaf_edge,
        "ndarray": np.ndarray,
        "new": new,
        "number_of": number_of,
        "original": original,
        "promote_arrays": promotion.promote_arrays,
        "promote_list": promotion.promote_list,
        "promote_number": promotion.promote_number,
        "number_tensor": number_tensor,
        "argument_missing": argument_missing, "older_form": older_form,
        "open_stretch": open_stretch,
        "raise_out_grad": raise_out_grad,
        "rebase": rebase,
        "refuse_saving": refuse_saving,
        "save": save,
        "save_list": save_list,
        "store": store,
        "to_float": promotion.to_float,
        "wrap": wrap,
        "wrap_views": wrap_views,
        "write_out": write_out,
        "writes_into": writes_into,
    }
)

def compile_op(op: Op, inplace: bool = False) -> Callable[..., Any]:
    """The function of an op, written and compiled at its first use."""
    found = op.forms.get(inplace)
    if found is not None:
        return found
    with LOCK:
        if inplace not in op.forms:
            with first_use(f"{op.namespace}::{op.name}{'_' * inplace}"):
                op.forms[inplace] = _compile(op, inplace)
    return op.forms[inplace]


def make_ready(*keys: str) -> None:
    """Compile ops (in-place forms: `_` after the name) whose code is on disk; the others wait for their first use.

    For the modules whose users will soon need them: a first step then takes little longer than the next one.
    """
    for key in keys:
        name, dot, overload = key.partition(".")
        inplace = name.endswith("_") and key not in OPS
        op = OPS[name[:-1] + dot + overload] if inplace else OPS[key]
        if inplace not in op.forms and is_kept(facts_of(op, inplace)):
            compile_op(op, inplace)


def _compile(op: Op, inplace: bool) -> Callable[..., Any]:
    made = recipe(facts_of(op, inplace))
    full_name = f"{op.namespace}::{op.name}{'_' * inplace}"
    # Like PyTorch, count FLOPs of the functional form only.
    counted = None if inplace else op
    label = event_id(full_name, "op", overload_name(op, inplace), counted)
    scalar_label = event_id(full_name, "op", op.scalar_overload, counted) if op.scalar_overload else label
    kernel = op.composite or (op.cpu_inplace if inplace and op.cpu_inplace is not None else op.cpu)
    if kernel is None:
        raise NotImplementedError(f"aten::{op.key} exists only in its in-place form")
    if op.composite is None:
        kernel = following(op.name, kernel)
    function = execute(made.function)(op, kernel, op.cpu_full, node_class(op, made, inplace), label, scalar_label,
                                      describer(op), None)
    function.__module__ = "torch"
    function.__doc__ = f"{op.namespace}::{op.signature or op.schema_text}"
    function.__qualname__ = function.__name__
    return function


def execute(code: CodeType) -> Callable[..., Any]:
    """Run generated code, which defines `make`, in the shared namespace and return `make`."""
    space: dict[str, Any] = {}
    exec(code, NAMES, space)
    return space["make"]


def node_class(op: Op, made: Recipe, inplace: bool) -> type[Node] | None:
    """The class of the nodes that this op records, with PyTorch's name."""
    if made.apply is None:
        return None
    name = op.inplace_node if inplace else op.node
    return type(name.rpartition("::")[2], (Node,), {
        "full_name": name,
        "may_run_user_code": False,
        "__slots__": made.slots,
        "apply": execute(made.apply)(unpack, unpack_result, list(op.formulas(inplace).values()), zeros_for),
        "saved_names": made.saved,
        "recorded_by": op,
    })


def describer(op: Op) -> list[Callable[..., int]]:
    """A cell with a function from an op's arguments to the number of their description, made at its first call."""
    if NATIVE is not None and not stands_for_list(op.schema_text):
        return [remembering(describe_each, True)]  # the twin describes by itself: no code is needed

    def first_call(*values: Any) -> int:
        code, lengths = inputs_recipe(op.schema_text)
        typed = noting(lengths)
        cell[0] = remembering(execute(code)(key_of, typed), typed is note)
        return cell[0](*values)

    cell: list[Callable[..., int]] = [first_call]
    return cell


COMPILER.append(compile_op)

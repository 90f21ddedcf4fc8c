"""Signatures of ops in the spelling of PyTorch's traces.

The op table has what this runtime needs. PyTorch's text says more: which arguments share memory with the result
(`Tensor(a)`) or are changed (`Tensor(a!)`), and which integers may be symbolic (`SymInt`). A few ops have arguments
that this runtime does not use, or names that Python cannot have. All of it is derived from the table and the facts
below.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..._dispatch.overload_names import overload_name
from ..._dispatch.registry import OVERLOADS, Op
from ..._dispatch.schema import Argument, Schema, parse_schema

# Integers that may be symbolic in PyTorch wherever an argument has one of these names ...
SYMBOLIC = frozenset(
    ["C", "HxW", "N", "bias_sizes", "diagonal", "dilation", "end", "groups", "high", "ignore_index", "index",
     "input_size", "input_sizes", "k", "length", "low", "m", "minlength", "normalized_shape", "num_samples",
     "num_weights", "output_padding", "output_size", "pad", "padding", "repeats", "self_sizes", "shape", "shifts",
     "size", "sizes", "split_size", "split_sizes", "start", "step", "storage_offset", "stride"])
# ... except in these ops, which take plain integers ...
PLAIN_OPS = frozenset(
    ["_fused_rms_norm", "adaptive_avg_pool1d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
     "avg_pool1d", "avg_pool2d", "avg_pool2d_backward", "avg_pool3d", "avg_pool3d_backward", "conv_tbc",
     "conv_tbc_backward", "diag", "fractional_max_pool2d", "fractional_max_pool2d_backward", "fractional_max_pool3d",
     "fractional_max_pool3d_backward", "im2col",
     "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices",
     "max_pool2d_with_indices_backward", "max_pool3d", "max_pool3d_with_indices", "max_pool3d_with_indices_backward",
     "max_unpool3d", "rot90", "unfold", "unfold_backward", "unfold_copy", "vander"])
# ... and single arguments that are, or are not, symbolic.
ALSO_SYMBOLIC = frozenset(
    [("embedding", "padding_idx"), ("embedding_backward", "padding_idx"), ("embedding_dense_backward", "padding_idx"),
     ("eye", "n"), ("max_unpool3d", "output_size"), ("randperm", "n"), ("tensor_split", "indices"),
     ("tensor_split", "sections"), ("tile", "dims"),
     ("unfold_backward", "input_sizes"),
     *((name, "kernel_size") for name in (
         "slow_conv3d", "slow_conv_dilated2d", "slow_conv_dilated3d", "slow_conv_transpose2d", "slow_conv_transpose3d",
         "thnn_conv2d"))])
NOT_SYMBOLIC = frozenset([("col2im", "stride"), ("col2im", "padding"), ("col2im", "dilation"), ("istft", "length")])
# Ops that may return their input's memory, although they are not declared as views here.
SHARING = frozenset(
    ["_conj", "adjoint", "broadcast_to", "chunk", "coalesce", "contiguous", "detach", "dsplit", "expand_as", "flatten",
     "hsplit", "imag", "lift_fresh", "linalg_diagonal", "mH", "mT", "matrix_H", "moveaxis", "movedim", "narrow",
     "numpy_T", "positive", "ravel", "real", "reshape", "reshape_as", "resolve_conj", "resolve_neg", "slice_inverse",
     "swapaxes", "swapdims", "tensor_split", "to", "unflatten", "values", "view_as", "vsplit"])

_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_INTEGERS = _OPTIONS.replace("None", "4", 1)
_ADAM = ("Tensor[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] "
         "max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, "
         "bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None")
# PyTorch's arguments of ops that are declared differently here, or that change more than the first argument.
ARGUMENTS = {
    "_amp_foreach_non_finite_check_and_unscale_": "Tensor[] self, Tensor(b!) found_inf, Tensor inv_scale",
    "_amp_update_scale_": "Tensor self, Tensor(b!) growth_tracker, Tensor found_inf, float scale_growth_factor, "
                          "float scale_backoff_factor, int growth_interval",
    "_cholesky_solve_helper": "Tensor self, Tensor A, bool upper",
    "_fused_adagrad_": "Tensor[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor(d!)[] state_steps, *, "
                       "float lr, float lr_decay, float weight_decay, float eps, bool maximize, "
                       "Tensor? grad_scale=None, Tensor? found_inf=None",
    "_fused_adam_": _ADAM,
    "_fused_adamw_": _ADAM,
    "_fused_sgd_": "Tensor[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, "
                   "float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, "
                   "Tensor? grad_scale=None, Tensor? found_inf=None",
    "_has_compatible_shallow_copy_type": "Tensor self, Tensor from",
    "_index_put_impl": "Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False",
    "_to_copy": f"Tensor self, *, {_OPTIONS}, bool non_blocking=False, MemoryFormat? memory_format=None",
    "affine_grid_generator_backward": "Tensor grad, int[] size, bool align_corners",
    "contiguous": "Tensor self, *, MemoryFormat memory_format=0",
    "conv_tbc_backward": "Tensor self, Tensor input, Tensor weight, Tensor bias, int pad",
    "empty.memory_format": f"int[] size, *, {_OPTIONS}, MemoryFormat? memory_format=None",
    "eye.m": f"int n, int m, *, {_OPTIONS}",
    "index.Tensor": "Tensor self, Tensor?[] indices",
    "index_put": "Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False",
    "linalg_matrix_norm": "Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, "
                          "ScalarType? dtype=None",
    "native_group_norm": "Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps",
    "native_group_norm_backward": "Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int N, "
                                  "int C, int HxW, int group, bool[3] output_mask",
    "native_layer_norm": "Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps",
    "randint": f"int high, int[] size, *, {_INTEGERS}",
    "randint.generator": f"int high, int[] size, *, Generator? generator, {_INTEGERS}",
    "randint.low": f"int low, int high, int[] size, *, {_INTEGERS}",
    "randint.low_generator": f"int low, int high, int[] size, *, Generator? generator, {_INTEGERS}",
    "random.from": "Tensor self, int from, int? to, *, Generator? generator=None",
    "random.to": "Tensor self, int to, *, Generator? generator=None",
    "randperm": f"int n, *, {_INTEGERS}",
    "randperm.generator": f"int n, *, Generator? generator, {_INTEGERS}",
    "rrelu_with_noise": "Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, "
                        "bool training=False, Generator? generator=None",
    "slice_backward": "Tensor grad_output, int[] input_sizes, int dim, int start, int end, int step",
    "to.device": "Tensor self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
                 "MemoryFormat? memory_format=None",
    "to.dtype": "Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
                "MemoryFormat? memory_format=None",
    "to.dtype_layout": f"Tensor self, *, {_OPTIONS}, bool non_blocking=False, bool copy=False, "
                       "MemoryFormat? memory_format=None",
    "trapz.dx": "Tensor y, *, float dx=1., int dim=-1",
    "tril_indices": f"int row, int col, int offset=0, *, {_INTEGERS}",
    "triu_indices": f"int row, int col, int offset=0, *, {_INTEGERS}",
    "uniform": "Tensor self, float from=0., float to=1., *, Generator? generator=None",
}
RETURNS = {
    "_scaled_dot_product_flash_attention_for_cpu": "(Tensor output, Tensor logsumexp)",
    "_scaled_dot_product_flash_attention_for_cpu_backward": "(Tensor grad_query, Tensor grad_key, Tensor grad_value)",
}
# PyTorch's name -> the names here.
RENAMED = {"A": ("input2",), "C": ("c",), "HxW": ("hxw",), "N": ("n",), "from": ("low", "source"), "grad": (
    "grad_output",), "normalized_shape": ("normalized_size",), "self": ("grad_output",), "to": ("high",)}


class Form(NamedTuple):
    """The form of an op that was called."""

    op: Op
    inplace: bool = False
    scalar: bool = False  # the overload with a number as second operand
    out: bool = False
    variant: str = ""  # PyTorch's overload for these arguments, if one op here covers several


def form_of(op: Op, inplace: bool, values: Sequence[Any]) -> Form:
    """The form of a call with these values: one for each argument, and one more for `out` if the op has it.

    A value is a tensor if it is neither None nor a Python number.
    """
    arguments = op.schema.arguments
    scalar = op.scalar_overload is not None and len(arguments) > 1 and isinstance(values[1], (int, float, complex))
    out = len(values) > len(arguments) and values[-1] is not None
    given = frozenset(argument.name for argument, value in zip(arguments, values) if value is not None)
    return Form(op, inplace, scalar, out, _variant(op, given))


def form_of_step(name: str, overload: str, count: int) -> Form | None:
    """The form of a kernel's step, by its name and number of arguments; None if the table has none."""
    base = name.removeprefix("aten::")
    found = []
    for inplace in (False, True):
        if inplace and not base.endswith("_"):
            break
        for op in OVERLOADS.get(base[:-1] if inplace else base, []):
            if inplace and not op.inplace:
                continue
            if overload_name(op) == overload:
                found.append(Form(op, inplace))
            elif op.scalar_overload is not None and op.scalar_overload == overload:
                found.append(Form(op, inplace, scalar=True))
            elif f"{base}.{overload}" in ARGUMENTS:
                found.append(Form(op, inplace, variant=overload))
    return next((form for form in found if len(arguments_of(form)) == count), None)


def _variant(op: Op, given: frozenset[str]) -> str:
    """PyTorch's overload of an op if these arguments are not None; empty for the op's own."""
    if op.key == "to.dtype_layout" and "dtype" in given:
        return "device" if "device" in given else "dtype"
    return ""


@functools.cache
def arguments_of(form: Form) -> tuple[tuple[Argument, int | None], ...]:
    """PyTorch's arguments of an op, and the position of each among the arguments here, or None."""
    op = form.op
    own = op.schema.arguments
    text = ARGUMENTS.get(f"{op.name}.{form.variant}" if form.variant else op.key)
    if text is None:
        return tuple((argument, number) for number, argument in enumerate(own))
    places = {argument.name: number for number, argument in enumerate(own)}
    spelled: Schema = parse_schema(f"{op.name}({text}) -> Tensor")
    return tuple((a, next((places[name] for name in (a.name, *RENAMED.get(a.name, ())) if name in places), None))
                 for a in spelled.arguments)


@functools.cache
def schema_text(form: Form) -> str:
    """The signature of a form."""
    op = form.op
    if op.signature is not None:
        return str(op.signature)
    changes = form.inplace or (op.name.endswith("_") and not op.name.endswith("__")) or op.name.startswith("__i")
    shares = not changes and (op.view or op.name in SHARING)
    parts: list[str] = []
    for number, (argument, _) in enumerate(arguments_of(form)):
        if argument.keyword_only and "*" not in parts:
            parts.append("*")
        kind = _type_text(op, argument)
        if number == 0 and argument.is_tensor and (changes or shares):
            several = shares and any("[]" in one for one in op.schema.returns)
            kind = kind.replace("Tensor", "Tensor(a!)" if changes else "Tensor(a -> *)" if several else "Tensor(a)", 1)
        if number == 1 and form.scalar:
            kind = kind.replace("Tensor", "Scalar", 1)
        if argument.name == "out" and argument.keyword_only:
            kind = kind.replace("Tensor", "Tensor(a!)", 1)
        parts.append(f"{kind} {argument.name}{_default_text(argument)}")
    if form.out:
        parts += [*([] if "*" in parts else ["*"]), "Tensor(a!) out"]
    overload = op.scalar_overload if form.scalar else overload_name(op, form.inplace)
    overload = "out" if form.out else form.variant or overload
    name = f"aten::{op.name}{'_' * form.inplace}{'.' * bool(overload)}{overload}"
    result = RETURNS.get(op.name) or op.schema.text.rpartition("->")[2].strip()
    changes = changes or form.out or any(a.name == "out" and a.keyword_only for a in op.schema.arguments)
    if result.startswith("Tensor") and (changes or shares):
        result = result.replace("Tensor", "Tensor(a!)" if changes else "Tensor(a)", 1)
    return f"{name}({', '.join(parts)}) -> {result}"


def _type_text(op: Op, argument: Argument) -> str:
    kind = argument.type
    if not kind.startswith("int"):
        return kind
    key = (op.name, argument.name)
    symbolic = argument.name in SYMBOLIC and op.name not in PLAIN_OPS and key not in NOT_SYMBOLIC
    return f"SymInt{kind[len('int'):]}" if symbolic or key in ALSO_SYMBOLIC else kind


def _default_text(argument: Argument) -> str:
    """`=value` as PyTorch prints it: floats with all their digits, lists in brackets, text in double quotes."""
    default = argument.default
    if default is None:
        return ""
    if argument.type.startswith(("float", "Scalar")) and ("." in default or "e" in default) and default != "None":
        value = ast.literal_eval(default)
        if isinstance(value, float):
            digits = f"{value:.17g}"
            return f"={digits}." if value.is_integer() and "e" not in digits else f"={digits}"
    if default.startswith("("):
        return f"={list(ast.literal_eval(default))}"
    return f"={default}".replace("'", '"')

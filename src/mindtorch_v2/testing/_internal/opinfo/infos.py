"""What tests know of an op: how it is called, for which dtypes, on which samples, and what NumPy says.

Tests read many fields that only PyTorch's own compilers and devices need. Each class lists its fields once with their
defaults; an unknown one is refused.
"""

from __future__ import annotations

import enum
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from ...._dtype import dtype, int64
from ...._dtype import float32 as single
from ...._tensor import Tensor
from ..._creation import make_tensor
from ..common_dtype import all_types_and_complex_and
from .elementwise import (
    reference_inputs_elementwise_binary,
    reference_inputs_elementwise_unary,
    sample_inputs_elementwise_binary,
    sample_inputs_elementwise_unary,
)
from .inputs import _NOTHING, DecorateInfo, ErrorInput, S, SampleInput, extremal


class AliasInfo:
    """Another name of an op."""

    def __init__(self, alias_name: str) -> None:
        self.name = alias_name
        self.op = _found(alias_name)
        self.method_variant = getattr(Tensor, alias_name, None)
        self.inplace_variant = getattr(Tensor, f"{alias_name}_", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)


def _found(name: str) -> Any:
    """`torch.special.erf` for "special.erf"; None if there is no such name."""
    value: Any = sys.modules["mindtorch_v2"]
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _one_sample(op: Any, device: Any, dtype: dtype, requires_grad: bool, **kwargs: Any) -> Iterator[SampleInput]:
    yield SampleInput(make_tensor((S, S), device=device, dtype=dtype, requires_grad=requires_grad))


class OpInfo:
    """An op, under its public name."""

    FIELDS: ClassVar[dict[str, Any]] = {
        "ref": None, "aliases": (), "variant_test_name": "", "op": None, "method_variant": _NOTHING,
        "inplace_variant": _NOTHING, "operator_variant": _NOTHING, "inplace_operator_variant": _NOTHING, "skips": (),
        "decorators": (), "sample_inputs_func": _one_sample, "reference_inputs_func": None, "error_inputs_func": None,
        "dtypes": None, "backward_dtypes": None, "supports_out": True, "supports_autograd": True,
        "supports_gradgrad": None, "supports_fwgrad_bwgrad": False, "supports_inplace_autograd": None,
        "supports_forward_ad": False, "supports_varargs": False, "check_batched_grad": None,
        "check_batched_gradgrad": None, "check_batched_forward_grad": None,
        "check_inplace_batched_forward_grad": None, "gradcheck_nondet_tol": 0.0, "gradcheck_fast_mode": None,
        "gradcheck_wrapper": staticmethod(lambda op, *args, **kwargs: op(*args, **kwargs)), "aten_name": None,
        "decomp_aten_name": None, "aten_backward_name": None, "assert_autodiffed": False,
        "autodiff_nonfusible_nodes": None, "autodiff_fusible_nodes": None, "supports_sparse": False,
        "supports_sparse_csr": False, "supports_sparse_csc": False, "supports_sparse_bsr": False,
        "supports_sparse_bsc": False, "supports_scripting": False, "supports_tracing": False, "supports_njt": False,
        "promotes_int_to_float": False, "test_conjugated_samples": True, "test_neg_view": True,
        "assert_jit_shape_analysis": False, "supports_expanded_weight": False, "is_factory_function": False,
        "supports_cow_input_no_materialize_forward": False, "supports_cow_input_no_materialize_backward": False,
        "skip_cow_input_backward": False, "allow_cow_input_materialize_forward": None,
        "allow_cow_input_materialize_backward": None, "skip_correctness_check_compile_vs_eager": False,
        "has_nondeterministic_output": False,
    }
    # Fields for other devices and layouts begin with these words.
    ELSEWHERE = ("dtypesIf", "backward_dtypesIf", "error_inputs_sparse", "sample_inputs_sparse")

    aliases: Any
    aten_name: Any
    backward_dtypes: Any
    decorators: Any
    dtypes: Any
    lhs_make_tensor_kwargs: Any
    op: Any
    ref: Any
    rhs_make_tensor_kwargs: Any
    supports_one_python_scalar: Any
    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            """The other fields of `FIELDS`."""

    def __init__(self, name: str, **fields: Any) -> None:
        self.name = name
        known: dict[str, Any] = {}
        for cls in reversed(type(self).__mro__):
            known.update(vars(cls).get("FIELDS", {}))
        unknown = [key for key in fields if key not in known and not key.startswith(self.ELSEWHERE)]
        if unknown:
            raise TypeError(f"{type(self).__name__}: unknown field {unknown[0]!r}")
        for key, default in known.items():
            value = fields.get(key, default)
            setattr(self, key, value.__func__ if isinstance(value, staticmethod) else value)
        self.op = _found(name) if self.op is None else self.op
        last = name.rpartition(".")[2]
        for key, found in (("method_variant", last), ("inplace_variant", f"{last}_"),
                           ("operator_variant", None), ("inplace_operator_variant", None)):
            if getattr(self, key) is _NOTHING:
                own = name if "variant" in key and "." in name else found  # what is in a module is no method
                setattr(self, key, getattr(operator if found is None else Tensor, str(own or last), None))
        self.dtypes = tuple(all_types_and_complex_and() if self.dtypes is None else self.dtypes)
        self.backward_dtypes = [one for one in self.backward_dtypes or self.dtypes
                                if one.is_floating_point or one.is_complex]
        self.aliases = tuple(AliasInfo(one) for one in self.aliases)
        self.decorators = (*self.decorators, *self.skips)
        self.aten_name = self.aten_name or name.replace(".", "_")
        for key in ("supports_gradgrad", "supports_inplace_autograd"):
            if getattr(self, key) is None:
                setattr(self, key, self.supports_autograd)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.full_name})"

    @property
    def full_name(self) -> str:
        """`std.unbiased`."""
        return f"{self.name}.{self.variant_test_name}" if self.variant_test_name else self.name

    @property
    def formatted_name(self) -> str:
        """The name as part of a test's name."""
        return self.full_name.replace(".", "_")

    def get_op(self) -> Any:
        """The function."""
        return self.op

    def get_method(self) -> Any:
        """The method, None if there is none."""
        return self.method_variant

    def get_inplace(self) -> Any:
        """The method that changes its tensor."""
        return self.inplace_variant

    def get_operator(self) -> Any:
        """Python's operator."""
        return self.operator_variant

    def get_inplace_operator(self) -> Any:
        """Python's operator that changes its tensor."""
        return self.inplace_operator_variant

    def sample_inputs(self, device: Any, dtype: dtype, requires_grad: bool = False, **kwargs: Any) -> list[SampleInput]:
        """Arguments that it takes."""
        kwargs.pop("set_seed", None)
        kwargs.pop("include_conjugated_inputs", None)
        return list(self.sample_inputs_func(self, device, dtype, requires_grad, **kwargs))

    def conjugate_sample_inputs(self, device: Any, dtype: dtype, requires_grad: bool = False,
                                **kwargs: Any) -> list[SampleInput]:
        """The samples with conjugated tensors."""
        return [sample.transform(lambda one: one.conj() if isinstance(one, Tensor) and one.is_complex() else one)
                for sample in self.sample_inputs(device, dtype, requires_grad, **kwargs)]

    def reference_inputs(self, device: Any, dtype: dtype, requires_grad: bool = False,
                         **kwargs: Any) -> list[SampleInput]:
        """More arguments, for the comparison with NumPy."""
        make = self.reference_inputs_func or self.sample_inputs_func
        return list(make(self, device, dtype, requires_grad, **kwargs))

    def error_inputs(self, device: Any, **kwargs: Any) -> list[ErrorInput]:
        """Arguments that it refuses."""
        return [] if self.error_inputs_func is None else list(self.error_inputs_func(self, device, **kwargs))

    def get_decorators(self, test_class: str, test_name: str, device: str | None, dtype: Any,
                       param_kwargs: dict[str, Any]) -> list[Callable[..., Any]]:
        """The decorators of one test."""
        found: list[Callable[..., Any]] = []
        for one in self.decorators:
            if not isinstance(one, DecorateInfo):
                found.append(one)
            elif one.is_active(test_class, test_name, device, dtype, param_kwargs):
                found += one.decorators
        return found

    def supported_dtypes(self, device_type: str) -> set[dtype]:
        """The dtypes that it computes on a device."""
        return set(self.dtypes)

    def supported_backward_dtypes(self, device_type: str) -> set[dtype]:
        """The dtypes whose gradients it computes."""
        return set(self.backward_dtypes) if self.supports_autograd else set()

    def supports_dtype(self, dtype: dtype, device_type: str) -> bool:
        """Whether it computes a dtype on a device."""
        return dtype in self.supported_dtypes(device_type)


def _no_arguments(*args: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return {}, {}


class UnaryUfuncInfo(OpInfo):
    """An elementwise op of one tensor."""

    FIELDS: ClassVar[dict[str, Any]] = {
        "domain": (None, None), "handles_complex_extremal_values": True, "handles_large_floats": True,
        "supports_complex_to_float": False, "sample_kwargs": staticmethod(_no_arguments),
        "sample_inputs_func": sample_inputs_elementwise_unary,
        "reference_inputs_func": reference_inputs_elementwise_unary, "reference_numerics_filter": None,
        "supports_kwarg_input_sample_func": False,
    }


class BinaryUfuncInfo(OpInfo):
    """An elementwise op of two tensors."""

    FIELDS: ClassVar[dict[str, Any]] = {
        "sample_inputs_func": sample_inputs_elementwise_binary, "sample_kwargs": staticmethod(_no_arguments),
        "reference_inputs_func": reference_inputs_elementwise_binary, "lhs_make_tensor_kwargs": None,
        "rhs_make_tensor_kwargs": None, "always_returns_bool": False, "supports_rhs_python_scalar": True,
        "supports_one_python_scalar": False, "supports_two_python_scalars": False, "reference_numerics_filter": None,
    }

    def __init__(self, name: str, **fields: Any) -> None:
        super().__init__(name, **fields)
        self.lhs_make_tensor_kwargs = dict(self.lhs_make_tensor_kwargs or {})
        self.rhs_make_tensor_kwargs = dict(self.rhs_make_tensor_kwargs or {})
        self.supports_one_python_scalar = self.supports_one_python_scalar or self.supports_two_python_scalars


def sample_inputs_reduction(op_info: Any, device: Any, dtype: dtype, requires_grad: bool,
                            **kwargs: Any) -> Iterator[SampleInput]:
    """Numbers, vectors and boxes, along no, one and several dimensions."""
    for shape in ((), (S,), (2, 3, 4)):
        choices: list[dict[str, Any]] = [{}, {"dim": -1}, {"dim": 0, "keepdim": True}]
        if op_info.supports_multiple_dims and len(shape) > 1:
            choices += [{"dim": (0, -1)}, {"dim": (0, 1), "keepdim": True}]
        for chosen in choices:
            one = make_tensor(shape, device=device, dtype=dtype, requires_grad=requires_grad)
            for args, more in op_info.generate_args_kwargs(one, **chosen):
                yield SampleInput(one.detach().requires_grad_(requires_grad), args=args, kwargs={**chosen, **more})


def _nothing_more(*args: Any, **kwargs: Any) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield (), {}


class ReductionOpInfo(OpInfo):
    """An op that makes one element out of many."""

    FIELDS: ClassVar[dict[str, Any]] = {
        "identity": None, "nan_policy": None, "supports_multiple_dims": True, "promotes_int_to_int64": False,
        "result_dtype": None, "complex_to_real": False, "generate_args_kwargs": staticmethod(_nothing_more),
        "sample_inputs_func": sample_inputs_reduction, "supports_inplace_autograd": False,
    }

    def __init__(self, name: str, **fields: Any) -> None:
        super().__init__(name, **fields)
        if self.nan_policy not in (None, "propagate", "omit"):
            raise AssertionError("nan_policy is 'propagate' or 'omit'")
        if self.promotes_int_to_float and self.promotes_int_to_int64:
            raise AssertionError("integers become floats or int64, not both")
        self.promoted = int64 if self.promotes_int_to_int64 else single if self.promotes_int_to_float else None


class SpectralFuncType(enum.Enum):
    """Along how many dimensions a Fourier transform goes."""

    OneD = 1
    TwoD = 2
    ND = 3


def sample_inputs_spectral_ops(self: Any, device: Any, dtype: dtype, requires_grad: bool,
                               **kwargs: Any) -> Iterator[SampleInput]:
    """Transforms of another length, along other dimensions, with each normalization."""
    one_d = self.ndimensional is SpectralFuncType.OneD
    for chosen in ({}, {"n" if one_d else "s": 7 if one_d else (5, 7)}, {"norm": "ortho"}, {"norm": "forward"},
                   {"dim": 0} if one_d else {"dim": (0, 1)}):
        shape = (6, 8) if one_d else (3, 6, 8)
        yield SampleInput(make_tensor(shape, device=device, dtype=dtype, requires_grad=requires_grad), kwargs=chosen)


class SpectralFuncInfo(OpInfo):
    """A Fourier transform."""

    FIELDS: ClassVar[dict[str, Any]] = {"ndimensional": SpectralFuncType.OneD,
                                        "sample_inputs_func": sample_inputs_spectral_ops}


class ShapeFuncInfo(OpInfo):
    """An op that repeats elements."""


class ForeachFuncInfo(OpInfo):
    """An op on lists of tensors, beside the op on one: `_foreach_add` beside `add`."""

    FIELDS: ClassVar[dict[str, Any]] = {
        "supports_alpha_param": False, "supports_scalar_self_arg": False, "backward_requires_result": False,
    }

    def __init__(self, name: str, **fields: Any) -> None:
        whole = name if name.startswith("_foreach_") else f"_foreach_{name}"
        single_name = whole.removeprefix("_foreach_")
        super().__init__(whole, **{"method_variant": _found(whole), "inplace_variant": _found(f"{whole}_"), **fields})
        self.ref = self.ref or _found(single_name) or getattr(Tensor, single_name, None)
        self.ref_inplace = getattr(Tensor, f"{single_name}_", None)


def sample_inputs_foreach(self: Any, device: Any, dtype: dtype, N: int | Iterable[int], *, noncontiguous: bool = False,
                          same_size: bool = False, low: Any = None, high: Any = None, zero_size: bool = False,
                          requires_grad: bool = False, **kwargs: Any) -> list[Any]:
    """A list of matrices: of growing size, of one size or without elements."""
    counts = list(N) if isinstance(N, Iterable) else [N] * N if same_size else [N - number for number in range(N)]
    return [make_tensor((0, 0) if zero_size else (one, one), device=device, dtype=dtype, noncontiguous=noncontiguous,
                        low=low, high=high, requires_grad=requires_grad) for one in counts]


__all__ = ["AliasInfo", "BinaryUfuncInfo", "ForeachFuncInfo", "OpInfo", "ReductionOpInfo", "ShapeFuncInfo",
           "SpectralFuncInfo", "SpectralFuncType", "UnaryUfuncInfo", "extremal", "sample_inputs_foreach",
           "sample_inputs_reduction", "sample_inputs_spectral_ops"]

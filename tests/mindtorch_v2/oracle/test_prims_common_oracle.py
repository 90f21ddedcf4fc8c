"""Questions about dtypes, dimensions and strides get PyTorch's answers."""

import pytest
import torch as pytorch
import torch._prims_common as theirs

import mindtorch_v2
import mindtorch_v2._prims_common as ours

PROGRAMS = """
[p.dtype_to_type(kind) for kind in kinds]
p.dtype_to_type(3)
[[question(kind) for kind in kinds] for question in (p.is_boolean_dtype, p.is_integer_dtype, p.is_float_dtype)]
[[question(kind) for kind in kinds] for question in (p.is_complex_dtype, p.is_grad_dtype)]
[p.corresponding_complex_dtype(kind) for kind in (t.bfloat16, t.float32, t.float64)]
[p.corresponding_real_dtype(kind) for kind in (t.complex64, t.complex128)]
p.corresponding_real_dtype(t.float32)
p.corresponding_complex_dtype(t.int8)
[p.make_contiguous_strides_for(shape) for shape in ((2, 3, 4), (0, 3), (3, 0), ())]
[p.make_contiguous_strides_for(shape, row_major=False) for shape in ((2, 3, 4), (3,), (3, 4), ())]
p.canonicalize_dim(3, -1), p.canonicalize_dims(3, (-1, 0)), p.canonicalize_dims(3, -2), p.canonicalize_dim(0, 0)
p.canonicalize_dim(3, 3)
[p.is_expandable_to(a, b) for a, b in (((1, 3), (4, 2, 3)), ((2,), (3,)), ((2, 2), (2,)), ((), (3,)))]
[one.name for one in p.ELEMENTWISE_TYPE_PROMOTION_KIND], [one.value for one in p.REDUCTION_OUTPUT_TYPE_KIND]
p.TensorLike is t.Tensor
[[p.elementwise_dtypes(t.ones(2, dtype=k), type_promotion_kind=one) for k in kinds] for one in promotions]
[[p.elementwise_dtypes(t.ones(2, dtype=k), 1.5, type_promotion_kind=one) for k in kinds] for one in promotions]
[[p.elementwise_dtypes(t.ones(2, dtype=k), t.ones(()), type_promotion_kind=one) for k in kinds] for one in promotions]
""".strip().splitlines()


def answer(torch, module, program):
    """What a program prints on one runtime, or the class of its error."""
    kinds = [getattr(torch, name) for name in ("bool", "uint8", "int64", "bfloat16", "float64", "complex64")]
    try:
        return repr(eval(program, {"t": torch, "p": module, "kinds": kinds,
                                   "promotions": list(module.ELEMENTWISE_TYPE_PROMOTION_KIND)}))
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("program", PROGRAMS)
def test_answers(program):
    assert answer(mindtorch_v2, ours, program) == answer(pytorch, theirs, program)

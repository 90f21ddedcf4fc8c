"""The called C functions, as data: names and arguments. `library.py` makes ctypes prototypes of them.

Every function returns an `int` status unless `RETURNS` says otherwise. Arguments are written in the words of `TYPES`;
`?` marks one that may be absent (NULL). The operators follow one convention: `aclnn<Name>GetWorkspaceSize` takes the
arguments that are listed here, then two pointers to results; `aclnn<Name>` takes workspace, its size, executor and
stream.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

TYPES: dict[str, Any] = {
    # handles and addresses
    "p": ctypes.c_void_p,
    "T": ctypes.c_void_p, "S": ctypes.c_void_p, "IA": ctypes.c_void_p, "BA": ctypes.c_void_p, "FA": ctypes.c_void_p,
    "TL": ctypes.c_void_p, "SL": ctypes.c_void_p,
    # plain values; enumerations of C are `i32`
    "cstr": ctypes.c_char_p, "DT": ctypes.c_int32, "b": ctypes.c_bool, "i8": ctypes.c_int8, "i32": ctypes.c_int32,
    "u32": ctypes.c_uint32, "i64": ctypes.c_int64, "u64": ctypes.c_uint64, "size": ctypes.c_size_t,
    "f32": ctypes.c_float, "f64": ctypes.c_double,
}

# -- the runtime (libascendcl.so) --------------------------------------------------------------------------------------

RUNTIME = """
aclInit                                 cstr
aclFinalize
aclrtGetDeviceCount                     p
aclrtSetDevice                          i32
aclrtResetDevice                        i32
aclrtGetDevice                          p
aclrtSynchronizeDevice
aclGetDeviceCapability                  u32 i32 p
aclrtCreateStreamWithConfig             p u32 u32
aclrtDestroyStream                      p
aclrtSynchronizeStream                  p
aclrtStreamQuery                        p p
aclrtStreamWaitEvent                    p p
aclrtStreamGetId                        p p
aclrtCreateEventExWithFlag              p u32
aclrtDestroyEvent                       p
aclrtRecordEvent                        p p
aclrtQueryEventStatus                   p p
aclrtSynchronizeEvent                   p
aclrtEventElapsedTime                   p p p
aclrtEventGetTimestamp                  p p
aclrtMallocAlign32                      p size i32
aclrtFree                               p
aclrtMallocHost                         p size
aclrtFreeHost                           p
aclrtMemcpy                             p size p size i32
aclrtMemcpyAsync                        p size p size i32 p
aclrtMemsetAsync                        p size i32 size p
aclrtGetMemInfo                         i32 p p
aclrtDeviceCanAccessPeer                p i32 i32
aclrtDeviceEnablePeerAccess             i32 u32
aclrtGetSocName
aclGetRecentErrMsg
"""

# -- parameter objects (libnnopbase.so) --------------------------------------------------------------------------------

OBJECTS = """
aclCreateTensor                         p u64 i32 p i64 i32 p u64 p
aclCreateScalar                         p i32
aclCreateIntArray                       p u64
aclCreateFloatArray                     p u64
aclCreateBoolArray                      p u64
aclCreateTensorList                     p u64
aclCreateScalarList                     p u64
aclDestroyTensor                        T
aclDestroyScalar                        S
aclDestroyIntArray                      IA
aclDestroyFloatArray                    FA
aclDestroyBoolArray                     BA
aclDestroyTensorList                    TL
aclDestroyScalarList                    SL
aclDestroyAclOpExecutor                 p
"""

RETURNS: dict[str, Any] = {
    "aclrtGetSocName": ctypes.c_char_p,
    "aclGetRecentErrMsg": ctypes.c_char_p,
    **{f"aclCreate{kind}": ctypes.c_void_p
       for kind in ("Tensor", "Scalar", "IntArray", "FloatArray", "BoolArray", "TensorList", "ScalarList")},
}

# -- operators (libopapi*.so) ------------------------------------------------------------------------------------------

OPERATORS = """
Relu, Gelu, Silu, Sigmoid, Tanh, Exp, Log, Sqrt, Rsqrt, Neg, Abs, Reciprocal, Sin, Cos, Erf, Sign, Floor, \
LogicalNot, IsFinite: T T
InplaceRelu, InplaceSqrt, InplaceExp, InplaceZero, InplaceOne: T
BitwiseNot: T T
BitwiseAndTensor, BitwiseOrTensor, BitwiseXorTensor: T T T
Add, Sub: T T S T
Adds, Subs: T S S T
InplaceAdd, InplaceSub: T T S
InplaceAdds, InplaceSubs: T S S
Mul, Div, Maximum, Minimum, PowTensorTensor, LogicalAnd, EqTensor, NeTensor, GtTensor, GeTensor, LtTensor, \
LeTensor: T T T
Muls, Divs, PowTensorScalar, EqScalar, NeScalar, GtScalar, GeScalar, LtScalar, LeScalar, ClampMin, LeakyRelu: T S T
InplaceMul, InplaceDiv: T T
InplaceMuls, InplaceDivs: T S
PowScalarTensor: S T T
DivMod: T T i32 T
Clamp, Threshold: T S S T
Matmul, Mm, BatchMatMul, Mv: T T T i8
Addmm, Baddbmm: T T T S S T i8
InplaceAddmm: T T T S S i8
Addcmul, Addcdiv: T T T S T
InplaceAddcmul, InplaceAddcdiv: T T T S
Lerps: T T S T
InplaceLerps: T T S
GeluV2: T i64 T
GeluBackward, SiluBackward, SigmoidBackward, TanhBackward: T T T
GeluBackwardV2: T T cstr T
ThresholdBackward: T T S T
LeakyReluBackward: T T S b T
Softmax, LogSoftmax: T i64 T
SoftmaxBackward, LogSoftmaxBackward: T T i64 T
ReduceSum, Mean: T IA b DT T
Max, Min: T T
Amax, Amin, All, Any: T IA b T
MaxDim, MinDim: T i64 b T T
ArgMax, ArgMin: T i64 b T
Var: T IA b b T
Std: T IA i64 b T
Norm: T S IA b T
LinalgVectorNorm: T S IA b DT T
Cumsum: T i64 DT T
LayerNorm: T IA T? T? f64 T T? T?
LayerNormBackward: T T IA T T T? T? BA T T T
RmsNorm: T T f64 T T
RmsNormGrad: T T T T T T
GroupNorm: T T T i64 i64 i64 i64 f64 T T T
BatchNorm: T T T T T b f64 f64 T T T
BatchNormBackward: T T T T T T T b f64 BA T T T
Convolution: T T T? IA IA IA b IA i64 T i8
ConvolutionBackward: T T T IA IA IA IA b IA i32 BA i8 T? T? T?
MaxPool2dWithIndices, MaxPool2dWithMask: T IA IA IA IA b T T
MaxPool2dWithIndicesBackward, MaxPool2dWithMaskBackward: T T T IA IA IA IA b T
AvgPool2d: T IA IA IA b b i64 i8 T
AvgPool2dBackward: T T IA IA IA b b i64 i8 T
AdaptiveAvgPool2d: T IA T
AdaptiveAvgPool2dBackward: T T T
Embedding: T T T
EmbeddingDenseBackward: T T u64 u64 b T
NLLLoss, NLLLoss2d: T T T i64 i64 T T
NLLLossBackward, NLLLoss2dBackward: T T T T i64 i64 T T
CrossEntropyLoss: T T T? cstr i64 f64 f64 b T T T T
CrossEntropyLossGrad: T T T T? T? T? cstr i64 f64 f64 T
MseLoss: T T i64 T
MseLossBackward: T T T i64 T
BinaryCrossEntropyWithLogits: T T T? T? i64 T
BinaryCrossEntropyWithLogitsBackward: T T T T? T? i64 T
Dropout: T f64 b i64 i64 T T
DropoutGenMask: IA f64 i64 i64 T
DropoutGenMaskV2: IA f64 i64 i64 DT T
DropoutDoMask, DropoutBackward: T T f64 T
Cat, Stack: TL i64 T
SplitTensor: T u64 i64 TL
SplitWithSize: T IA i64 TL
SWhere: T T T T
InplaceMaskedFillScalar: T T S
InplaceMaskedFillTensor: T T T
MaskedSelect: T T T
Index: T TL T
IndexPutImpl: T TL T b b
Gather, IndexSelect: T i64 T T
Scatter: T i64 T T i64 T
ScatterValue: T i64 T S i64 T
InplaceScatter: T i64 T T i64
InplaceScatterValue: T i64 T S i64
ScatterAdd: T i64 T T T
IndexAdd: T i64 T T S T
Cast: T DT T
InplaceCopy: T T
InplaceFillScalar: T S
InplaceFillTensor: T T
Permute, Expand, Repeat: T IA T
Tril, Triu: T i64 T
ConstantPadNd: T IA S T
Arange: S S S T
Randperm: i64 i64 i64 T
InplaceNormal: T f32 f32 i64 i64
InplaceUniform: T f64 f64 u64 u64
InplaceBernoulli: T S i64 i64
InplaceRandom: T i64 i64 i64 i64
Topk: T i64 i64 b b T T
Sort: T b i64 b T T
OneHot: T i32 T T i64 T
ApplyAdamWV2: T T T T? T T f32 f32 f32 f32 f32 b b
ForeachAddScalarV2, ForeachMulScalarV2, ForeachNorm: TL S TL
ForeachAddListV2, ForeachSubListV2, ForeachLerpScalar: TL TL S TL
ForeachMulList, ForeachDivList: TL TL TL
ForeachSqrt, ForeachCopy: TL TL
ForeachAddcmulScalarV2, ForeachAddcdivScalarV2: TL TL TL S TL
ForeachZeroInplace: TL
FlashAttentionScore: T T T T? T? T? T? IA? f64 f64 i64 i64 i64 cstr i64 i64 T T T T
"""

# -- records of device work (libmspti.so) ------------------------------------------------------------------------------

TOOLS = """
msptiSubscribe                          p p p
msptiUnsubscribe                        p
msptiActivityRegisterCallbacks          p p
msptiActivityEnable                     i32
msptiActivityDisable                    i32
msptiActivityFlushAll                   u32
msptiActivityPushExternalCorrelationId  i32 u64
msptiActivityPopExternalCorrelationId   i32 p
"""


class Prototype(NamedTuple):
    """A C function: its name, the words for its arguments, and which may be absent."""

    name: str
    arguments: tuple[str, ...]
    optional: tuple[bool, ...]


def _prototype(name: str, words: list[str]) -> Prototype:
    return Prototype(name, tuple([word.rstrip("?") for word in words]), tuple([word.endswith("?") for word in words]))


@functools.cache
def functions(table: str) -> dict[str, Prototype]:
    """The functions of one of the tables of plain functions."""
    rows = [line.split() for line in table.strip().splitlines()]
    return {row[0]: _prototype(row[0], row[1:]) for row in rows}


@functools.cache
def operators() -> dict[str, Prototype]:
    """The operators, by their names without `aclnn`."""
    found = {}
    for line in OPERATORS.strip().splitlines():
        names, words = line.split(":")
        for name in names.split(","):
            found[name.strip()] = _prototype(name.strip(), words.split())
    return found

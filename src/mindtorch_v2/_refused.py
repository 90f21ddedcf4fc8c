"""PyTorch's names that this runtime refuses, by reason. The functions, classes and methods that raise are made here.

`torch.sparse_csr_tensor` exists so that a program that has a sparse branch imports, and says why when it takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._absent import refusing, refusing_class

SPARSE = ("{} is not supported: of sparse tensors this runtime has coordinates, compressed rows and columns, and their "
          "basic functions")
QUANTIZED = "{} needs quantized tensors, which this runtime does not have"
VENDOR = ("{} calls a vendor's library (cuDNN, MIOpen, oneDNN, FBGEMM), which programs cannot call here; call the op "
          "itself")
SCRIPT = "{} belongs to TorchScript, which this runtime does not have; programs run as they are written"
SYMBOLIC = "{} belongs to PyTorch's compiler, which this runtime does not have: shapes are Python integers"
INTERNAL = "{} belongs to PyTorch's own machinery, which this runtime does not share"
REMOVED = "This function was deprecated since version 1.9 and is now removed. {} has a successor in torch.linalg."
NO_CUDA = "Torch not compiled with CUDA enabled"
NO_XPU = "Torch not compiled with XPU enabled"
DEVICE = "{} needs a device that this runtime does not support; tensors live on 'cpu', 'npu' or 'meta'"

FUNCTIONS: dict[str, str] = {
    SPARSE: """ccol_indices_copy col_indices_copy crow_indices_copy hsmm hspmm indices_copy resize_as_sparse_
        native_norm row_indices_copy saddmm smm sparse_bsc_tensor sparse_bsr_tensor
        sspaddmm values_copy""",
    QUANTIZED: """choose_qparams_optimized dequantize empty_quantized fused_moving_avg_obs_fake_quant int_repr
        q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point quantize_per_channel
        quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm quantized_gru quantized_gru_cell
        quantized_lstm quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d
        quantized_rnn_relu_cell quantized_rnn_tanh_cell""",
    VENDOR: """batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
        batch_norm_gather_stats_with_counts batch_norm_stats cudnn_affine_grid_generator cudnn_batch_norm
        cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose
        cudnn_grid_sampler fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation
        fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight
        fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix miopen_batch_norm miopen_convolution
        miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss
        miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d
        mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d""",
    SCRIPT: """fork import_ir_module import_ir_module_from_buffer merge_type_from_type_comment parse_ir parse_schema
        parse_type_comment unify_type_list wait""",
    SYMBOLIC: "sym_constrain_range sym_constrain_range_for_size sym_fresh_size while_loop",
    INTERNAL: """get_file_path prepare_multiprocessing_environment profiler_allow_cudagraph_cupti_lazy_reinit_cuda12
        thread_safe_generator""",
    REMOVED: "eig lstsq matrix_rank solve symeig",
}
CLASSES: dict[str, str] = {
    SCRIPT: """AliasDb AnyType Argument ArgumentSpec AwaitType Block BoolType CallStack Capsule ClassType Code
        CompilationUnit CompleteArgumentSpec ComplexType ConcreteModuleType ConcreteModuleTypeBuilder DeviceObjType
        DictType EnumType ErrorReport ExecutionPlan FileCheck FloatType FunctionSchema FutureType Gradient Graph
        GraphExecutorState IODescriptor InferredType IntType InterfaceType ListType LiteScriptModule Node NoneType
        NumberType OperatorInfo OptionalType PyObjectType RRefType ScriptClass ScriptClassFunction ScriptDict
        ScriptDictIterator ScriptDictKeyIterator ScriptFunction ScriptList ScriptListIterator ScriptMethod ScriptModule
        ScriptModuleSerializer ScriptObject ScriptObjectProperty StaticModule StreamObjType StringType SymBoolType
        SymIntType TensorType ThroughputBenchmark TracingState TupleType Type UnionType Use Value""",
    SYMBOLIC: "SymBool SymFloat SymInt",
    INTERNAL: """AggregationType BenchmarkConfig BenchmarkExecutionStats BufferDict DeepCopyMemoTable
        DeserializationStorageContext ExcludeDispatchKeyGuard Future LockingLogger LoggerBase
        ModuleDict NoopLogger ParameterDict SerializationStorageContext""",
    QUANTIZED: "QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage",
}
METHODS: dict[str, str] = {
    SPARSE: """resize_as_sparse_ smm sparse_resize_
        sparse_resize_and_clear_ sspaddmm to_sparse_bsc to_sparse_bsr""",
    QUANTIZED: """dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale
        q_zero_point qscheme""",
    VENDOR: "to_mkldnn",
    DEVICE: "ipu mtia",
    "{} needs first-class dimensions, which this runtime does not have": "index",
    NO_CUDA: "cuda",
    NO_XPU: "xpu",
    "{} needs nested tensors, which this runtime does not have": "to_padded_tensor",
    "{} needs complex32, which this runtime does not have": "chalf",
    "reinforce() was removed. Use torch.distributions instead.": "reinforce",
    REMOVED: "eig lstsq solve symeig",
}
# Errors other than NotImplementedError, where PyTorch itself raises them.
ERRORS: dict[str, type[BaseException]] = {REMOVED: RuntimeError, NO_CUDA: AssertionError, NO_XPU: AssertionError}


def _unfold(table: dict[str, str]) -> dict[str, str]:
    return {name: reason for reason, names in table.items() for name in names.split()}


_FUNCTIONS, _CLASSES = _unfold(FUNCTIONS), _unfold(CLASSES)
TORCH_NAMES = frozenset([*_FUNCTIONS, *_CLASSES])


def refused(name: str) -> Any:
    """The function or class that `torch.<name>` is."""
    kind, table = (refusing, _FUNCTIONS) if name in _FUNCTIONS else (refusing_class, _CLASSES)
    reason = table[name]
    made: Any = kind(name, ERRORS.get(reason, NotImplementedError), reason.format(f"torch.{name}"))
    made.__module__ = "torch"
    return made


def refused_methods() -> dict[str, Callable[..., Any]]:
    """The methods that `Tensor` has only to refuse."""
    return {name: refusing(name, ERRORS.get(reason, NotImplementedError), reason.format(f"Tensor.{name}"))
            for name, reason in _unfold(METHODS).items()}

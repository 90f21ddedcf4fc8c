"""`torch.onnx`: models are not exported. Programs ask whether an export is under way; it never is."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from .._absent import refusing, refusing_class
from .._outside import attributes

__all__ = ["ExportTypes", "ONNXProgram", "OnnxExporterError", "OperatorExportTypes", "TensorProtoDataType",
           "TrainingMode", "export", "is_in_onnx_export", "register_custom_op_symbolic",
           "select_model_mode_for_export", "unregister_custom_op_symbolic"]

_REASON = "torch.onnx.{0}: exporting needs a traced graph of the model, which this runtime does not make"
ONNXProgram = refusing_class("ONNXProgram", NotImplementedError, _REASON)
export = refusing("export", NotImplementedError, _REASON)
select_model_mode_for_export = refusing("select_model_mode_for_export", NotImplementedError, _REASON)
ExportTypes = enum.Enum("ExportTypes", "PROTOBUF_FILE ZIP_ARCHIVE COMPRESSED_ZIP_ARCHIVE DIRECTORY")
OperatorExportTypes = enum.IntEnum("OperatorExportTypes", "ONNX ONNX_ATEN ONNX_ATEN_FALLBACK ONNX_FALLTHROUGH", start=0)
TrainingMode = enum.IntEnum("TrainingMode", "EVAL PRESERVE TRAINING", start=0)
TensorProtoDataType = enum.IntEnum(
    "TensorProtoDataType", "UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 "
    "UINT64 COMPLEX64 COMPLEX128 BFLOAT16 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ", start=0)
# What libraries have said about the export of their ops: kept, for whoever asks, and never used.
_SYMBOLICS: dict[tuple[str, int], Callable[..., Any]] = {}


class OnnxExporterError(RuntimeError):
    """Raised by exports, so never here; programs catch it."""


def is_in_onnx_export() -> bool:
    """False."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Keep how an op would be exported. Libraries do so when they are imported; only an export itself is refused."""
    if "::" not in symbolic_name:
        raise ValueError(f"Failed to register operator {symbolic_name}. The symbolic name must match the format "
                         "domain::name")
    _SYMBOLICS[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget how an op would be exported."""
    _SYMBOLICS.pop((symbolic_name, opset_version), None)


__getattr__ = attributes("onnx", globals())

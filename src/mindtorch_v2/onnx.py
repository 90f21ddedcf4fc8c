"""`torch.onnx`: models are not exported. Programs ask whether an export is under way; it never is."""

from __future__ import annotations

from ._absent import refusing, refusing_class

__all__ = ["ONNXProgram", "OnnxExporterError", "export", "is_in_onnx_export", "register_custom_op_symbolic",
           "select_model_mode_for_export", "unregister_custom_op_symbolic"]

_REASON = "torch.onnx.{0}: exporting needs a traced graph of the model, which this runtime does not make"
ONNXProgram = refusing_class("ONNXProgram", NotImplementedError, _REASON.format("ONNXProgram"))
export = refusing("export", NotImplementedError, _REASON.format("export"))
register_custom_op_symbolic = refusing("register_custom_op_symbolic", NotImplementedError,
                                       _REASON.format("register_custom_op_symbolic"))
unregister_custom_op_symbolic = refusing("unregister_custom_op_symbolic", NotImplementedError,
                                         _REASON.format("unregister_custom_op_symbolic"))
select_model_mode_for_export = refusing("select_model_mode_for_export", NotImplementedError,
                                        _REASON.format("select_model_mode_for_export"))


class OnnxExporterError(RuntimeError):
    """Raised by exports, so never here; programs catch it."""


def is_in_onnx_export() -> bool:
    """False."""
    return False

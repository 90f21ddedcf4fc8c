"""`torch.nested`: tensors of tensors of different sizes do not exist here; making one says so."""

from __future__ import annotations

from ._absent import refusing

__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged",
           "to_padded_tensor"]

_REASON = ("torch.nested.{0}: this runtime has no nested tensors, all tensors are strided; pad the tensors to one size "
           "with torch.nn.utils.rnn.pad_sequence")
as_nested_tensor = refusing("as_nested_tensor", NotImplementedError, _REASON.format("as_nested_tensor"))
masked_select = refusing("masked_select", NotImplementedError, _REASON.format("masked_select"))
narrow = refusing("narrow", NotImplementedError, _REASON.format("narrow"))
nested_tensor = refusing("nested_tensor", NotImplementedError, _REASON.format("nested_tensor"))
nested_tensor_from_jagged = refusing("nested_tensor_from_jagged", NotImplementedError,
                                     _REASON.format("nested_tensor_from_jagged"))
to_padded_tensor = refusing("to_padded_tensor", NotImplementedError, _REASON.format("to_padded_tensor"))

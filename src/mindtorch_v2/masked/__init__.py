"""`torch.masked`: tensors with a mask, and reductions and normalizations of the elements that a mask selects.

>>> import mindtorch_v2 as torch
>>> torch.masked.sum(torch.tensor([1.0, 2.0, 3.0]), mask=torch.tensor([True, False, True]))
tensor(4.)
"""

# The names with an underscore are those that PyTorch's own tests of `torch.masked` use.
from . import _ops, maskedtensor  # noqa: F401
from ._ops import (  # noqa: F401
    _canonical_dim,
    _combine_input_and_mask,
    _input_mask,
    _output_mask,
    _reduction_identity,
    _where,
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)
from .maskedtensor.core import MaskedTensor, is_masked_tensor
from .maskedtensor.creation import as_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum",
           "is_masked_tensor", "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median", "norm",
           "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]

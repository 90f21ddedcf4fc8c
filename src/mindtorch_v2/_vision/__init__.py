"""The ops of torchvision's compiled library, which is linked with PyTorch's C++ side and cannot be loaded here.

`torch.ops.load_library` of that file defines them. torchvision's own Python code adds their backward and meta kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .._absent import refusing
from .._construct import from_numpy
from .._library.libraries import Library
from .._tensor import Tensor
from . import boxes, regions

_PLACE = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_BACK = ("Tensor grad, Tensor rois{}, float spatial_scale, SymInt pooled_height, SymInt pooled_width{}, "
         "SymInt batch_size, SymInt channels, SymInt height, SymInt width")
_STEPS = ("int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, int groups, "
          "int offset_groups, bool use_mask")
_REASON = "torchvision::{0}: this runtime has no kernel for it; of torchvision's ops it has nms, roi_align and roi_pool"


def _on_arrays(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel on arrays as one on tensors."""

    def run(*args: Any) -> Any:
        made = kernel(*(arg.detach().numpy() if isinstance(arg, Tensor) else arg for arg in args))
        if isinstance(made, tuple):
            return tuple(map(from_numpy, made))
        return from_numpy(made) if isinstance(made, np.ndarray) else made

    return run


# Schema -> kernel on arrays; None for ops that are known and refused when they are called.
OPS: dict[str, Callable[..., Any] | None] = {
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": boxes.nms,
    f"roi_align({_PLACE}, int sampling_ratio, bool aligned) -> Tensor": regions.roi_align,
    f"_roi_align_backward({_BACK.format('', '')}, int sampling_ratio, bool aligned) -> Tensor":
        regions.roi_align_backward,
    f"roi_pool({_PLACE}) -> (Tensor, Tensor)": regions.roi_pool,
    f"_roi_pool_backward({_BACK.format(', Tensor argmax', '')}) -> Tensor": regions.roi_pool_backward,
    f"ps_roi_align({_PLACE}, int sampling_ratio) -> (Tensor, Tensor)": None,
    f"_ps_roi_align_backward({_BACK.format(', Tensor channel_mapping', ', int sampling_ratio')}) -> Tensor": None,
    f"ps_roi_pool({_PLACE}) -> (Tensor, Tensor)": None,
    f"_ps_roi_pool_backward({_BACK.format(', Tensor channel_mapping', '')}) -> Tensor": None,
    f"deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_STEPS}) -> Tensor": None,
    "_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
    f"{_STEPS}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)": None,
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": None,
    f"qroi_align({_PLACE}, int sampling_ratio, bool aligned) -> Tensor": None,
    "_cuda_version() -> int": lambda: -1,
}


@cache
def define() -> Library:
    """Define the ops, once; they live as long as what this returns."""
    library = Library("torchvision", "DEF")
    for schema, kernel in OPS.items():
        name = schema.partition("(")[0]
        library.define(schema)
        made = refusing(name, NotImplementedError, _REASON) if kernel is None else _on_arrays(kernel)
        library.impl(name, made, "CompositeExplicitAutograd" if name == "_cuda_version" else "CPU")
    return library

"""`torch.utils.cpp_extension`: extensions in C++ need PyTorch's own library, which is not here."""

from __future__ import annotations

import shutil

from .._absent import refusing, refusing_class

__all__ = ["BuildExtension", "CUDAExtension", "CppExtension", "check_compiler_ok_for_platform", "include_paths",
           "library_paths", "load", "load_inline"]

_REASON = ("torch.utils.cpp_extension.{0}: extensions are compiled against PyTorch's C++ library, which this runtime "
           "does not have; write the operation with torch.autograd.Function")
CUDA_HOME = None
ROCM_HOME = None
BuildExtension = refusing_class("BuildExtension", NotImplementedError, _REASON)
CppExtension = refusing("CppExtension", NotImplementedError, _REASON)
CUDAExtension = refusing("CUDAExtension", NotImplementedError, _REASON)
include_paths = refusing("include_paths", NotImplementedError, _REASON)
library_paths = refusing("library_paths", NotImplementedError, _REASON)
load = refusing("load", NotImplementedError, _REASON)
load_inline = refusing("load_inline", NotImplementedError, _REASON)


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether there is such a compiler.

    >>> check_compiler_ok_for_platform("no-such-compiler")
    False
    """
    return shutil.which(compiler) is not None

"""`torch.__config__`: how this runtime was built, in words."""

from __future__ import annotations

import sysconfig

import numpy

from ._backends.cpu import providers
from ._dispatch.native import NATIVE
from ._settings import get_num_interop_threads, get_num_threads


def show() -> str:
    """What the runtime consists of."""
    recorder = "C extension" if NATIVE is not None else "Python"
    return (f"mindtorch_v2 on NumPy {numpy.__version__}:\n  - CPU only, no CUDA\n  - kernels: {providers.describe()}\n"
            f"  - recorder: {recorder}\n")


def _cxx_flags() -> str:
    """How the C extensions were compiled."""
    return str(sysconfig.get_config_var("CFLAGS") or "")


def parallel_info() -> str:
    """Numbers of threads."""
    return (f"mindtorch_v2 parallel info:\n\tat::get_num_threads() : {get_num_threads()}\n"
            f"\tat::get_num_interop_threads() : {get_num_interop_threads()}\n")

"""Kernels from oneDNN if that library is installed (`pip install mindtorch-v2[fast]`); otherwise NumPy computes all.

`library` finds and opens it, `memory` describes arrays to it, `plan` prepares a primitive once and runs it on arrays.
One file per family of kernels has its requirements. Their functions return None if the library is not used, so a kernel
reads `fast(...)` and computes by itself if that is None.
"""

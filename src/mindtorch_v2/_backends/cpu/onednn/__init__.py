"""Kernels from oneDNN where that library is installed (`pip install mindtorch-v2[fast]`); elsewhere NumPy does it all.

`library` finds and opens it, `memory` describes arrays to it, `plan` prepares a primitive once and runs it on arrays,
and one file each says what a family of kernels asks for. Their functions return None for what the library is not used
for, so that a kernel reads `fast(...)`, and if that is None, its own computation.
"""

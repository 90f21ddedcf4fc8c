"""`import functorch`, the old name of `torch.func`, for processes that find this file on their path."""

import importlib
import sys
from pathlib import Path

try:
    import mindtorch_v2  # noqa: F401
except ModuleNotFoundError:
    # A child of a program that had the package on its path by its own doing; this file lies in the package.
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from mindtorch_v2 import torch_alias

torch_alias.answer_for_files()
sys.modules[__name__] = importlib.import_module("mindtorch_v2.func")

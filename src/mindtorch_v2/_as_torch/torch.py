"""`import torch` as mindtorch_v2, for processes that find this file on their path.

It is a module and not a package, so that beside an installed PyTorch, whose `torch` is a directory, it loses.
"""

import sys
from pathlib import Path

try:
    import mindtorch_v2
except ModuleNotFoundError:
    # A child of a program that had the package on its path by its own doing; this file lies in the package.
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    import mindtorch_v2

from mindtorch_v2 import torch_alias

torch_alias.answer_for_files()
sys.modules[__name__] = mindtorch_v2

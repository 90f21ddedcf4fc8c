"""`torch.special`: special functions.

>>> import mindtorch_v2 as torch
>>> torch.special.expit(torch.tensor(0.0))
tensor(0.5000)
"""

from __future__ import annotations

from typing import Any

from ._dispatch.namespace import aten
from ._dispatch.registry import OVERLOADS
from ._op_module import op_function, op_functions

# Functions that torch.special shares with the main namespace, under the op's own name.
_SHARED = {"log_softmax": "log_softmax", "logsumexp": "logsumexp", "multigammaln": "mvlgamma", "softmax": "softmax"}

_found: dict[str, Any] = op_functions("special", "special_", OVERLOADS)
_found.update({name: op_function("special", name, op) for name, op in _SHARED.items()
               if name not in _found and (op in OVERLOADS or hasattr(aten, op))})
globals().update(_found)
__all__ = sorted(_found)

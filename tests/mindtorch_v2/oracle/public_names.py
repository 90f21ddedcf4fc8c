"""PyTorch's public names, for the coverage page: `python tests/mindtorch_v2/oracle/public_names.py` writes the list.

The list is checked in as docs/pytorch_names.json, so that the page can be made and checked where PyTorch is missing.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

NAMESPACES = ("torch.Tensor", "torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.optim.lr_scheduler",
              "torch.linalg", "torch.fft", "torch.special")
LIST = Path(__file__).parents[3] / "docs" / "pytorch_names.json"

# Where PyTorch keeps the machinery of overriding and scripting, which some of its modules re-export by accident.
MACHINERY = ("torch.overrides", "torch._jit_internal", "torch._tensor", "torch.types", "torch._C")
# Classes that a namespace only uses.
USED = {"Tensor", "Optimizer"}


def is_torchs_own(namespace: str, name: str, value: Any) -> bool:
    """Whether PyTorch itself defines this, rather than the standard library or another of its modules."""
    if isinstance(value, ModuleType):
        return False
    if namespace == "torch.Tensor":
        return True
    described = value if callable(value) else type(value)
    home = getattr(described, "__module__", None) or "torch"
    if not (home == "torch" or home.startswith("torch.")):
        return False
    if namespace == "torch":
        return True
    if name in USED:
        return home.startswith(namespace)
    return home not in MACHINERY or name == "LinAlgError"


def public_names() -> dict[str, list[str]]:
    """The names by namespace."""
    found = {}
    for namespace in NAMESPACES:
        if namespace == "torch.Tensor":
            owner = importlib.import_module("torch").Tensor
        else:
            owner = importlib.import_module(namespace)
        names = []
        for name in dir(owner):
            if not name.startswith("_") and is_torchs_own(namespace, name, getattr(owner, name)):
                names.append(name)
        chosen = getattr(owner, "__all__", None)
        if chosen is not None and namespace not in ("torch", "torch.fft"):
            # (torch's and torch.fft's own lists leave out documented functions.)
            names = [name for name in names if name in chosen]
        found[namespace] = names
    return found


if __name__ == "__main__":
    LIST.write_text(json.dumps(public_names(), indent=1) + "\n", encoding="utf-8")
    print(f"wrote {LIST}")

"""Types of the arguments of PyTorch's compiled functions. Functions here are Python's and say theirs themselves."""

from __future__ import annotations

from typing import Any

annotated_args: dict[Any, list[dict[str, Any]]] = {}

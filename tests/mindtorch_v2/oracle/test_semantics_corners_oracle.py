"""Hundreds of one-line calls, good and bad, from `corner_cases.txt`: values, types, strides and errors as PyTorch's.

A line is an expression in `torch`, `nn`, `F` and `x`, a batch of images with their channels last. Errors must be of the
same class (or a subclass of it) and share most of their words, and never be NumPy's.
"""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from harness import strides, told_by_device

import mindtorch_v2 as ours

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

FAMILIES: dict[str, list[str]] = {}
for _line in (Path(__file__).parent / "corner_cases.txt").read_text().splitlines():
    if _line.startswith("# "):
        FAMILIES[_line[2:]] = _found = []
    elif _line:
        _found.append(_line)
CASES = [(family, case) for family, cases in FAMILIES.items() for case in cases]
# Words that only NumPy's errors have.
NUMPY = re.compile(r"\b(numpy|ufunc|axis|ndarray|operands could not be broadcast|array of size|object arrays?)\b")


def plain(torch: Any, value: Any) -> Any:
    """A result in terms that compare."""
    if isinstance(value, torch.Tensor):
        if value.is_meta:
            return tuple(value.shape), str(value.dtype)
        contents = value.detach()
        if contents.dtype.is_complex:
            contents = torch.view_as_real(contents.resolve_conj())
        return (tuple(value.shape), str(value.dtype), strides(value), value.requires_grad,
                contents.double().flatten().tolist())
    if isinstance(value, (list, tuple)):
        return [plain(torch, one) for one in value]
    if isinstance(value, dict):
        return {key: plain(torch, one) for key, one in value.items()}
    return value if isinstance(value, (bool, int, float, type(None))) else re.sub("mindtorch_v2", "torch", str(value))


def same(mine: Any, other: Any) -> bool:
    """Whether two results are equal, up to rounding."""
    if isinstance(other, float) and isinstance(mine, float):
        return math.isclose(mine, other, rel_tol=1e-4, abs_tol=1e-5) or (mine != mine and other != other)
    if isinstance(other, (list, tuple)) and type(mine) is type(other):
        return len(mine) == len(other) and all(same(a, b) for a, b in zip(mine, other, strict=True))
    return bool(mine == other)


def outcome(torch: Any, case: str) -> Any:
    """What a case gives, or the error."""
    torch.manual_seed(0)
    x = torch.randn(2, 4, 6, 6).contiguous(memory_format=torch.channels_last)
    space = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "x": x}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(torch, eval(case, space))
    except Exception as error:
        return error
    finally:  # a case that fails half-way leaves these as they were set
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(False)


def words(error: Exception) -> set[str]:
    return set(re.findall(r"[a-z_]{4,}", str(error).split("\n")[0].lower()))


def difference(case: str) -> str | None:
    """How a case differs, if it does."""
    mine, other = outcome(ours, case), outcome(theirs, case)
    if not isinstance(other, Exception):
        return None if same(mine, other) else f"{mine!r}, PyTorch: {other!r}"
    if not isinstance(mine, Exception):
        return f"accepted, PyTorch: {other!r}"
    if told_by_device(mine):
        return None
    name = type(other).__name__
    if name not in [cls.__name__ for cls in type(mine).__mro__]:
        return f"{mine!r}, PyTorch: {other!r}"
    if NUMPY.search(str(mine)):
        return f"NumPy's words: {mine}"
    expected = words(other)
    common = len(expected & words(mine)) / max(len(expected), 1)
    return None if common >= 0.4 else f"other words: {mine} | PyTorch: {other}"


@pytest.mark.parametrize(("family", "case"), CASES, ids=[case[:60] for _, case in CASES])
def test_corner(family: str, case: str) -> None:
    found = difference(case)
    assert found is None, found


def test_there_are_many() -> None:
    assert len(CASES) > 400

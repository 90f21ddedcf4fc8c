"""Short programs from `corner_programs.txt`, run on both: the last line's value is PyTorch's.

Programs are separated by empty lines. They see `torch`, `nn`, `F`, `optim`, `P` (a parameter) and modules of Python.
`err(f)` is the error that `f` raises, or ("accepted", result); `warns(f)` the warnings that it gives.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import copy
import functools
import gc
import io
import itertools
import math
import operator
import os
import pickle
import random
import re
import tempfile
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import strides
from test_semantics_corners_oracle import same, words

import mindtorch_v2 as ours

theirs = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

MODULES = {module.__name__: module for module in (
    collections, contextlib, copy, functools, gc, io, itertools, math, operator, os, pickle, random, tempfile,
    threading, types, warnings, weakref)}
PROGRAMS: list[tuple[str, str]] = []
_family = ""
for _block in re.split(r"\n\s*\n", (Path(__file__).parent / "corner_programs.txt").read_text()):
    if _block.startswith("# "):
        _family = _block[2:].strip()
    elif _block.strip():
        PROGRAMS.append((_family, _block.strip("\n")))


def plain(torch: Any, value: Any, depth: int = 0) -> Any:
    """A result in terms that compare; errors stay errors."""
    if depth > 6 or isinstance(value, Exception):
        return value
    if isinstance(value, torch.Tensor):
        if value.is_meta:
            return "meta", tuple(value.shape), str(value.dtype), value.stride()
        if value.layout != torch.strided:
            return str(value.layout), tuple(value.shape), plain(torch, value.detach().to_dense(), depth + 1)
        contents = value.detach()
        if type(contents) not in (torch.Tensor, torch.nn.Parameter):
            contents = contents.as_subclass(torch.Tensor)
        if torch is theirs:
            contents = contents.resolve_conj().resolve_neg()
        if contents.dtype.is_complex:
            contents = torch.view_as_real(contents.resolve_conj())
        node = value.grad_fn
        return (type(value).__name__, tuple(value.shape), str(value.dtype), strides(value),
                value.requires_grad, None if node is None else node.name(), value._is_view(),
                contents.double().flatten().tolist())
    if isinstance(value, (list, tuple)):
        kind = "sequence" if type(value) in (list, tuple, torch.Size) else type(value).__name__
        return [kind, *[plain(torch, one, depth + 1) for one in value]]
    if isinstance(value, dict):
        return {str(key): plain(torch, one, depth + 1) for key, one in value.items()}
    if isinstance(value, (bool, int, float, complex, type(None))):
        return value
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    text = value if isinstance(value, str) else repr(value)
    return re.sub(r"0x[0-9a-f]+", "0x", text.replace("mindtorch_v2", "torch"))


def outcome(torch: Any, program: str) -> Any:
    """What the last line gives, or the error."""

    def err(run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return "accepted", run(*args, **kwargs)
        except Exception as error:
            return error

    def warns(run: Callable[..., Any]) -> list[Any]:
        before = torch.is_warn_always_enabled()
        torch.set_warn_always(True)
        try:
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                run()
        finally:
            torch.set_warn_always(before)
        return sorted({(one.category.__name__, str(one.message)[:40]) for one in found})

    tree = ast.parse(program)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr), "a program ends with an expression"
    space = {**MODULES, "torch": torch, "nn": torch.nn, "F": torch.nn.functional, "optim": torch.optim,
             "P": torch.nn.Parameter, "Tensor": torch.Tensor, "np": np, "inf": math.inf, "nan": math.nan, "err": err,
             "warns": warns, "__name__": "program"}
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(tree, "<program>", "exec"), space)
            return plain(torch, eval(compile(ast.Expression(last.value), "<program>", "eval"), space))
    except Exception as error:
        return error


def difference(mine: Any, other: Any) -> str | None:
    """How results differ, if they do: errors by class and by most of their words."""
    if isinstance(other, Exception):
        if not isinstance(mine, Exception):
            return f"accepted ({mine!r}), PyTorch: {other!r}"
        if type(other).__name__.lstrip("_") not in [cls.__name__.lstrip("_") for cls in type(mine).__mro__]:
            return f"{mine!r}, PyTorch: {other!r}"
        expected = words(other)
        return None if len(expected & words(mine)) >= 0.4 * len(expected) else f"{mine!r}, PyTorch: {other!r}"
    if isinstance(mine, list) and isinstance(other, list) and len(mine) == len(other):
        return next((found for found in map(difference, mine, other) if found is not None), None)
    if isinstance(mine, dict) and isinstance(other, dict) and mine.keys() == other.keys():
        return next((found for key in mine if (found := difference(mine[key], other[key])) is not None), None)
    if isinstance(mine, complex) and isinstance(other, complex):
        return None if abs(mine - other) <= 1e-4 * abs(other) + 1e-5 else f"{mine}, PyTorch: {other}"
    return None if same(mine, other) else f"{mine!r}, PyTorch: {other!r}"


@pytest.mark.parametrize(("family", "program"), PROGRAMS,
                         ids=[f"{number}-{program[:40]}" for number, (_, program) in enumerate(PROGRAMS)])
def test_program(family: str, program: str) -> None:
    found = difference(outcome(ours, program), outcome(theirs, program))
    assert found is None, found


def test_there_are_many() -> None:
    assert len(PROGRAMS) > 150

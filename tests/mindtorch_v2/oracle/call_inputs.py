"""The inputs of the call forms, made by name on either module."""

from __future__ import annotations

import copy
from types import CodeType
from typing import Any

import numpy as np

# Floating inputs: shape and, where it matters, what the numbers are like.
FLOATS: dict[str, tuple[tuple[int, ...], str]] = {
    "x": ((3, 4), ""), "y": ((3, 4), ""), "p": ((3, 4), "positive"), "u": ((3, 4), "unit"), "p4": ((3, 4), "large"),
    "v4": ((4,), ""), "v2": ((2,), ""), "v2a": ((2,), "unit"), "p8": ((8,), "positive"), "s": ((), ""),
    "s1": ((1,), ""), "m": ((4, 4), ""), "x3": ((4, 3), ""), "q": ((2, 3, 4), ""), "qt": ((2, 4, 3), ""),
    "qs": ((2, 4, 4), ""), "q2": ((3, 2, 2), ""), "q4": ((2, 4, 4, 4), ""), "q5": ((2, 4, 4, 4, 4), ""),
    "w3": ((2, 4, 4), ""), "w4": ((2, 2, 3, 4), ""), "w3q": ((3, 2, 4), ""), "t1": ((2, 4, 6), ""),
    "t100": ((100,), ""), "k1": ((2, 4, 3), ""), "k1t": ((4, 2, 3), ""), "k2": ((2, 4, 3, 3), ""),
    "k2t": ((4, 2, 3, 3), ""), "kg": ((4, 1, 3, 3), ""), "k3": ((2, 4, 2, 2, 2), ""), "k3t": ((4, 2, 2, 2, 2), ""),
    "fo": ((2, 16, 9), ""), "gr": ((2, 3, 3, 2), ""), "th": ((2, 2, 3), ""), "lp": ((5, 2, 6), ""),
    "ipw": ((12, 4), ""), "ipb": ((12,), ""), "opw": ((4, 4), ""), "ti": ((2, 2, 4), ""), "ts": ((4, 4), ""),
    "d": ((3, 4), "double"),
}
RANGES = {"": (-2.0, 2.0), "double": (-2.0, 2.0), "positive": (0.5, 2.0), "unit": (0.1, 0.9), "large": (3.0, 5.0)}
# Inputs that never require grad.
PLAIN: dict[str, Any] = {
    "i": [[1, 2, 3, 4], [0, 5, 6, 7], [2, 2, 1, 0]], "i1": [[1, 2, 3, 4], [1, 5, 6, 7], [2, 2, 1, 1]],
    "i4": [0, 1, 2, 3], "i8": [0, 1, 2, 1, 4, 2, 2, 0], "j": [0, 2], "ji": [[0, 1], [1, 0], [2, 2]], "ix": [[0], [1]],
    "s_int": 1, "b": [[True, False, True, True]] * 3, "v4s": [-1.0, 0.0, 0.5, 1.0], "t3": [0, 1, 3],
    "t1s": [1, -1, 1], "il": [[0, 1, -1, 0], [2, -1, 0, 0], [1, 0, 2, -1]], "t433": [[[0] * 4] * 4] * 2,
    "ct": [[1, 2], [3, 1]], "cl": [5, 5], "tl": [2, 2], "rm": [0.0] * 4, "rv": [1.0] * 4,
    "sg": [[1.0, -1.0, 1.0, -1.0]] * 3, "am": [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]],
    "o": [[0.0] * 4] * 3, "o8": [[0.0] * 4] * 6, "o4": [[0.0] * 4] * 4, "o1": [0.0, 0.0],
    "c": [[complex(i - 1, j + 0.5) for j in range(4)] for i in range(3)],
}


def numbers(name: str) -> np.ndarray:
    """The contents of a floating input, the same at every call."""
    shape, kind = FLOATS[name]
    return np.random.default_rng([*map(ord, name), *shape]).uniform(*RANGES[kind], shape)


def names_in(code: CodeType) -> set[str]:
    """The names that compiled source reads, in nested functions as well."""
    inner = (names_in(const) for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*inner)


def with_gradients(torch: Any, count: int) -> list[Any]:
    """Some parameters that have a gradient."""
    made = [torch.nn.Parameter(torch.ones(3, 4) * (k + 1)) for k in range(count)]
    for parameter in made:
        parameter.grad = torch.full((3, 4), 0.5)
    return made


def namespace(torch: Any, wanted: set[str], grad: bool) -> dict[str, Any]:
    """The modules and those inputs that are wanted, as globals for a form."""
    space: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn, "np": np, "copy": copy}
    for name in wanted & FLOATS.keys():
        kind = torch.float64 if FLOATS[name][1] == "double" else torch.float32
        space[name] = torch.tensor(numbers(name).tolist(), dtype=kind, requires_grad=grad)
    for name in wanted & PLAIN.keys():
        space[name] = torch.tensor(PLAIN[name])
    if "spd" in wanted:
        square = numbers("m")
        space["spd"] = torch.tensor((square @ square.T + 4 * np.eye(4)).tolist(), requires_grad=grad)
    if "n34" in wanted:
        space["n34"] = numbers("x").astype(np.float32)
    if "gp" in wanted:
        space["gp"] = lambda count: with_gradients(torch, count)
    if "gx" in wanted:
        space["gx"] = torch.ones(3, 4, requires_grad=True)
    return space

"""Runs the same layer on this runtime and on PyTorch and compares everything there is to see of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import assert_same, floating, make, ours, theirs, weights

Build = Callable[[Any], Any]


class Fixed:
    """Contents of an input that must not require grad."""

    def __init__(self, given: Any) -> None:
        self.given = given


def classes(*shape: int, high: int) -> Any:
    """Class numbers below `high`."""
    return np.random.default_rng(3).integers(0, high, shape), "int64"


def signs(*shape: int) -> Any:
    """-1 and 1."""
    return np.random.default_rng(4).integers(0, 2, shape) * 2.0 - 1.0, "float32"


def observe(torch: Any, build: Build, given: tuple[Any, ...], training: bool) -> dict[str, Any]:
    """All there is to see of a layer on one of the two modules."""
    torch.manual_seed(11)
    layer = build(torch)
    layer.train(training)
    found: dict[str, Any] = {"repr": repr(layer), "keys": list(layer.state_dict())}
    found.update({f"initial {name}": tensor.clone() for name, tensor in layer.state_dict().items()})
    inputs = [make(torch, g.given, False) if isinstance(g, Fixed) else make(torch, g, True) for g in given]
    torch.manual_seed(12)
    output = layer(*inputs)
    found["output"] = output
    if floating(output) and output.requires_grad:
        torch.autograd.backward(output, weights(torch, [output])[0])
        for i, tensor in enumerate(inputs):
            if tensor.requires_grad:
                found[f"gradient of input {i}"] = tensor.grad
        for name, parameter in layer.named_parameters():
            found[f"gradient of {name}"] = parameter.grad
    found.update({f"final {name}": tensor for name, tensor in layer.state_dict().items()})
    return found


def compare(build: Build, *given: Any, training: bool = True) -> None:
    """A layer behaves the same on both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        want = observe(theirs, build, given, training)
        got = observe(ours, build, given, training)
    assert got.keys() == want.keys()
    for label, expected in want.items():
        if expected is None or got[label] is None:
            assert got[label] is expected, label
        elif label in ("repr", "keys"):
            assert got[label] == expected, label
        else:
            assert_same(got[label], expected, label, tolerance=1e-6 if label.startswith("initial") else None)

"""Switches of PyTorch's profiler for the whole process: recordings read them when they start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mtprof.trace import Arguments, TensorInput


@dataclass
class Switches:
    """What recordings contain besides the requests of their own arguments."""

    concrete_inputs: bool = True  # values of lists of numbers among an op's arguments
    forward_backward: bool = True  # arrows from forward ops to their backward functions in trace files


SWITCHES = Switches()


def _set_record_concrete_inputs_enabled_val(value: bool) -> None:
    """Whether recordings from now on keep the values of lists of numbers."""
    SWITCHES.concrete_inputs = bool(value)


def _set_fwd_bwd_enabled_val(value: bool) -> None:
    """Whether files of recordings from now on link forward ops to backward functions."""
    SWITCHES.forward_backward = bool(value)


def _set_cuda_sync_enabled_val(value: bool) -> None:
    """Whether to record waits for CUDA devices. There are none, so this changes nothing."""


def without_lists(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with None instead of lists of numbers."""
    values = (value if not isinstance(value, (list, tuple)) or any(isinstance(item, TensorInput) for item in value)
              else None for value in arguments)
    return Arguments(values, arguments.named) if isinstance(arguments, Arguments) else tuple(values)

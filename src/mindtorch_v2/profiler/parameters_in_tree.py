"""Parameters and gradients that an event of a tree shows."""

from __future__ import annotations

from collections.abc import Iterator

from mtprof.views.event_fields import EventType, PyCallFields, RecordScope, TensorMetadata
from mtprof.views.event_tree import ProfilerEvent
from mtprof.views.memory_categories import ACCUMULATE, TAKES_OR_ADDS
from mtprof.views.memory_key import TensorKey


def _extract_parameters_and_gradients(node: ProfilerEvent) -> Iterator[tuple[TensorKey | None, TensorKey | None]]:
    """Pairs of a parameter and its gradient; None for the one that the event does not show.

    An accumulator's first op takes or adds to a gradient. Calls of modules and steps of optimizers list what they hold.
    """
    kind, fields = node.typed
    if kind is EventType.TorchOp:
        first = node.children[0] if node.children else None
        if (node.name == ACCUMULATE and fields.scope is RecordScope.BACKWARD_FUNCTION and first is not None
                and first.tag is EventType.TorchOp and first.name in TAKES_OR_ADDS and first.extra_fields.inputs
                and isinstance(first.extra_fields.inputs[0], TensorMetadata)):
            yield None, TensorKey.from_tensor(first.extra_fields.inputs[0])
    elif isinstance(fields, PyCallFields):
        if fields.module is not None:
            for _, parameter, gradient in fields.module.parameters:
                yield TensorKey.from_tensor(parameter), TensorKey.from_tensor(gradient)
        if fields.optimizer is not None:
            for parameter, gradient, _ in fields.optimizer.parameters:
                yield TensorKey.from_tensor(parameter), TensorKey.from_tensor(gradient)


def extract_parameters(node: ProfilerEvent) -> Iterator[TensorKey]:
    """The parameters that an event shows."""
    for parameter, _ in _extract_parameters_and_gradients(node):
        if parameter is not None:
            yield parameter


def extract_gradients(node: ProfilerEvent) -> Iterator[tuple[TensorKey | None, TensorKey]]:
    """The gradients that an event shows, each after its parameter if that is known."""
    for parameter, gradient in _extract_parameters_and_gradients(node):
        if gradient is not None:
            yield parameter, gradient

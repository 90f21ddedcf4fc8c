"""How a profiler sees a node that runs."""

from __future__ import annotations

from typing import Any

from .._dispatch.describe import describe_all
from .._dispatch.observer import HOOK, event_id, open_stretch
from .graph import LAST, Node


def event_ids(node: Node) -> tuple[int, int, type[Node]]:
    """Event ids of `autograd::engine::evaluate_function: X` and of `X`, and the class that has them for all its
    nodes."""
    found = node.event_ids
    if found is None or found[2] is not type(node):
        name = node.name()
        found = type(node).event_ids = (
            event_id(f"autograd::engine::evaluate_function: {name}", "backward"),
            event_id(name, "backward_function"),
            type(node),
        )
    return found


def apply_watched(node: Node, event: int, received: Any, *more: Any) -> tuple[Any, ...]:
    """Run a node's formula as an event. An accumulator's gradients are taken out of `received`."""
    given = describe_all(tuple([g for g in received if g is not None])) if HOOK["DESCRIBE"] else None
    number = node.seq if node.seq != LAST else -1
    listener = HOOK["TAP"]
    noted = None if listener is None else listener.enter(event, number, received, node)
    stretch = open_stretch(given, number)
    try:
        results = node.apply(*received, *more)
        if not node.edges and node.hooks is None:
            received.clear()  # they are used up: their memory is freed here, as in PyTorch
        return results
    finally:
        stretch.end(event)
        if noted is not None:
            noted.leave()

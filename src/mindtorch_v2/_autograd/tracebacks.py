"""Where the ops of a graph were called, for anomaly detection: nodes have it in their metadata."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._dispatch.registry import Op
from .._dispatch.state import THREAD
from .._dispatch.watching import Watcher
from .._tensor import Tensor

if TYPE_CHECKING:
    from .graph import Node

TRACEBACK, PARENT = "traceback_", "parent_"


class Tracebacks(Watcher):
    """Records the stack of every op that makes a node, and the node whose backward it belongs to."""

    def watch(self, op: Op, inplace: bool, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Run an op, and store the place of its call on the nodes of its results."""
        made = self.looked_at(function, arguments)
        for one in made if isinstance(made, (tuple, list)) else (made,):
            if isinstance(one, Tensor) and one._edge is not None:
                note(one._edge[0])
        return made


def note(node: Node) -> None:
    """Store the program's place on a new node, without the frames of this package's dispatch."""
    if TRACEBACK in node.metadata:
        return
    frames = traceback.extract_stack()[:-1]
    node.metadata[TRACEBACK] = traceback.format_list([one for one in frames if not one.filename.startswith("<mind")])
    walk = THREAD.state.walk
    if walk is not None and walk.current is not None:
        node.metadata[PARENT] = walk.current


def told(node: Node) -> list[str]:
    """The origin of a node, and then of each node in whose backward it was made."""
    if TRACEBACK not in node.metadata:
        return [f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
                "forward pass for more information."]
    texts = [f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
             f"{''.join(node.metadata[TRACEBACK])}"]
    parent = node.metadata.get(PARENT)
    while parent is not None:
        known = parent.metadata.get(TRACEBACK)
        texts.append(f"\n\nPrevious calculation was induced by {parent.name()}. " + (
            "No forward pass information available." if known is None else
            f"Traceback of forward call that induced the previous calculation:\n{''.join(known)}"))
        parent = parent.metadata.get(PARENT)
    return texts


TAP = Tracebacks()

"""`replace_pattern`: find a small graph in a large one, and put another in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..nn.modules.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """The place of a pattern: the node in which it ends, and the node of the graph for each of its nodes."""

    anchor: Node
    nodes_map: dict[Node, Node]


def _graph_of(pattern: Any) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    return pattern.graph if isinstance(pattern, GraphModule) else symbolic_trace(pattern).graph


def _same(pattern: Any, value: Any, found: dict[Node, Node]) -> bool:
    """Whether a value of the graph matches the pattern; notes which nodes correspond."""
    if isinstance(pattern, Node):
        return isinstance(value, Node) and _same_node(pattern, value, found)
    if isinstance(pattern, (tuple, list)):
        return isinstance(value, (tuple, list)) and len(pattern) == len(value) and all(
            _same(one, other, found) for one, other in zip(pattern, value))
    if isinstance(pattern, dict):
        return isinstance(value, dict) and pattern.keys() == value.keys() and all(
            _same(one, value[key], found) for key, one in pattern.items())
    return type(pattern) is type(value) and bool(pattern == value)


def _same_node(pattern: Node, node: Node, found: dict[Node, Node]) -> bool:
    if pattern in found:
        return found[pattern] is node
    if pattern.op != "placeholder" and (
            pattern.op != node.op or pattern.target != node.target or not _same(pattern.args, node.args, found)
            or not _same(pattern.kwargs, node.kwargs, found)):
        return False
    if node in found.values():
        return False  # one node of the graph does not stand for two of the pattern
    found[pattern] = node
    return True


def replace_pattern(gm: GraphModule, pattern: Callable[..., Any] | Module | Graph,
                    replacement: Callable[..., Any] | Module | Graph) -> list[Match]:
    """Replace every place in a module's graph that does what the pattern does; returns these places.

    Arguments of the pattern stand for any value. Places do not overlap, and values inside one may not be used outside.
    """
    wanted, given = _graph_of(pattern), _graph_of(replacement)
    last = wanted.output_node().args[0]
    if not isinstance(last, Node):
        raise NotImplementedError("replace_pattern: a pattern returns one value")
    matches: list[Match] = []
    taken: set[Node] = set()
    for node in list(gm.graph.nodes):
        found: dict[Node, Node] = {}
        if not _same_node(last, node, found):
            continue
        inside = {one for part, one in found.items() if part.op not in ("placeholder", "output")}
        if inside & taken or any(user not in inside for one in inside if one is not node for user in one.users):
            continue
        taken |= inside
        matches.append(Match(node, found))
    changed: dict[Node, Node] = {}
    for match in matches:
        _replace(gm.graph, wanted, given, match, changed)
    gm.recompile()
    return matches


def _replace(graph: Graph, wanted: Graph, given: Graph, match: Match, changed: dict[Node, Node]) -> None:
    """Put the replacement in one place; `changed` has what earlier replacements put there for nodes."""
    arguments = [match.nodes_map[node] for node in wanted.nodes if node.op == "placeholder"]
    arguments = [changed.get(node, node) for node in arguments]
    parameters = [node for node in given.nodes if node.op == "placeholder"]
    if len(arguments) != len(parameters):
        raise RuntimeError(f"the pattern has {len(arguments)} arguments and its replacement {len(parameters)}")
    values = dict(zip(parameters, arguments))
    with graph.inserting_before(match.anchor):
        result = graph.graph_copy(given, values)
    match.anchor.replace_all_uses_with(result)
    changed[match.anchor] = result
    for part in reversed(wanted.nodes):
        node = match.nodes_map.get(part)
        if node is not None and part.op != "placeholder" and not node.users and not node._erased:
            graph.erase_node(node)

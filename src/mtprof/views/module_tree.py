"""Time, memory and work by the modules of a model: `prof.module_tree()`.

Each number comes as a module's own value and as a total, which is the own value plus the totals of its children. Time
that a module's call spends outside the calls of its children is its own forward time. Backward time is that of the
autograd nodes that its forward recorded; what a checkpoint computes again during the backward counts there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..schema import Kind
from ..tables.nesting import enclosing_rows, rows_around
from ..tables.tree import nearest, subtree_sums
from ..trace import Trace
from .formatting import _format_memory, format_time_in

MEASURES = ("calls", "forward_ns", "backward_ns", "allocated_bytes", "flops", "parameters")
OUTSIDE = "(outside of modules)"


@dataclass
class ModuleNode:
    """A module and its children; `self_…` is its own part of each total."""

    path: str
    label: str
    calls: int = 0
    forward_ns: int = 0
    self_forward_ns: int = 0
    backward_ns: int = 0
    self_backward_ns: int = 0
    allocated_bytes: int = 0
    self_allocated_bytes: int = 0
    flops: int = 0
    self_flops: int = 0
    parameters: int = 0
    self_parameters: int = 0
    children: list[ModuleNode] = field(default_factory=list)

    def __iter__(self) -> Iterator[ModuleNode]:
        """The module and all modules in it, each before its children."""
        yield self
        for child in self.children:
            yield from child

    def title(self, above: ModuleNode | None = None) -> str:
        """Its path below the module around it, with its class, if the recording knows the attribute.

        >>> block, conv = ModuleNode("blocks.0", "Block_0"), ModuleNode("blocks.0.conv", "Conv2d_0")
        >>> block.title(), conv.title(block)
        ('blocks.0: Block', 'conv: Conv2d')
        >>> ModuleNode("Net_0.Linear_1", "Linear_1").title(ModuleNode("Net_0", "Net_0"))
        'Linear_1'
        """
        prefix = f"{above.path}." if above is not None and above.path else ""
        name, kind = self.path.removeprefix(prefix), self.label.rpartition("_")[0] or self.label
        return f"{name}: {kind}" if name and kind and name not in (kind, self.label) else self.label or self.path

    def to_dict(self) -> dict[str, Any]:
        """All numbers, with the child modules under `children`."""
        return {**vars(self), "children": [child.to_dict() for child in self.children]}


class ModuleTree:
    """The models that were called, and what ran outside of them."""

    def __init__(self, roots: list[ModuleNode], outside: ModuleNode) -> None:
        self.roots = roots
        self.outside = outside

    def __iter__(self) -> Iterator[ModuleNode]:
        """All modules, each before its children."""
        for root in self.roots:
            yield from root

    def __getitem__(self, path: str) -> ModuleNode:
        """The module of a path."""
        for node in self:
            if node.path == path:
                return node
        raise KeyError(f"no module '{path}' was called, only {', '.join(node.path for node in self) or 'none'}")

    def to_dict(self) -> dict[str, Any]:
        """The models and what ran outside, as plain values."""
        return {"modules": [root.to_dict() for root in self.roots], "outside": self.outside.to_dict()}

    def table(self, max_depth: int | None = None, time_unit: str | None = None) -> str:
        """The tree as text, `max_depth` levels of it if given; times in "s", "ms", "us" or the unit that fits."""
        columns: list[tuple[str, Any]] = [
            ("Calls", lambda n: str(n.calls)),
            ("Forward", lambda n: format_time_in(n.forward_ns / 1000, time_unit)),
            ("Self forward", lambda n: format_time_in(n.self_forward_ns / 1000, time_unit)),
            ("Backward", lambda n: format_time_in(n.backward_ns / 1000, time_unit)),
        ]
        everything = [*self, self.outside]
        if any(node.allocated_bytes for node in everything):
            columns += [("Allocated", lambda n: _format_memory(n.allocated_bytes)),
                        ("Self allocated", lambda n: _format_memory(n.self_allocated_bytes))]
        if any(node.flops for node in everything):
            columns.append(("FLOPs", lambda n: f"{n.flops:,}"))
        if any(node.parameters for node in everything):
            columns.append(("Parameters", lambda n: f"{n.parameters:,}"))
        lines = [("Module", *(head for head, _ in columns))]
        for root in self.roots:
            lines.extend(_lines(root, [show for _, show in columns], "", ("", ""), max_depth))
        lines.append((OUTSIDE, *(show(self.outside) for _, show in columns)))
        widths = [max(map(len, column)) for column in zip(*lines)]
        rule = "  ".join("-" * width for width in widths)
        text = ["  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                          for i, (cell, width) in enumerate(zip(line, widths))) for line in lines]
        return "\n".join([rule, text[0], rule, *text[1:], rule])

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from ..notebook import reprs

        return reprs.module_tree(self)

    def __repr__(self) -> str:
        return f"<ModuleTree of {sum(1 for _ in self)} modules>"


def _lines(node: ModuleNode, shows: list[Any], around: str, lead: tuple[str, str],
           depth: int | None) -> Iterator[tuple[str, ...]]:
    """The rows of a module and its children; `around` is the path before its own, `lead` goes before first and
    others."""
    name, kind, rest = node.path.removeprefix(f"{around}."), node.label.rpartition("_")[0], lead[1]
    shown = f"{lead[0]}{name}" + (f" ({kind})" if kind and name not in (kind, node.label) else "")
    yield (shown, *(show(node) for show in shows))
    if depth is not None and depth <= 1:
        return
    for child in node.children:
        last = child is node.children[-1]
        branches = (rest + "└─ ", rest + "   ") if last else (rest + "├─ ", rest + "│  ")
        yield from _lines(child, shows, node.path, branches, None if depth is None else depth - 1)


def module_tree(trace: Trace) -> ModuleTree:
    """The tree of a trace that was recorded with modules."""
    modules = trace.modules
    count = len(modules["path"])
    own = _own(trace)
    total = {name: subtree_sums(modules["parent"], values[:count]) for name, values in own.items() if name != "calls"}
    labels = [trace.names[name] for name in modules["label"].tolist()]
    nodes = [ModuleNode(trace.names[path], label) for path, label in zip(modules["path"].tolist(), labels)]
    outside = ModuleNode(OUTSIDE, "")
    for name in MEASURES:
        for node, value in zip([*nodes, outside], own[name].tolist()):
            setattr(node, name if name == "calls" else f"self_{name}", value)
    for name, values in total.items():
        for node, value in zip([*nodes, outside], [*values.tolist(), int(own[name][count])]):
            setattr(node, name, value)
    roots: list[ModuleNode] = []
    for node, above in zip(nodes, modules["parent"].tolist()):
        (roots if above < 0 else nodes[above].children).append(node)
    return ModuleTree(roots, outside)


def _own(trace: Trace) -> dict[str, np.ndarray]:
    """Each measure per row of the module table, without the children's; one more entry for outside."""
    events, memory, calls = trace.events, trace.optional("memory"), trace.module_calls
    count = len(trace.modules["path"])
    row_of_name = np.full(len(trace.names) + 1, count)  # the last one is for -1, no module
    row_of_name[trace.modules["path"]] = np.arange(count)
    module = row_of_name[events["module"]]
    python = np.isin(events["kind"], (Kind.PYTHON, Kind.MODULE))
    backward = (nearest(events["parent"], events["kind"] == Kind.BACKWARD) >= 0) & ~python
    own_ns = trace.self_ns()

    spent = calls["end_ns"] - calls["start_ns"]
    inner = calls["parent"] >= 0
    spent = spent - np.bincount(calls["parent"][inner], spent[inner], minlength=len(spent)).astype(np.int64)
    around = rows_around(events, calls["thread"], calls["start_ns"])
    again = (around >= 0) & np.append(backward, False)[around]

    holder = np.append(module, count)[memory["row"]]
    loose = memory["row"] < 0
    call = enclosing_rows(calls, memory["thread"][loose], memory["time_ns"][loose])
    holder[loose] = np.append(calls["module"], count)[call]
    allocates = memory["size_bytes"] > 0
    works = events["flops"] > 0
    return {
        "calls": _sums(calls["module"], np.ones(len(spent), np.int64), count),
        "forward_ns": _sums(calls["module"][~again], spent[~again], count),
        "backward_ns": _sums(module[backward], own_ns[backward], count),
        "allocated_bytes": _sums(holder[allocates], memory["size_bytes"][allocates], count),
        "flops": _sums(module[works], events["flops"][works], count),
        "parameters": np.append(trace.modules["parameters"], 0),
    }


def _sums(row: np.ndarray, value: np.ndarray, count: int) -> np.ndarray:
    result = np.zeros(count + 1, np.int64)
    np.add.at(result, row, value)
    return result

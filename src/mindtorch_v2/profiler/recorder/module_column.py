"""Calls of modules, as the tables `modules` and `module_calls`."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mtprof.builder import TraceBuilder

from ..sources.ops import Piece


@dataclass
class ModuleCalls:
    """Calls of modules on all threads, as columns, and the modules; `path` is an index into the names of the trace."""

    thread: list[np.ndarray] = field(default_factory=list)
    start_ns: list[np.ndarray] = field(default_factory=list)
    end_ns: list[np.ndarray] = field(default_factory=list)
    path: list[np.ndarray] = field(default_factory=list)
    modules: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # by path: label, path around it, parameters

    def add(self, build: TraceBuilder, piece: Piece, rows: list[np.ndarray], thread: int) -> np.ndarray:
        """Add the calls of a piece, given as `[starts, ends, identities]`; returns their event names."""
        starts, ends, identities = rows
        known, number = np.unique(identities, return_inverse=True)
        names = [piece.modules[identity] for identity in known.tolist()]
        number = number.reshape(-1)
        self.thread.append(np.full(len(starts), thread, np.int32))
        self.start_ns.append(starts)
        self.end_ns.append(ends)
        self.path.append(np.array([build.name(name.path) for name in names], np.int32)[number])
        for name in piece.modules.values():
            above = piece.modules.get(name.parent) if name.parent is not None else None
            # A child with the name of its model's class is not distinguished from the model, and not put inside itself.
            inside = above is not None and above.path != name.path
            self.modules.setdefault(build.name(name.path), (
                build.name(name.label), build.name(above.path) if above and inside else -1, name.parameters))
        return np.array([build.name(f"nn.Module: {name.label}") for name in names], np.int32)[number]

    def add_to(self, build: TraceBuilder) -> None:
        """Fill the two tables."""
        build.add_columns("modules", self.table() if self.modules else {})
        build.add_columns("module_calls", {})
        if self.path:
            path = np.concatenate(self.path)
            rows = np.full(len(build.names), -1, np.int32)
            rows[list(self.modules)] = np.arange(len(self.modules), dtype=np.int32)
            build.add_columns("module_calls", {"module": rows[path], **{
                key: np.concatenate(getattr(self, key)) for key in ("thread", "start_ns", "end_ns")}})

    def table(self) -> dict[str, np.ndarray]:
        """The modules, in order of their first call."""
        rows = {path: row for row, path in enumerate(self.modules)} | {-1: -1}
        label, above, parameters = zip(*self.modules.values())
        return {"path": np.array(list(self.modules), np.int32), "label": np.array(label, np.int32),
                "parent": np.array([rows[path] for path in above], np.int32),
                "parameters": np.array(parameters, np.int64)}

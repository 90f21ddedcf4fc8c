"""The tables of modules, derived from the Python calls of a file that does not hold them.

PyTorch records a call of a module as a Python call `nn.Module: Linear_0`: class and number, without its place in the
model. The calls show which module is inside which.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..names import MODULE_PREFIX
from ..schema import TABLES, Kind
from ..trace import Trace
from .modules import with_modules
from .nesting import parents


def with_told_modules(trace: Trace) -> Trace:
    """The trace with `modules`, `module_calls` and the event column `module`, if it has only calls of modules.

    A call whose event states a path, as in files of this package, belongs to the module of that path. Any other call
    belongs to a part of the module that called it. So one module that two others call appears below each, and each
    total is right.
    """
    events = trace.events
    rows = np.flatnonzero(events["kind"] == Kind.MODULE)
    if not len(rows) or trace.has("module_calls"):
        return trace
    calls = {key: events[key][rows] for key in ("start_ns", "end_ns", "thread")}
    calls["parent"] = parents(calls["thread"], calls["start_ns"], calls["end_ns"])
    names = list(trace.names)
    numbers = {text: number for number, text in enumerate(names)}
    modules: dict[str, tuple[int, str]] = {}  # by path: row and label
    module: list[int] = []
    path: list[str] = []  # per call: a caller comes before those that it calls
    model: list[int] = []  # per call, the module that is the whole model, or -1
    models: dict[str, int] = {}  # the same by path
    for name, stated, caller in zip(events["name"][rows].tolist(), events["module"][rows].tolist(),
                                    calls["parent"].tolist()):
        label = names[name].removeprefix(MODULE_PREFIX)
        here = names[stated] if stated >= 0 else f"{path[caller]}.{label}" if caller >= 0 else label
        path.append(here)
        row = modules.setdefault(here, (len(modules), label))[0]
        module.append(row)
        model.append(row if here in (label, label.rpartition("_")[0]) else model[caller] if caller >= 0 else -1)
        models.setdefault(here, -1 if model[-1] == row else model[-1])
    for text in (*modules, *(label for _, label in modules.values())):
        if numbers.setdefault(text, len(names)) == len(names):
            names.append(text)
    calls["module"] = np.array(module, np.int32)
    table = {"path": np.array([numbers[text] for text in modules], np.int32),
             "label": np.array([numbers[label] for _, label in modules.values()], np.int32),
             "parent": np.array([_around(text, modules, models[text]) for text in modules], np.int32),
             "parameters": np.zeros(len(modules), np.int64)}
    trace = replace(trace, names=names).with_tables(
        modules=table, module_calls={column.name: calls[column.name] for column in TABLES["module_calls"]})
    return trace if (events["module"] >= 0).any() else with_modules(trace)


def _around(path: str, modules: dict[str, tuple[int, str]], model: int) -> int:
    """The row of the nearest module on a path, or that of the model: a stated path begins below it."""
    while "." in path:
        path = path.rpartition(".")[0]
        if path in modules:
            return modules[path][0]
    return model

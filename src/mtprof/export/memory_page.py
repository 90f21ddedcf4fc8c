"""The page of a memory timeline: one file with its data, styles and script, which needs no network.

The data are columns with one entry per stretch of time in which a block had one category. Names, modules and stacks are
tables that the columns point into. The page adds the stretches up, so what it shows is exact at any zoom.
"""

from __future__ import annotations

import html
import re
from importlib import resources
from typing import Any

import numpy as np

from ..json_text import text
from ..schema import Kind
from ..tables.tree import lifted
from ..trace import Trace
from ..views.memory_blocks import NEVER
from ..views.memory_profile import BEFORE, Action, MemoryProfile
from ..views.memory_timeline import ORDER, POSITION

NODE_PREFIX = "autograd::engine::evaluate_function: "
MARKERS = re.compile(r"\{\{(title|style|body|script|data)\}\}")
SCRIPTS = ("model.js", "chart.js", "alive.js", "page.js")  # one program, in this order
MOST_SPANS = 4000


def page_of(profile: MemoryProfile, device: str, title: str | None = None) -> str:
    """The whole page as text."""
    parts = {"title": html.escape(title or f"Memory timeline, {device}"), "data": embedded(page_data(profile, device)),
             **chart_parts()}
    # Split first, fill in afterwards: inserted text may look like a marker itself.
    pieces = MARKERS.split(_file("page.html"))
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def chart_parts() -> dict[str, str]:
    """The parts of the page that show memory over time: `style`, `body` (the markup) and `script`, which declares
    `memoryChart(root, host, data, state, changed)`. `root` is the document or the shadow root with the markup, `host`
    the element whose style has the colours, and `changed` receives the state to keep in an address.
    """
    script = "\n".join(map(_file, SCRIPTS))
    return {"style": _file("page.css"), "body": _file("body.html"),
            "script": "function memoryChart(root, host, data, state = {}, changed = () => {}) {\n"
                      f"const element = id => root.getElementById(id);\n{script}\n}}"}


def _file(name: str) -> str:
    return (resources.files(__package__) / "memory_page_files" / name).read_text("utf-8")


def embedded(value: Any) -> str:
    """JSON that is safe inside a script element, whatever its strings contain."""
    return text(value).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page_data(profile: MemoryProfile, device: str) -> dict[str, Any]:
    """All data of the page. Times are nanoseconds from the start of the recording."""
    trace = profile.trace
    block, begin, end, category = segments(profile, device)
    blocks = profile.blocks
    allocation = blocks.allocation[block]
    row = np.where(allocation >= 0, np.append(trace.optional("memory")["row"], -1)[allocation], -1)
    names: dict[str, int] = {}
    op, paths = op_paths(trace, row, names)
    stack, stacks = stack_table(trace, row, names)
    # A parameter was there before; it belongs to the module that first uses it.
    seen = np.where(allocation >= 0, row, first_uses(profile)[block])
    module = np.where(seen >= 0, np.append(trace.events["module"], -1)[seen], -1)
    return {
        "device": device,
        "categories": [category.name if category is not None else "UNKNOWN" for category in ORDER],
        "duration": int(max(trace.end_ns - trace.start_ns, 0)),
        "modulesKnown": bool((trace.events["module"] >= 0).any()),
        "segments": {
            "block": block.tolist(), "begin": begin.tolist(), "end": end.tolist(), "category": category.tolist(),
            "bytes": blocks.size_bytes[block].tolist(), "older": blocks.preexisting[block].astype(int).tolist(),
            "op": op.tolist(), "stack": stack.tolist(),
            "module": [names.setdefault(trace.names[n], len(names)) if n >= 0 else -1 for n in module.tolist()],
        },
        "paths": paths,
        "stacks": stacks,
        "spans": spans(trace, names),
        "names": list(names),
    }


def segments(profile: MemoryProfile, device: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Block, begin, end (-1 for the end of the recording) and category of each stretch of one category."""
    blocks, flow, changes, trace = profile.blocks, profile.flow, profile.changes, profile.trace
    counts = np.diff(flow.slots)
    block = np.repeat(np.arange(len(blocks)), counts)
    begin = np.where(blocks.preexisting, trace.start_ns, blocks.allocated_ns)[block]
    bumps = changes.action == Action.INCREMENT_VERSION.value
    later = flow.slots[changes.block[bumps]] + changes.version[bumps] + 1
    begin[later] = changes.time_ns[bumps] - trace.epoch_ns
    category = POSITION[profile.slot_categories]
    fresh = np.ones(len(block), bool)
    fresh[1:] = (np.diff(block) != 0) | (np.diff(category) != 0)
    block, begin, category = block[fresh], begin[fresh], category[fresh]
    last = np.ones(len(block), bool)
    last[:-1] = np.diff(block) != 0
    released = np.where(blocks.released_ns == NEVER, BEFORE, blocks.released_ns - trace.start_ns)[block]
    end = np.where(last, released, np.append(begin, 0)[1:] - trace.start_ns)
    here = np.array([name == device for name in profile.device_names], bool)[block]
    return block[here], np.maximum(begin - trace.start_ns, 0)[here], end[here], category[here]


def first_uses(profile: MemoryProfile) -> np.ndarray:
    """For each block, the first event that has it as an argument, or -1."""
    row, block = profile.trace.optional("uses")["row"], profile.blocks.of_use
    latest_first = np.argsort(-profile.trace.events["start_ns"][row], kind="stable")
    latest_first = latest_first[block[latest_first] >= 0]
    result = np.full(len(profile.blocks), -1, np.int64)
    result[block[latest_first]] = row[latest_first]  # of several, the last assignment stays
    return result


def op_paths(trace: Trace, rows: np.ndarray, names: dict[str, int]) -> tuple[np.ndarray, list[list[int]]]:
    """For each row the ops around it, as a number in a table of `[path around it, name]`; -1 for none."""
    # Lists, because single elements are looked up, which is slow with arrays.
    parent, name, kind = (trace.events[column].tolist() for column in ("parent", "name", "kind"))
    function = int(Kind.BACKWARD_FUNCTION)
    known: dict[int, int] = {-1: -1}
    numbers: dict[tuple[int, int], int] = {}
    paths: list[list[int]] = []

    def path(row: int) -> int:
        waiting = []
        while row not in known:
            waiting.append(row)
            row = parent[row]
        above = known[row]
        for row in reversed(waiting):
            word = names.setdefault(trace.names[name[row]].removeprefix(NODE_PREFIX), len(names))
            # A node of autograd and its function have the same name; one of them is enough for a reader.
            if not (kind[row] == function and above >= 0 and paths[above][1] == word):
                above = _number((above, word), numbers, paths)
            known[row] = above
        return above

    distinct, which = np.unique(rows, return_inverse=True)
    found = np.array([path(row) for row in distinct.tolist()], np.int64)
    return found[which.reshape(-1)] if len(rows) else rows, paths


def _number(entry: tuple[int, int], numbers: dict[tuple[int, int], int], table: list[list[int]]) -> int:
    found = numbers.get(entry)
    if found is None:
        found = numbers[entry] = len(table)
        table.append(list(entry))
    return found


def stack_table(trace: Trace, rows: np.ndarray, names: dict[str, int]) -> tuple[np.ndarray, list[list[int]]]:
    """The Python stack of each row as a number in a table of frames, innermost first; -1 for none."""
    stack = np.where(rows >= 0, np.append(trace.events["stack"], -1)[rows], -1)
    used, which = np.unique(stack, return_inverse=True)
    table = [[names.setdefault(str(frame), len(names)) for frame in trace.stack(number)]
             for number in used.tolist() if number >= 0]
    shift = int(len(used) > 0 and used[0] < 0)
    return which.reshape(-1) - shift, table


def spans(trace: Trace, names: dict[str, int]) -> list[list[int]]:
    """`[begin, end, name, depth]` of steps, scopes and backward passes, for orientation along the time axis."""
    events, kind = trace.events, trace.events["kind"]
    marked = np.isin(kind, (Kind.STEP, Kind.SCOPE))
    around = lifted(events["parent"], marked)
    scopes = np.flatnonzero(marked)[:MOST_SPANS]
    # A backward pass is a run of nodes without an op of the program in between.
    works = np.isin(kind, (Kind.OP, Kind.BACKWARD))
    outer = np.flatnonzero(works & (lifted(events["parent"], works) < 0))
    outer = outer[np.argsort(events["start_ns"][outer], kind="stable")]
    node = np.concatenate(([False], kind[outer] == Kind.BACKWARD, [False]))
    edges = np.flatnonzero(np.diff(node.astype(np.int8)))
    first, last = (outer[part][:MOST_SPANS] for part in (edges[::2], edges[1::2] - 1))
    begin = np.concatenate((events["start_ns"][scopes], events["start_ns"][first])) - trace.start_ns
    end = np.concatenate((events["end_ns"][scopes], events["end_ns"][last])) - trace.start_ns
    words = [*(trace.names[name] for name in events["name"][scopes].tolist()), *["backward"] * len(first)]
    numbers = [names.setdefault(word, len(names)) for word in words]
    depth = depths(around, np.concatenate((scopes, first)))
    return [list(span) for span in zip(begin.tolist(), end.tolist(), numbers, depth.tolist())]


def depths(parent: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The number of ancestors of some rows."""
    result, above = np.zeros(len(rows), np.int64), parent[rows]
    while (above >= 0).any():
        result += above >= 0
        above = np.where(above >= 0, parent[above], -1)
    return result

"""pprof's protocol buffer: samples of call paths, with calls and nanoseconds.

The message is small and fixed (github.com/google/pprof, proto/profile.proto), so it is written here directly: field
numbers are beside their names.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..names import parse_frame
from ..trace import Trace
from ..views.call_paths import call_paths

_VARINT, _BYTES = 0, 2


def document(trace: Trace) -> bytes:
    """The file, not compressed; pprof reads it compressed or not."""
    paths = call_paths(trace)
    texts: dict[str, int] = {"": 0}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    body = bytearray()
    for kind, unit in (("calls", "count"), ("time", "nanoseconds")):
        body += _message(1, _field(1, text(kind)) + _field(2, text(unit)))  # sample_type
    used: set[int] = set()
    parents, labels = paths.parent.tolist(), paths.label.tolist()
    for node in paths.timed():
        locations, at = [], node
        while at >= 0:
            locations.append(labels[at] + 1)
            at = parents[at]
        used.update(locations)
        sample = _packed(1, locations) + _packed(2, (paths.count.item(node), paths.self_ns.item(node)))
        body += _message(2, sample)
    for number in sorted(used):
        frame = parse_frame(paths.labels[number - 1])
        line = _field(1, number) + _field(2, max(frame.line, 0))  # function_id, line
        body += _message(4, _field(1, number) + _message(4, line))  # location: id, line
        function = _field(1, number) + _field(2, text(frame.function)) + _field(3, text(frame.function))
        body += _message(5, function + _field(4, text(frame.file)) + _field(5, max(frame.line, 0)))
    default = text("time")
    for value in texts:
        body += _message(6, value.encode("utf-8", "replace"))  # string_table
    body += _field(9, trace.epoch_ns + trace.start_ns)  # time_nanos
    body += _field(10, trace.end_ns - trace.start_ns)  # duration_nanos
    body += _field(14, default)  # default_sample_type
    return bytes(body)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def _field(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value)


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _packed(number: int, values: Iterable[int]) -> bytes:
    return _message(number, b"".join(map(_varint, values)))

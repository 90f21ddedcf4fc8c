"""Files with wrong types under the metadata keys that this package reads, and with unknown codes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mtprof.builder import TraceBuilder
from mtprof.codes import unknown
from mtprof.devices import DeviceType
from mtprof.errors import BadFile
from mtprof.loading import load
from mtprof.schema import Direction, Kind, Role
from mtprof.store import arrow
from mtprof.trace import ThreadInfo

WRONG = [("mindtorch_v2", 8), ("mindtorch_v2", None), ("mindtorch_v2", {"step_starts_ns": 5}),
         ("mindtorch_v2", {"step_starts_ns": [{}]}), ("mindtorch_v2", {"step_starts_ns": [2**63]}),
         ("profiler_overhead_us", {}), ("profiler_overhead_us", "much"), ("device_times", 3), ("device_times", [1])]
RIGHT = {"mindtorch_v2": {"step_starts_ns": [5]}, "profiler_overhead_us": 2.5, "device_times": [{"device": "NPU"}]}
EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 2}


def chrome(path, args=None, **metadata):
    path.write_text(json.dumps({"traceEvents": [{**EVENT, "args": args or {}}], **metadata}))
    return path


def recording(path, device=0, **metadata):
    build = TraceBuilder()
    build.add_columns("events", {
        "name": np.array([build.name("aten::add")], np.int32), "kind": np.array([Kind.OP], np.uint8),
        "start_ns": np.array([1]), "end_ns": np.array([2]), "device": np.array([device], np.int16),
        "thread": np.array([build.thread(ThreadInfo(1, 1, "main", "python"))], np.int32)})
    arrow.save(build.finish(metadata=metadata), path)
    return path


def shown(path):
    read = load(path)
    read.key_averages().table()
    read.step_summary()
    read.export_chrome_trace(path.with_name("again.json"))
    return read


@pytest.mark.parametrize(("key", "value"), WRONG, ids=[f"{key}-{number}" for number, (key, _) in enumerate(WRONG)])
def test_metadata_of_other_types_are_an_error_that_names_file_and_key(tmp_path, key, value):
    for make, name in ((chrome, "t.json"), (recording, "t.mtp")):
        with pytest.raises(BadFile, match=key) as caught:
            load(make(tmp_path / name, **{key: value}))
        assert name in str(caught.value)


def test_metadata_of_the_right_types_are_read(tmp_path):
    for make, name in ((chrome, "t.json"), (recording, "t.mtp")):
        found = shown(make(tmp_path / name, **RIGHT)).trace.metadata
        assert {key: found[key] for key in RIGHT} == RIGHT


def test_a_device_that_nothing_has_is_an_error(tmp_path):
    with pytest.raises(BadFile, match="1024, which is none of DeviceType"):
        load(chrome(tmp_path / "t.json", {"Device Type": 1024}))
    for device in (-3, 1024):
        with pytest.raises(BadFile, match=f"t.mtp: column events.device has the code {device}"):
            shown(recording(tmp_path / "t.mtp", device))


def test_a_negative_number_of_a_scope_is_written_as_none(tmp_path):
    shown(chrome(tmp_path / "t.json", {"Record function id": -1}))
    written = json.loads((tmp_path / "again.json").read_text())["traceEvents"]
    assert [one["args"].get("Record function id", 0) for one in written if one["name"] == "aten::add"] == [0]


@pytest.mark.parametrize("codes", [DeviceType, Direction, Kind, Role])
def test_codes_have_no_gaps(codes):
    numbers = sorted(map(int, codes))
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert unknown(codes, np.array([0, *numbers])) is None
    assert unknown(codes, np.array([], np.int16)) is None
    assert unknown(codes, np.array([0, numbers[-1] + 1])) == numbers[-1] + 1
    assert unknown(codes, np.array([0, -1])) == -1

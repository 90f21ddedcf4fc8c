"""The tables' schema: any trace that it allows goes through files, views and parts, and comes back as it was."""

from __future__ import annotations

import json
import pathlib
import sys
import tempfile
import time
import warnings
from dataclasses import replace

import hypothesis
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "mtprof"))

from strategies import traces

import mtprof
from mtprof.devices import DeviceType
from mtprof.export import chrome
from mtprof.recording import Recording
from mtprof.store import arrow
from mtprof.tables.compare import assert_traces_equal
from mtprof.tables.select import between, select
from mtprof.trace import Trace

# Making a finding smaller would take longer than finding it: `pytest tests/mtprof` does that.
PHASES = (hypothesis.Phase.explicit, hypothesis.Phase.generate)


QUICK = 200  # traces of a quick run


def recordable(trace: Trace) -> Trace:
    """The trace with numbers that a recorder could give: devices that exist, and counts from 0."""
    devices = np.array([int(device) for device in DeviceType])
    tables = {}
    for name, table in trace.tables.items():
        columns = {column: table[column] for column in table}
        for column, values in columns.items():
            if column == "device":
                columns[column] = devices[values % len(devices)].astype(values.dtype)
            elif column == "parent" and name == "events":
                columns[column] = np.full(len(values), -1, values.dtype)  # by nesting, which chance does not make
            elif column in ("record_id", "correlation", "sequence", "device_index", "flops"):
                columns[column] = np.maximum(values, -1 if column in ("sequence", "flops", "device_index") else 0)
        tables[name] = columns
    return replace(trace, tables=tables)


def check(trace: Trace, directory: str) -> None:
    """Write, read, cut and show a trace."""
    warnings.simplefilter("ignore")
    path = f"{directory}/t.mtp"
    arrow.save(trace, path)
    assert_traces_equal(trace, mtprof.load(path).trace)
    middle = (trace.start_ns + trace.end_ns) // 2
    assert len(between(trace, trace.start_ns, middle)) <= len(trace)
    assert len(select(trace, {"events": np.zeros(len(trace), bool)})) == 0
    sound = recordable(trace)
    chrome.write(sound, f"{directory}/t.json")
    read = mtprof.load(f"{directory}/t.json").trace
    assert len(read) == len(trace), "the Chrome trace has another number of events"
    recording = Recording(read)  # whose parents are by nesting, not by chance
    recording.key_averages().table()
    recording.key_averages(group_by_input_shape=True, group_by_stack_n=2)
    [(event.self_cpu_time_total, event.stack, event.input_shapes) for event in recording.events()]
    recording.step_summary()


def main(seconds: float, seed: int) -> int:
    """Check traces for so long; with 0 seconds, a number of them."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end if seconds else count < QUICK:
        @hypothesis.seed(seed + count)
        @hypothesis.settings(max_examples=100, deadline=None, database=None, phases=PHASES,
                             suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(traces())
        def one_round(trace: Trace) -> None:
            nonlocal count
            count += 1
            with tempfile.TemporaryDirectory() as directory:
                check(trace, directory)

        one_round()
    print(json.dumps({"traces": count, "findings": 0}))
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2])))

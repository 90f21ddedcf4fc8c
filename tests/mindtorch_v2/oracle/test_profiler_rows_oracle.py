"""The same programs under both profilers: same top-level ops, same nesting, nothing invented."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from harness import ours, theirs
from programs import PROGRAMS
from row_agreement import agreement, events_of, report, top_level


def record(torch, program):
    run = program(torch, torch.profiler.record_function)
    run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
                                with_flops=True) as prof:
        run()
    return prof


@pytest.fixture(scope="module")
def profiles():
    return {name: (record(ours, program), record(theirs, program)) for name, program in PROGRAMS.items()}


@pytest.fixture(scope="module")
def rows(profiles):
    return {name: (events_of(got), events_of(want)) for name, (got, want) in profiles.items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_top_level_ops_are_the_same(rows, name):
    got, want = rows[name]
    assert top_level(got) == top_level(want)


@pytest.mark.parametrize("name", PROGRAMS)
def test_backward_functions_and_scopes_are_the_same(profiles, name):
    got, want = (Counter(e.name for e in p.events() if not e.name.startswith(("aten::", "detach")))
                 for p in profiles[name])
    assert got == want


@pytest.mark.parametrize("name", PROGRAMS)
def test_sequence_numbers_link_forward_and_backward_alike(profiles, name):
    def links(prof):
        first = min((e.sequence_nr for e in prof.events() if e.sequence_nr >= 0), default=0)
        return [(e.name, e.sequence_nr - first) for e in prof.events()
                if e.name.startswith("autograd::engine") and "Accumulate" not in e.name]

    got, want = profiles[name]
    assert links(got) == links(want)


@pytest.mark.parametrize("name", PROGRAMS)
def test_shapes_of_top_level_ops(profiles, name):
    def shapes(prof):
        return [(e.name, [s for s in e.input_shapes if s]) for e in prof.events()
                if e.cpu_parent is None and e.name.startswith("aten::")]

    got, want = profiles[name]
    assert shapes(got) == shapes(want)


@pytest.mark.parametrize("name", PROGRAMS)
def test_flops(profiles, name):
    """The same op on the same shapes has the same FLOPs on both."""
    got, want = ({(e.name, str(e.input_shapes)): e.flops for e in p.events() if e.flops or e.name == "aten::mul"}
                 for p in profiles[name])
    assert {key: got[key] for key in got if key in want} == {key: want[key] for key in want if key in got}
    products = {key for key in want if key[0] in ("aten::mm", "aten::addmm", "aten::bmm")}
    assert products == {key for key in got if key[0] in ("aten::mm", "aten::addmm", "aten::bmm")}


def test_agreement_of_all_rows(rows, capsys):
    """Prints precision, recall and F1 of rows; inner helpers that PyTorch runs may be missing here."""
    with capsys.disabled():
        print("\n" + report(rows))
    assert all(agreement(got, want).recall > 0.3 for got, want in rows.values())


OPTIONS = [{}, {"record_shapes": True}, {"profile_memory": True}, {"with_flops": True},
           {"record_shapes": True, "profile_memory": True, "with_flops": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "+".join(o) or "plain")
def test_table_columns_and_trace_keys(options, tmp_path):
    """The same program gives a table with the same columns and a file with the same keys per kind of event."""
    columns, keys, top = [], [], []
    for number, torch in enumerate((ours, theirs)):
        run = PROGRAMS["mlp_sgd"](torch, torch.profiler.record_function)
        run()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as prof:
            run()
        grouped = prof.key_averages(group_by_input_shape=options.get("record_shapes", False))
        columns.append(grouped.table().split("\n")[1].split())
        path = tmp_path / f"{number}.json"
        prof.export_chrome_trace(str(path))
        document = json.loads(path.read_text())
        top.append(set(document))
        keys.append({(e["ph"], e.get("cat"), key) for e in document["traceEvents"] for key in (e.get("args") or {})})
    assert columns[0] == columns[1]
    assert top[1] - top[0] == set()
    assert keys[1] - keys[0] == set()


@pytest.mark.parametrize("name", PROGRAMS)
def test_nesting_of_shared_rows(profiles, name):
    """Where both show an op below another, the nearest ancestor that both know is the same."""
    got, want = profiles[name]
    common = {e.name for e in got.events()} & {e.name for e in want.events()}

    def pairs(prof):
        found = Counter()
        for event in prof.events():
            above = event.cpu_parent
            while above is not None and above.name not in common:
                above = above.cpu_parent
            if event.name in common:
                found[(above.name if above is not None else None, event.name)] += 1
        return found

    mine, other = pairs(got), pairs(want)
    invented = {pair: count for pair, count in (mine - other).items() if pair[0] is None or "Backward" not in pair[0]}
    assert not [pair for pair in invented if pair not in other], invented

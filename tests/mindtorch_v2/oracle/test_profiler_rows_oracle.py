"""The same programs under both profilers: same top-level ops, same nesting, nothing invented."""

from __future__ import annotations

from collections import Counter

import pytest
from harness import ours, theirs
from programs import PROGRAMS


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


def top_level(prof):
    return [e.name for e in prof.events() if e.cpu_parent is None]


@pytest.mark.parametrize("name", PROGRAMS)
def test_top_level_ops_are_the_same(profiles, name):
    got, want = profiles[name]
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
    """The same op on the same shapes counts the same on both."""
    got, want = ({(e.name, str(e.input_shapes)): e.flops for e in p.events() if e.flops or e.name == "aten::mul"}
                 for p in profiles[name])
    assert {key: got[key] for key in got if key in want} == {key: want[key] for key in want if key in got}
    products = {key for key in want if key[0] in ("aten::mm", "aten::addmm", "aten::bmm")}
    assert products == {key for key in got if key[0] in ("aten::mm", "aten::addmm", "aten::bmm")}


def test_agreement_of_all_rows(profiles, capsys):
    """Prints precision and recall of (name, count) rows; inner helpers that PyTorch runs may be missing here."""
    lines = []
    for name, pair in profiles.items():
        got, want = (set(Counter(e.name for e in p.events()).items()) for p in pair)
        common = len(got & want)
        lines.append((name, common / len(got), common / len(want)))
    with capsys.disabled():
        print("\nrows (name, count):          precision  recall")
        for name, precision, recall in lines:
            print(f"  {name:<24} {precision:>10.2f} {recall:>7.2f}")
    assert all(recall > 0.3 for _, _, recall in lines)

"""The programs of examples/ on both runtimes: the same losses, and profiles that show the same ops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from example_runner import PROGRAMS, finish, start
from row_agreement import Event, agreement, only_here, report, top_level

torch = pytest.importorskip("torch", reason="the oracle, torch==2.13.0, is not installed")

STEPS = 10


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each runtime gave, for each program; both run at the same time."""
    folder: Path = tmp_path_factory.mktemp("examples")
    outputs = {which: folder / f"{which}.json" for which in ("ours", "theirs")}
    processes = {which: start(which, STEPS, output, PROGRAMS) for which, output in outputs.items()}
    try:
        return {which: finish(process, outputs[which]) for which, process in processes.items()}
    finally:
        for process in processes.values():
            process.kill()


@pytest.fixture(scope="module")
def profiles(results: dict[str, dict[str, Any]]) -> dict[str, tuple[list[Event], list[Event]]]:
    """Our events and PyTorch's, for each program."""
    def events(which: str, program: str) -> list[Event]:
        return [Event(*event) for event in results[which][program]["events"]]

    return {program: (events("ours", program), events("theirs", program)) for program in PROGRAMS}


@pytest.mark.parametrize("program", PROGRAMS)
def test_losses(results: dict[str, dict[str, Any]], program: str) -> None:
    """Ten steps from the same seed give the same losses: dropout, shuffling and sampling draw the same numbers."""
    got, want = (results[which][program]["losses"] for which in ("ours", "theirs"))
    assert len(got) == len(want) == STEPS
    errors = [abs(a - b) / max(1.0, abs(b)) for a, b in zip(got, want)]
    assert max(errors) < 1e-4, list(zip(got, want))


@pytest.mark.parametrize("program", PROGRAMS)
def test_top_level_ops(profiles: dict[str, tuple[list[Event], list[Event]]], program: str) -> None:
    """The ops that the program itself called, and backward functions, in the same order."""
    got, want = profiles[program]
    assert top_level(got) == top_level(want)


def test_agreement_is_printed(profiles: dict[str, tuple[list[Event], list[Event]]],
                              capsys: pytest.CaptureFixture[str]) -> None:
    """All rows, with every name that only this runtime shows."""
    text = report(profiles)
    with capsys.disabled():
        print("\n" + text)
    for program, (got, want) in profiles.items():
        for name in only_here(got, want):
            assert any(line.startswith(f"{program}, only here") and name in line for line in text.splitlines())


# F1 of (name, count) and of (name, shapes, count) rows that must be reached.
REACHED = {
    "bert": (0.9, 0.9),
    "dcgan": (0.88, 0.88),
    "densenet": (0.9, 0.9),
    "gcn": (0.9, 0.9),
    "gpt": (0.9, 0.9),
    "mnist": (0.9, 0.9),
    "mobilenet": (0.9, 0.9),
    "name_classifier": (0.9, 0.9),
    "reinforce": (0.9, 0.9),
    "resnet": (0.88, 0.86),
    "vae": (0.9, 0.9),
    "vit": (0.9, 0.9),
    "word_language_model": (0.9, 0.9),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_agreement_of_all_rows(profiles: dict[str, tuple[list[Event], list[Event]]], program: str) -> None:
    got, want = profiles[program]
    plain, shaped = agreement(got, want).f1, agreement(got, want, with_shapes=True).f1
    assert plain >= REACHED[program][0]
    assert shaped >= REACHED[program][1]

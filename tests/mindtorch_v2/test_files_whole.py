"""A file is written whole or not at all, whatever its name and whenever Ctrl-C comes."""

from __future__ import annotations

import os
import pathlib
import sys

import pytest
from interrupting import Interrupt, interrupted_everywhere

import mindtorch_v2 as torch
from mtprof.files import write_atomically

# 240 bytes each, as characters of one, two, three and four bytes.
LONG_NAMES = [character * (240 // len(character.encode())) for character in ("a", "é", "語", "😀")]

# Python itself leaves a file to the collector when the interrupt falls between the end of a `with` block and its exit.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.mark.parametrize("name", LONG_NAMES, ids=["1", "2", "3", "4"])
def test_long_names(tmp_path: pathlib.Path, name: str) -> None:
    torch.save(torch.ones(2), tmp_path / name)
    assert torch.load(tmp_path / name).tolist() == [1, 1]
    write_atomically(tmp_path / name, [b"text"])
    assert (tmp_path / name).read_bytes() == b"text"
    assert os.listdir(tmp_path) == [name]


def test_ctrl_c_in_an_export(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")

    def run() -> None:
        write_atomically(path, [b"new", b"er"])

    places = []
    for place in interrupted_everywhere(run, "mtprof/files.py", "contextlib"):
        places.append(place)
        assert path.read_bytes() in (b"old", b"newer"), place
        assert os.listdir(tmp_path) == ["a.json"], place
        path.write_bytes(b"old")
    assert len(places) > 20


def test_ctrl_c_in_a_save(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.pt"
    torch.save({"x": torch.zeros(3)}, path)
    old = path.read_bytes()
    torch.save({"x": torch.ones(3)}, path)
    new = path.read_bytes()

    def run() -> None:
        torch.save({"x": torch.ones(3)}, path)

    places = []
    for place in interrupted_everywhere(run, "_zip_writer.py", "_checkpoint.py", "contextlib"):
        places.append(place)
        assert path.read_bytes() in (old, new), place
        assert os.listdir(tmp_path) == ["a.pt"], place
        path.write_bytes(old)
    assert len(places) > 100


def test_the_interrupt_stays_one(tmp_path: pathlib.Path) -> None:
    """It used to become `FileNotFoundError: cannot write` between the rename and the line after it."""
    places = []
    for number in range(0, 60, 3):
        interrupt = Interrupt(number, ("mtprof/files.py",))
        sys.settrace(interrupt)
        try:
            write_atomically(tmp_path / "a.json", [b"text"])
        except BaseException as error:
            assert type(error) is KeyboardInterrupt, interrupt.place  # noqa: PT017
        finally:
            sys.settrace(None)
        places.append(interrupt.place)
    assert None not in places[:8]

"""Writing results where it cannot be done: full disks, directories without permission, pipes, interrupts."""

from __future__ import annotations

import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from ..registry import ANY, case
from ..tools import raises


def _recorded(count: int = 20) -> Any:
    import mindtorch_v2 as torch

    model = torch.nn.Linear(3, 2)
    with torch.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        for _ in range(count):
            model(torch.ones(4, 3)).sum().backward()
    return prof


def _exports(prof: Any) -> dict[str, Callable[[Any], None]]:
    return {
        "t.json": prof.export_chrome_trace,
        "t.json.gz": prof.export_chrome_trace,
        "s.txt": lambda path: prof.export_stacks(str(path)),
        "m.html": lambda path: prof.export_memory_timeline(str(path), "cpu"),
        "m.json": lambda path: prof.export_memory_timeline(str(path), "cpu"),
        "m.raw.json.gz": lambda path: prof.export_memory_timeline(str(path), "cpu"),
        "a.json": lambda path: prof.key_averages().export_chrome_trace(str(path)),
        "a.csv": lambda path: prof.key_averages().to_csv(path),
        "e.json": lambda path: prof.events().to_json(path),
        "r.mtp": prof.save,
    }


@case(recorders=ANY)
def a_full_disk(directory: pathlib.Path) -> None:
    """When the disk is full, the error says which file, the old file stays and nothing is left behind."""
    prof = _recorded(200)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    for name, export in _exports(prof).items():
        path = directory / name
        path.write_bytes(b"old")
        raises(OSError, lambda export=export, path=path: export(path), name)
        assert path.read_bytes() == b"old", name
        assert [item.name for item in directory.iterdir()] == [name], list(directory.iterdir())
        path.unlink()


@case(recorders=ANY)
def a_device_without_room(directory: pathlib.Path) -> None:
    """Writing to /dev/full raises the system's error."""
    prof = _recorded()
    for name in ("t.json", "r.mtp"):
        raises(OSError, lambda name=name: _exports(prof)[name]("/dev/full"), "/dev/full")


@case(recorders=ANY)
def places_where_nothing_can_be_written(directory: pathlib.Path) -> None:
    """A directory that is missing, not one, or the file itself: the error names the path, and the results stay."""
    prof = _recorded()
    (directory / "file").write_text("x")
    (directory / "there").mkdir()
    for name, export in _exports(prof).items():
        raises((OSError, RuntimeError), lambda e=export, n=name: e(directory / "missing" / n), "missing")
        raises((OSError, RuntimeError), lambda e=export, n=name: e(directory / "file" / n), "file")
        (directory / "there" / name).mkdir()
        raises((OSError, RuntimeError), lambda e=export, n=name: e(directory / "there" / n), name)
        raises((OSError, ValueError, RuntimeError), lambda e=export, n=name: e(f"{directory}/a\0b{n}"))
        export(directory / name)
    assert len(prof.events()) > 0


@case(recorders=ANY)
def a_directory_that_must_not_be_written(directory: pathlib.Path) -> None:
    """Without permission the error names the file; as root, who may do anything, the file is written."""
    prof = _recorded()
    locked = directory / "locked"
    locked.mkdir()
    locked.chmod(0o500)
    for name, export in _exports(prof).items():
        try:
            export(locked / name)
        except OSError as error:
            assert name in str(error), error
        else:
            assert os.geteuid() == 0
    locked.chmod(0o700)


@case(recorders=ANY)
def links_and_pipes(directory: pathlib.Path) -> None:
    """A symbolic link stays one, a pipe gets the bytes, /dev/null swallows them."""
    prof = _recorded()
    target = directory / "target.json"
    target.write_text("old")
    target.chmod(0o640)
    link = directory / "link.json"
    link.symlink_to(target)
    prof.export_chrome_trace(link)
    assert link.is_symlink()
    assert json.loads(target.read_text())["traceEvents"]
    assert target.stat().st_mode & 0o777 == 0o640
    pipe = directory / "pipe.json"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    prof.export_chrome_trace(pipe)
    reader.join(10)
    assert json.loads(got[0])["traceEvents"]
    prof.export_chrome_trace("/dev/null")


@case(recorders=ANY, seconds=240)
def interrupts_in_exports(directory: pathlib.Path) -> None:
    """KeyboardInterrupt at any line of an export stays one; the file is the old or the new one, nothing is left."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "mindtorch_v2"))
    from interrupting import interrupted_everywhere

    prof = _recorded(1)
    for name, export in _exports(prof).items():
        path = directory / name
        export(path)

        def run(path: pathlib.Path = path, export: Callable[[pathlib.Path], object] = export) -> None:
            path.write_bytes(b"old")
            export(path)

        count = 0
        # (Python may not close a file that it has opened when the interrupt falls between the two.)
        for place in interrupted_everywhere(run, "mtprof/files.py", most=100_000):
            count += 1
            assert path.read_bytes() == b"old" or path.stat().st_size > 50, (name, place)
            assert [item.name for item in directory.iterdir()] == [name], (name, place)
        assert count > 10 or name.startswith(("a.csv", "e.json")), (name, count)
        path.unlink()


@case(recorders=ANY)
def killed_while_writing(directory: pathlib.Path) -> None:
    """A process that is killed in the middle of an export leaves the old file whole."""
    code = """
import sys, mindtorch_v2 as torch
with torch.profiler.profile(with_stack=True) as prof:
    for _ in range(3000):
        torch.ones(2) + 1
print("ready", flush=True)
while True:
    prof.export_chrome_trace(sys.argv[1])
    print("written", flush=True)
"""
    path = directory / "t.json"
    import random
    import time

    for number in range(5):
        process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()
        time.sleep(random.Random(number).random() * 0.2)
        process.kill()
        process.wait()
        assert json.loads(path.read_text())["traceEvents"], number


@case(recorders=ANY)
def two_writers_of_one_file(directory: pathlib.Path) -> None:
    """Threads that write to the same name at once leave one whole file."""
    import mindtorch_v2 as torch

    prof = _recorded()
    threads = [threading.Thread(target=lambda: [prof.export_chrome_trace(directory / "t.json") for _ in range(5)])
               for _ in range(4)]
    threads += [threading.Thread(target=lambda: [torch.save(torch.ones(1000), directory / "m.pt") for _ in range(20)])
                for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert json.loads((directory / "t.json").read_text())["traceEvents"]
    assert torch.load(directory / "m.pt").shape == (1000,)
    assert sorted(item.name for item in directory.iterdir()) == ["m.pt", "t.json"]


@case(recorders=ANY)
def results_asked_too_early(directory: pathlib.Path) -> None:
    """Results that are asked for before there are any say what is missing."""
    import mindtorch_v2 as torch

    prof = torch.profiler.profile()
    for ask in (prof.events, prof.key_averages, lambda: prof.export_chrome_trace(directory / "t.json"),
                lambda: prof.trace, prof.step_summary):
        raises((AssertionError, RuntimeError), ask)
    prof.start()
    for ask in (prof.events, prof.key_averages, lambda: prof.export_chrome_trace(directory / "t.json"),
                lambda: prof.save(directory / "t.mtp")):
        raises((AssertionError, RuntimeError), ask)
    prof.stop()
    assert not list(directory.iterdir())
    raises(ValueError, lambda: prof.export_memory_timeline(str(directory / "m.html"), "cpu"), "required")
    raises(ValueError, lambda: prof.key_averages().export_stacks(str(directory / "s"), "nonsense"), "metric should be")


@case(recorders=ANY)
def metadata_of_any_kind(directory: pathlib.Path) -> None:
    """Whatever metadata is given, the file is valid JSON or the error names the key."""
    import mindtorch_v2 as torch

    prof = torch.profiler.profile()
    prof.start()
    torch.ones(2)
    for key, value in (("a", '{"x": 1}'), ("traceEvents", "[]"), ("é\n\"", '"\\ud800"'), ("n", "1e999"), ("", "null")):
        prof.add_metadata_json(key, value)
    for value in ("{", "NaN", "", "[1,]", "'x'"):
        try:
            prof.add_metadata_json("bad", value)
        except ValueError as error:
            assert "bad" in str(error)
    prof.add_metadata("text", "\ud800\0\n")
    prof.stop()
    prof.export_chrome_trace(directory / "t.json")
    assert json.loads((directory / "t.json").read_text())["traceEvents"]

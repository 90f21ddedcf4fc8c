"""The first use of an op: an event of its own in recordings, and compiled code that is kept on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.code_cache import MOST_FILES, CodeCache, _Content

SOURCE = Path(torch.__file__).parent.parent
PROGRAM = """
    import json, sys
    import mindtorch_v2 as torch
    with torch.profiler.profile() as prof:
        with torch.profiler.record_function("mine"):
            torch.ones(4).cosh()
    trace = prof.trace
    prof.export_chrome_trace(sys.argv[1])
    again = torch.profiler.load(sys.argv[1])
    print(json.dumps({
        "prepared": [trace.names[n] for n in trace.events["name"][trace.events["kind"] == 13].tolist()],
        "prepared_us": float(trace.duration_ns[trace.events["kind"] == 13].sum()) / 1000,
        "names": [e.name for e in prof.events()], "rows": [r.key for r in prof.key_averages()],
        "tree": [root.name for root in prof.profiler.kineto_results.experimental_event_tree()],
        "self_us": next(r.self_cpu_time_total for r in prof.key_averages() if r.key == "mine"),
        "total_us": next(r.cpu_time_total for r in prof.key_averages() if r.key == "mine"),
        "footer": [line for line in prof.key_averages().table().splitlines() if line.startswith("First use")],
        "mine": next(line for line in prof.key_averages().table().splitlines() if line.strip().startswith("mine")),
        "again": [r.key for r in again.key_averages()],
    }))
    """


def run(path, cache):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM), str(path)], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(SOURCE), "MINDTORCH_CACHE": str(cache)}, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_first_use_is_an_event_of_its_own(tmp_path):
    found = run(tmp_path / "trace.json", 0)
    assert "first use of aten::cosh" in found["prepared"]
    assert found["names"] == ["mine", "aten::ones", "aten::empty", "aten::fill_", "aten::cosh"]
    assert found["rows"] == found["again"] == found["names"]
    assert found["tree"] == ["mine"]
    assert found["self_us"] + found["prepared_us"] <= found["total_us"] + 1
    assert " 100.00% " in found["mine"]  # of all time, in which first use is
    assert len(found["footer"]) == 1
    assert "for preparing" in found["footer"][0]
    cats = {e["name"]: e.get("cat") for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
    assert cats["first use of aten::cosh"] == "first_use"


def test_code_is_kept_between_processes(tmp_path):
    run(tmp_path / "trace.json", tmp_path / "cache")
    kept = {file: file.read_bytes() for file in (tmp_path / "cache").iterdir()}
    assert len(kept) == 2  # ops, and steps within kernels, whose code depends on less
    run(tmp_path / "trace.json", tmp_path / "cache")
    # Nothing was compiled that was not there.
    assert {file: file.read_bytes() for file in (tmp_path / "cache").iterdir()} == kept


def test_common_ops_are_ready_when_their_code_is_on_disk(tmp_path):
    code = ("import mindtorch_v2 as torch; from mindtorch_v2 import nn, optim; "
            "from mindtorch_v2._dispatch.registry import OPS; "
            "print(len(OPS['linear'].forms) + len(OPS['addcdiv'].forms)); "
            "nn.Linear(2, 2)(torch.ones(2)); torch.ones(2).addcdiv_(torch.ones(2), torch.ones(2))")
    environment = {**os.environ, "MINDTORCH_CACHE": str(tmp_path)}
    found = [subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True,
                            check=True).stdout.strip() for _ in range(2)]
    assert found == ["0", "2"]


def entries(directory):
    return {key: value for file in directory.iterdir() for key, value in _Content(file).entries().items()}


class TestCache:
    def test_round_trip(self, tmp_path):
        first, second = CodeCache(tmp_path), CodeCache(tmp_path)
        code = first.compiled("x = 1", "<a>")
        first.write()
        assert second.compiled("x = 1", "<a>") == code
        assert not second._new
        assert second.compiled("x = 1", "<b>").co_filename == "<b>"
        assert second._new

    @pytest.mark.parametrize("damage", [lambda kept: b"", lambda kept: kept[:40], lambda kept: kept[:-1] + b"?",
                                        lambda kept: b"\0" * len(kept)])
    def test_damaged(self, tmp_path, damage):
        cache = CodeCache(tmp_path)
        cache.compiled("x = 1", "<a>")
        cache.write()
        (path,) = tmp_path.iterdir()
        path.write_bytes(damage(path.read_bytes()))
        again = CodeCache(tmp_path)
        exec(again.compiled("x = 1", "<a>"), space := {})
        assert space["x"] == 1
        again.write()
        assert entries(tmp_path)

    def test_a_file_that_the_program_closes(self, tmp_path):
        """Some programs close every file that they did not open; another file may get the number."""
        cache = CodeCache(tmp_path)
        cache.compiled("x = 1", "<a>")
        cache.compiled("x = 2", "<b>")
        cache.write()
        again = CodeCache(tmp_path)
        again.compiled("x = 1", "<a>")
        (content,) = again._kept.values()
        os.close(content._file)
        assert again.compiled("x = 2", "<b>").co_filename == "<b>"
        assert len(again._new) == 1
        content._file = os.open(__file__, os.O_RDONLY)
        assert again.compiled("x = 1", "<a>").co_filename == "<a>"

    def test_what_others_can_write_is_not_read(self, tmp_path):
        cache = CodeCache(tmp_path)
        cache.compiled("x = 1", "<a>")
        cache.write()
        (path,) = tmp_path.iterdir()
        path.chmod(0o666)
        assert not entries(tmp_path)

    def test_versions_have_files_of_their_own_and_the_oldest_go(self, tmp_path):
        cache = CodeCache(tmp_path)
        for number in range(MOST_FILES + 3):
            assert cache.kept(f"version {number}", "text", lambda number=number: (number,)) == (number,)
            cache.write()
        assert len(list(tmp_path.iterdir())) == MOST_FILES
        again = CodeCache(tmp_path)
        assert again.kept(f"version {MOST_FILES + 2}", "text", lambda: (-1,)) == (MOST_FILES + 2,)
        assert again.kept("version 0", "text", lambda: (-1,)) == (-1,)

    def test_nowhere_to_write(self, tmp_path):
        (tmp_path / "file").write_text("")
        for directory in (None, tmp_path / "file" / "below"):
            cache = CodeCache(directory)
            exec(cache.compiled("x = 2", "<a>"), space := {})
            cache.write()
            assert space["x"] == 2

    def test_several_writers(self, tmp_path):
        caches = [CodeCache(tmp_path) for _ in range(8)]

        def use(number):
            caches[number].compiled(f"x = {number}", "<a>")
            caches[number].write()

        threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert entries(tmp_path)  # whole, whoever was last
        assert len(list(tmp_path.iterdir())) == 1


def test_flops_of_an_op_whose_name_was_seen_before():
    """A product with a sparse matrix has parts named like ops that were not used yet."""
    program = """
        import mindtorch_v2 as torch
        torch.eye(2) @ torch.eye(2).to_sparse()
        x = torch.ones(4, 4)
        with torch.profiler.profile(with_flops=True) as prof:
            x + x
        print([row.flops for row in prof.key_averages()])
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(SOURCE)}, timeout=120)
    assert done.stdout == "[16]\n", done.stderr

"""gzip with a limit."""

from __future__ import annotations

import gzip
import pathlib

import pytest

import mtprof

CONTENT = b'{"traceEvents": [%b]}' % b",\n".join(
    b'{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": %d}' % time for time in range(1000))


def test_members_and_padding(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(CONTENT[:500]) + gzip.compress(CONTENT[500:]) + bytes(10))
    assert len(mtprof.load(path).trace) == 1000


def test_a_bomb_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * 80_000_000 + b"]}", 9))
    assert path.stat().st_size < 300_000
    with pytest.raises(ValueError, match=r"bomb\.json\.gz.*unpacks to more than 67108864 bytes from .*MTPROF_UNPACK"):
        mtprof.load(path)
    monkeypatch.setenv("MTPROF_UNPACK_LIMIT_BYTES", "x")
    with pytest.raises(ValueError, match="should be a number of bytes, not 'x'"):
        mtprof.load(path)


@pytest.mark.parametrize("damage", [lambda b: b[:len(b) // 2] + b"??" + b[len(b) // 2 + 2:], lambda b: b + b"rest",
                                    lambda b: b[:-8] + b"????" + b[-4:]])
def test_damage(damage, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(damage(gzip.compress(CONTENT)))
    with pytest.raises(ValueError, match=r"t\.json\.gz.*(gzip stream is damaged or cut off|at byte)"):
        mtprof.load(path)


def test_an_end_that_is_missing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(CONTENT)[:-2000])
    with pytest.warns(RuntimeWarning, match="cut short"):
        assert 0 < len(mtprof.load(path).trace) < 1000

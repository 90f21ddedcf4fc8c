"""`mtprof ranks`, and the page of ranks in a report."""

from __future__ import annotations

import json
import re

import pytest
from job import job

from mtprof.cli.main import main
from mtprof.report.ranks import MOST_CELLS, _joined


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "traces"
    made.mkdir()
    job(made)
    return made


def test_tables(folder, capsys):
    assert main(["ranks", str(folder), "--steps"]) == 0
    text = capsys.readouterr().out
    assert "3 ranks, 48 events; compute of the busiest rank over the mean 1.26" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["2", "4", "64.0", "52.0", "4.0", "8.0", "8.0", "0.0", "32.0", "4", "compute", "16.0", "1.0"] in rows
    assert ["allreduce", "0", "0", "3", "2", "compute", "4.0", "8.0", "2.0"] in rows
    assert ["net.big", "17.3", "28.0", "2", "1.62"] in rows
    assert "if the slowest rank of each step were as fast as the median: 16.0 ms less" in text


def test_json_and_report(folder, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["ranks", str(folder), "--json", "-o", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ranks"][0]["rank"], len(found["steps"]), found["gain_if_slowest_were_median_us"]) == (2, 12, 16_000)
    assert main(["ranks", str(folder), "-o", str(page)]) != 0
    assert "--force" in capsys.readouterr().err
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1].replace("\\u003c", "<"))
    shown = data["ranks"]
    assert shown["headline"].startswith("The others waited 32.0 ms in total for rank 2, which came last to 4 of 4")
    assert shown["map"]["values"]["compute"] == [[9_000_000] * 4, [9_000_000] * 4, [13_000_000] * 4]
    assert shown["map"]["values"]["behind"] == [[0] * 4, [0] * 4, [4_000_000] * 4]
    assert data["title"] == "rank2.mtp"


def test_errors_are_one_line(folder, tmp_path, capsys):
    assert main(["ranks", str(tmp_path / "nowhere")]) != 0
    assert main(["ranks", str(folder), "--run", "other"]) != 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "has no run 'other'; it has: run" in lines[1]


def test_a_map_of_many_ranks_is_bounded():
    for rows, columns in ((1, 10**6), (10**4, 10), (1000, 1000), (3, 4)):
        by_rank, by_step = _joined(rows, columns)
        assert -(-rows // by_rank) * -(-columns // by_step) * 7 <= MOST_CELLS
    assert _joined(100, 100) == (1, 1)

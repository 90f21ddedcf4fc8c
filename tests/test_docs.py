"""Every Python block of README, CONTRIBUTING and docs/ runs as pasted, and generated pages are current."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked import Forks

from mtprof.schema_page import page

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)\)")


def blocks(language: str) -> dict[str, str]:
    """The blocks of a language by page and line."""
    return {f"{path.name}:{text.count(chr(10), 0, found.start()) + 2}": textwrap.dedent(found[3])
            for path in PAGES for text in [path.read_text(encoding="utf-8")] for found in BLOCK.finditer(text)
            if found[2] == language}


PYTHON = blocks("python")


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    folders = [ROOT / "src", ROOT / "tests/mindtorch_v2/oracle"]
    made = Forks({**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))})
    yield made
    made.close()


@pytest.mark.parametrize("place", PYTHON)
def test_blocks_run_as_pasted(forks: Forks, place: str, tmp_path: Path) -> None:
    program = PYTHON[place]
    if "from harness import" in program:
        pytest.importorskip("torch", reason="the block compares with PyTorch")
    done = forks.run(program, 300, tmp_path)
    assert done.returncode == 0, f"{place}\n{program}\n{done.stderr}"


def test_there_are_blocks() -> None:
    assert len(PYTHON) >= 9
    assert blocks("py") == {}, "such a block would not be run"


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in PAGES:
        wanted = set(re.findall(r"(?:`|^)make ([a-z-]+)\b", path.read_text(encoding="utf-8"), re.MULTILINE))
        assert wanted <= targets, path


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_the_page_of_the_schema_is_current() -> None:
    assert (ROOT / "docs/schema.md").read_text(encoding="utf-8") == page(), "run `make docs`"

"""The trace library stands alone, and data flows one way through it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mtprof

ROOT = Path(mtprof.__file__).parent

# Folder -> folders and files below the package that it must not import.
FORBIDDEN = {
    "schema.py": ["trace", "tables", "store", "views", "export"],
    "tables": ["store.kineto", "store.kineto_columns", "views", "export"],
    "store": ["views", "export"],
}


def imported(path: Path) -> set[str]:
    """What a file imports, as dotted names; those of the package without its name."""
    here = path.relative_to(ROOT).with_suffix("").parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = list(here[: len(here) - node.level]) if node.level else []
            module = ".".join([*base, *((node.module or "").split("."))]).strip(".")
            found |= {f"{module}.{alias.name}".strip(".") for alias in node.names}
    return found


@pytest.mark.parametrize("place", FORBIDDEN)
def test_imports(place):
    target = ROOT / place
    wrong = [f"{path.relative_to(ROOT)} imports {name}"
             for path in ([target] if target.is_file() else sorted(target.rglob("*.py"))) for name in imported(path)
             if any(name == prefix or name.startswith(prefix + ".") for prefix in FORBIDDEN[place])]
    assert wrong == []


def test_no_file_imports_the_runtime():
    for path in ROOT.rglob("*.py"):
        assert not any(name.startswith(("mindtorch_v2", "torch.")) for name in imported(path)), path


def test_all_of_it_is_imported_without_the_runtime():
    names = [".".join(("mtprof", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
             for path in sorted(ROOT.rglob("*.py")) if path.name != "__main__.py"]
    program = f"import sys; sys.path.insert(0, {str(ROOT.parent)!r}); import importlib\n" \
              f"for name in {names!r}: importlib.import_module(name)\n" \
              "print(sorted(name for name in sys.modules if name.partition('.')[0] == 'mindtorch_v2'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""Data flows one way: a file imports only what its layer may see."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import mindtorch_v2

ROOT = Path(mindtorch_v2.__file__).parent

# Folder (or file) -> what it must not import, as dotted names below the package.
FORBIDDEN = {
    "profiler/recorder": ["profiler.session", "_ops", "optim"],
    "_dispatch": ["_ops", "nn", "optim", "profiler"],
    "_autograd": ["_ops", "nn", "optim", "profiler"],
    "_backends": ["_tensor", "_ops", "_autograd", "nn", "optim", "profiler"],
    "_ops": ["nn", "optim", "profiler"],
    "_shape.py": [""],
    "_dtype.py": ["_tensor", "_dispatch"],
    "_tensor.py": ["_ops", "_autograd", "profiler"],
}


@cache
def import_statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Those of a file, in functions too. An import is a statement: no expression needs to be looked into."""
    found: list[ast.Import | ast.ImportFrom] = []
    left: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while left:
        node = left.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append(node)
        elif not isinstance(node, ast.expr):
            left.extend(ast.iter_child_nodes(node))
    return found


def outside_the_alias() -> set[Path]:
    """All files but those that stand for the package's face where `torch` is this package."""
    return set(ROOT.rglob("*.py")) - set((ROOT / "_as_torch").rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Modules of the package that a file imports, as dotted names below it."""
    here = path.relative_to(ROOT).with_suffix("").parts
    found = set()
    for node in import_statements(path):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = list(here[: len(here) - node.level])
                if path.name == "__init__.py":
                    base = list(here[:-1][: len(here) - node.level])
                module = [*base, *(node.module.split(".") if node.module else [])]
                found |= {".".join([*module, alias.name]) for alias in node.names}
            elif node.module and node.module.startswith("mindtorch_v2"):
                found |= {f"{node.module[len('mindtorch_v2.'):]}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("place", FORBIDDEN)
def test_imports(place):
    target = ROOT / place
    files = [target] if target.is_file() else sorted(target.rglob("*.py"))
    assert files
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files for name in imported(path)
        for prefix in FORBIDDEN[place]
        if prefix == "" or name == prefix or name.startswith(prefix + ".")
    ]
    assert wrong == []


def test_no_file_imports_the_package_face():
    for path in outside_the_alias():
        for node in import_statements(path):
            if isinstance(node, ast.Import):
                assert all(a.name != "mindtorch_v2" for a in node.names) or path.name in ("__main__.py",), path


OPTIONAL = {("quasirandom.py", "scipy")}  # imported when it is used, with an error that says what to install


def test_nobody_depends_on_other_runtimes():
    for path in outside_the_alias():
        for node in import_statements(path):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else (
                [node.module or ""] if not node.level else [])
            for name in names:
                first = name.split(".")[0]
                assert first not in ("torch", "mind" + "spore", "scipy") or (path.name, first) in OPTIONAL, (
                    f"{path} imports {name}")

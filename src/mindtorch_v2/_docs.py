"""Writes the generated pages: `python -m mindtorch_v2._docs docs` makes docs/ops.md, docs/kernels.md and coverage."""

from __future__ import annotations

import sys
from pathlib import Path

from . import _coverage, _ops
from ._backends.cpu import providers
from ._dispatch.namespace import load_late
from ._dispatch.registry import CHOOSERS, OPS, Op

HEADER = """# Supported ops

Generated from the op table by `make docs`; do not edit. {count} overloads of {names} ops.

- **where**: `f` is a function `torch.name`, `m` a method `Tensor.name`, `n` internal or only in `torch.nn.functional`.
- **grad**: `yes` has a derivative formula, `through` is made of other ops that have formulas, `-` has none.
- **in-place**: a form `name_` exists. **FLOPs**: a formula exists for the profiler.

| op | where | grad | in-place | FLOPs | signature |
|---|---|---|---|---|---|
"""


def row(op: Op) -> str:
    """One line of the table."""
    where = CHOOSERS[op.name][1] if op.name in CHOOSERS else op.where
    grad = "through" if op.composite is not None else ("yes" if op.grad else "-")
    inplace = "yes" if op.inplace else ""
    flops = "yes" if op.flops is not None else ""
    signature = op.schema_text.replace("|", "\\|")
    return f"| `{op.key}` | {where} | {grad} | {inplace} | {flops} | `{signature}` |"


def ops_page() -> str:
    """The whole page."""
    load_late()
    rows = [row(op) for _, op in sorted(OPS.items())]
    names = len({op.name for op in OPS.values()})
    return HEADER.format(count=len(rows), names=names) + "\n".join(rows) + "\n"


def main(folder: Path) -> None:
    """Write all generated pages into a folder."""
    if not _ops.__all__:
        raise RuntimeError("the op table is empty")
    target = folder / "ops.md"
    target.write_text(ops_page(), encoding="utf-8")
    print(f"wrote {target}")
    kernels = folder / "kernels.md"
    kernels.write_text(providers.page(), encoding="utf-8")
    print(f"wrote {kernels}")
    if (folder / "pytorch_names.json").exists():
        print(f"wrote {_coverage.write(folder)}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))

"""Run the cases of all libraries and compare with PyTorch's figures: `python -m libraries.check [--quick]`.

`figures/` holds what PyTorch gave, made by `python -m libraries NAME --out figures/NAME.json` in the oracle's
environment. Each library runs in a process of its own. `--page` writes what was found as a page of the documents.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FIGURES = HERE / "figures"
# Module of cases -> distribution.
LIBRARIES = {
    "transformers": "transformers", "peft": "peft", "accelerate": "accelerate",
    "sentence_transformers": "sentence-transformers", "diffusers": "diffusers", "timm": "timm",
    "torchvision": "torchvision", "lightning": "lightning", "torch_geometric": "torch-geometric", "fastai": "fastai",
    "torchmetrics": "torchmetrics", "keras": "keras", "pyro": "pyro-ppl", "gpytorch": "gpytorch", "kornia": "kornia",
    "captum": "captum", "torchdiffeq": "torchdiffeq", "zuko": "zuko",
}
TOLERANCE = 1e-4
NOT_COMPARED = "it ran; there are no figures of PyTorch to compare with"


@dataclass
class Outcome:
    """How a case ended: the largest difference to PyTorch's figures, or why there is none."""

    library: str
    case: str
    difference: float | None
    note: str = ""

    @property
    def is_compared(self) -> bool:
        """Whether PyTorch gave figures for it. Beside a CPU build, torchvision's wheel for CUDA cannot load its
        compiled ops, so that its detection cannot run there.
        """
        return self.note != NOT_COMPARED

    @property
    def is_good(self) -> bool:
        """Whether it ran and gave PyTorch's figures."""
        return self.difference is not None and self.difference <= TOLERANCE


def difference(mine: dict[str, list[float]], theirs: dict[str, list[float]]) -> float:
    """The largest difference, relative to 1 or the figure itself; infinite if the figures are other ones."""
    if mine.keys() != theirs.keys() or any(len(mine[key]) != len(theirs[key]) for key in theirs):
        return math.inf
    found = 0.0
    for key, values in theirs.items():
        for one, other in zip(mine[key], values, strict=True):
            if math.isnan(one) != math.isnan(other):
                return math.inf
            if not math.isnan(other) and one != other:
                found = max(found, abs(one - other) / max(1.0, abs(other)))
    return found


def run(library: str, quick: bool) -> dict[str, Any]:
    """What this runtime gives for a library's cases."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.json")
        command = [sys.executable, "-m", "mindtorch_v2", "-m", "libraries", library, "--out", str(out)]
        done = subprocess.run([*command, *(["--quick"] if quick else [])], cwd=folder, capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (
                                  str(HERE.parent), os.environ.get("PYTHONPATH", ""))))})
        if not out.exists():
            return {"_error": done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]}
        return json.loads(out.read_text())


def compared(library: str, quick: bool) -> list[Outcome]:
    """The cases of a library beside PyTorch's figures."""
    wanted = json.loads((FIGURES / f"{library}.json").read_text())
    found = run(library, quick)
    if "_error" in found:
        return [Outcome(library, "(import)", None, found["_error"][0])]
    outcomes = []
    for name, entry in found.items():
        if name.startswith("_"):
            continue
        if "error" in entry:
            outcomes.append(Outcome(library, name, None, entry["error"][:200]))
        elif "figures" not in wanted.get(name, {}):
            outcomes.append(Outcome(library, name, None, NOT_COMPARED))
        else:
            outcomes.append(Outcome(library, name, difference(entry["figures"], wanted[name]["figures"])))
    return outcomes


def page(outcomes: list[Outcome]) -> str:
    """The page of the documents."""
    lines = ["# Libraries on top of PyTorch", "",
             "Written by `make libraries`. Each case is a small model with random weights. It runs on this runtime,",
             "with `import torch` meaning this package, and its figures are compared with PyTorch 2.13's for the",
             "same program. A case trains two steps, saves, loads and computes again, unless its name says otherwise.",
             "A difference is relative to the figure, or absolute for figures below 1; the table shows the largest.",
             "Some models with batch normalisation train in float64, because over two small pictures it amplifies",
             "rounding from step to step. Their output in float32 is compared too.", "",
             "| library | version | cases | equal | largest difference | cases |", "|---|---|---|---|---|---|"]
    for library, distribution in LIBRARIES.items():
        own = [one for one in outcomes if one.library == library]
        if not own:
            continue
        good = [one for one in own if one.is_good]
        largest = max((one.difference for one in own if one.difference is not None), default=math.nan)
        lines.append(f"| {distribution} | {metadata.version(distribution)} | {len(own)} | {len(good)} | "
                     f"{largest:.1e} | {', '.join(one.case for one in own)} |")
    bad = [one for one in outcomes if not one.is_good]
    lines += ["", "Not compared, or not equal:" if bad else "All cases agree."]
    lines += ["", *(f"- {one.library} {one.case}: {one.note or f'differs by {one.difference:.1e}'}" for one in bad)]
    return "\n".join(lines) + USE


USE = """

To use a library in an environment without PyTorch, run `pip install . ./as-torch` in a checkout, then `pip install`
the library. `as-torch` (`mindtorch-v2-as-torch`) gives this package the name `torch` there, also for pip, which then
installs libraries that require PyTorch. It cannot be installed beside PyTorch. Without `as-torch`, run
`pip install --no-deps` for the library, then `python -m mindtorch_v2 script.py`.

`torch.compile` runs functions as they are. Quantized, nested and block-sparse tensors, `torch.export` and ONNX raise
an error that says they are not supported.
"""


def main() -> int:
    """Compare, print, and say by the exit code whether all agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", help="some of them (default: all)")
    parser.add_argument("--quick", action="store_true", help="the subset for continuous integration")
    parser.add_argument("--page", help="write the page to this file")
    arguments = parser.parse_args()
    outcomes: list[Outcome] = []
    for library in arguments.libraries or LIBRARIES:
        for one in compared(library, arguments.quick):
            outcomes.append(one)
            told = one.note if one.difference is None else f"{one.difference:.1e}"
            mark = "ok  " if one.is_good else "FAIL" if one.is_compared else "ran "
            print(f"{mark} {one.library} {one.case}: {told}", flush=True)
    failed = sum(not one.is_good and one.is_compared for one in outcomes)
    if arguments.page:
        Path(arguments.page).write_text(page(outcomes))
    good = sum(one.is_good for one in outcomes)
    print(f"{good} passed, {failed} failed, {len(outcomes) - good - failed} skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

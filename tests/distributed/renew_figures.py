"""Run the programs on PyTorch with its gloo and keep what they say: `python tests/distributed/renew_figures.py`.

The tests compare with these files. PyTorch hangs now and then when its groups end, so the tests do not start it. Each
program gets processes of its own here; one that hangs is an error, and is to be started again by hand.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from ranks_helper import FIGURES, SEVERAL, TOGETHER, free_ports, on_pytorch

if __name__ == "__main__":
    for ranks in (2, 4):
        for program in TOGETHER:
            if sys.argv[1:] and program.stem not in sys.argv[1:]:
                continue
            with tempfile.TemporaryDirectory() as folder:
                on_pytorch(ranks, str(SEVERAL), str(program), results=Path(folder), PORTS=free_ports(1)[0])
                target = FIGURES / str(ranks) / program.stem
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(Path(folder) / program.stem, target)
            print(target)

"""Started processes that know what `torch` means: importing this enables the alias.

A process of the `spawn` or `forkserver` method imports the main program anew. Under the alias, that program's
`import torch` has to mean this package there too, so the alias is enabled before anything of the program runs: by the
command line that `multiprocessing` starts a process with, and by the modules that its fork server loads first.
"""

from __future__ import annotations

from multiprocessing import forkserver, spawn
from pathlib import Path
from typing import Any

from . import torch_alias

torch_alias.enable(force=True)

_START = "-c"
_original = spawn.get_command_line
# The directory of this package may be on the path by the parent's doing only.
_PREFIX = (f"import sys; sys.path.append({str(Path(__file__).parent.parent)!r}); import {__name__}; ")


def _command_line(**arguments: Any) -> list[str]:
    """What `multiprocessing` would start, with the alias in front of the program's text."""
    line = list(_original(**arguments))
    if _START in line:
        at = line.index(_START) + 1
        line[at] = _PREFIX + line[at]
    return line


spawn.get_command_line = _command_line
forkserver.set_forkserver_preload([__name__, "__main__"])

"""Run a PyTorch program on this runtime: `python -m mindtorch_v2 script.py args` or `-m module args`."""

from __future__ import annotations

import os
import runpy
import sys

from . import torch_alias

USAGE = """usage: python -m mindtorch_v2 [--which] script.py [args...]
       python -m mindtorch_v2 [--which] -m module [args...]

Runs a program with `import torch` meaning mindtorch_v2.

  --which  print what `torch` means (to stdout without a program, to stderr with one)
  --help   print this"""


def main(arguments: list[str]) -> int:
    """Run the program; its exceptions and its SystemExit pass through, so that Python reports them as usual."""
    which = False
    while arguments and arguments[0] in ("--which", "--help", "-h"):
        if arguments[0] != "--which":
            print(USAGE)
            return 0
        which = True
        arguments = arguments[1:]
    torch_alias.enable(force=True)
    if which:
        print(torch_alias.describe(), file=sys.stderr if arguments else sys.stdout)
        if not arguments:
            return 0
    if not arguments:
        print(USAGE, file=sys.stderr)
        return 2
    if arguments[0] == "-m":
        if len(arguments) < 2:
            print("Argument expected for the -m option", file=sys.stderr)
            return 2
        sys.argv = arguments[1:]
        # `python -m` has put the current directory first already.
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    script = arguments[0]
    if not os.path.exists(script):
        print(f"{os.path.basename(sys.executable)}: can't open file '{os.path.abspath(script)}': "
              "[Errno 2] No such file or directory", file=sys.stderr)
        return 2
    sys.argv = arguments
    if not os.path.isdir(script):
        # `python script.py` looks for modules beside the script, not in the current directory.
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    runpy.run_path(script, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

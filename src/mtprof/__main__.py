"""`python -m mtprof` is the command `mtprof`."""

import sys

from mtprof.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

"""The command `mtprof`. One file a command; `commands.py` lists them, and `main.py` runs the one that was asked for."""

"""The command `mtprof`: one file per command. `commands.py` lists them, `main.py` runs the chosen one."""

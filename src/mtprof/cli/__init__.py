"""The command `mtprof`: one file per command. `commands.py` lists them, `main.py` runs the chosen one.

Commands import what they need inside functions, so that `mtprof --help` and errors come at once.
"""

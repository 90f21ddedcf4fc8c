"""The code that runs in the process of a profiled program. `mtprof run` starts `child.py` with Python.

No module here imports a runtime by name: the settings name the runtime to profile, and the child imports it.
"""

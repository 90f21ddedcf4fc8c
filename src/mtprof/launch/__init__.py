"""What runs in the process of a profiled program. `child.py` is started by `mtprof run` with Python itself.

Nothing here imports a runtime by name: the one to profile is among the settings, and is imported in the child.
"""

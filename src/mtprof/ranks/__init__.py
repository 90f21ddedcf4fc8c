"""The recordings of a job's ranks, one file each, read as one.

files.py     the files in a folder, and a function run on each: by this process, by a pool, or on Dask
digest.py    what is kept of a file: a row per step, per collective and per module
clocks.py    converts the ranks' times to one clock
meetings.py  collectives matched between ranks: who came last, who waited, and why
ranks.py     `Ranks`, the answers
"""

from __future__ import annotations

from .ranks import ModuleRow, RankRow, Ranks, StepRow, WaitRow

__all__ = ["ModuleRow", "RankRow", "Ranks", "StepRow", "WaitRow"]

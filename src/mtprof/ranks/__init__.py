"""The recordings of a job's ranks, a file each, read as one.

    files.py     which files a folder has, and a function run on each: by this process, by a pool, on Dask
    digest.py    what is kept of a file: a row a step, a row a collective, a row a module
    clocks.py    the ranks' clocks brought to one
    meetings.py  collectives matched between ranks: who came last, who waited, and why
    ranks.py     `Ranks`, the answers
"""

from __future__ import annotations

from .ranks import ModuleRow, RankRow, Ranks, StepRow, WaitRow

__all__ = ["ModuleRow", "RankRow", "Ranks", "StepRow", "WaitRow"]

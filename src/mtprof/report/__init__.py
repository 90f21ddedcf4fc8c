"""The report: one HTML file that says where the time goes and what to change.

It opens from disk and needs no network.

>>> import mtprof
>>> from mtprof.report import write_report
>>> write_report([mtprof.load("run.mtp")], "report.html")  # doctest: +SKIP
"""

from __future__ import annotations

from .page import page_of, write_report

__all__ = ["page_of", "write_report"]

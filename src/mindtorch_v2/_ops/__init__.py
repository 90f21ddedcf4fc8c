"""The op table: one declaration per op, by family. Importing this package fills the registry."""

from __future__ import annotations

from . import arithmetic, convert, create, gather, indexing, reduce, scan, scatter, search, sort, statistics, view

__all__ = [
    "arithmetic",
    "convert",
    "create",
    "gather",
    "indexing",
    "reduce",
    "scan",
    "scatter",
    "search",
    "sort",
    "statistics",
    "view",
]

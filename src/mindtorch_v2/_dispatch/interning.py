"""Numbers for values that are stored once: an entry's index in a list that only grows."""

from __future__ import annotations

from typing import Any


def place_of_new(table: list[Any], entry: Any) -> int:
    """Append an entry and return its index.

    Other threads, signal handlers and finalizers append too, between any two instructions, so the length of the list is
    not the index. There is no lock: code that is interrupted while it holds one would stop all others.
    """
    table.append(entry)
    place = len(table) - 1
    while table[place] is not entry:
        place -= 1
    return place

"""Numbers for what is stored once: an entry's place in a list that only grows."""

from __future__ import annotations

from typing import Any


def place_of_new(table: list[Any], entry: Any) -> int:
    """Append an entry and say where it is.

    Other threads, signal handlers and finalizers append too, between any two instructions: the length of the list does
    not tell. No lock: whoever is interrupted while holding it would stop everybody.
    """
    table.append(entry)
    place = len(table) - 1
    while table[place] is not entry:
        place -= 1
    return place

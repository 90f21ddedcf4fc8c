"""Numbers in readable form: three significant digits and a unit."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def three_digits(value: float) -> str:
    """
    >>> three_digits(1.2345), three_digits(123.45), three_digits(0.01234), three_digits(61.25), three_digits(0)
    ('1.23', '123', '0.0123', '61.3', '0')
    """
    if not value:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    # Half a digit rounds up, as in the page; Python's own formatting would write 61.25 as 61.2.
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"


def time_text(time_ns: float) -> str:
    """
    >>> time_text(1_234_567), time_text(950), time_text(0)
    ('1.23 ms', '950 ns', '0 ns')
    """
    for size, unit in _TIMES:
        # Otherwise 999.6 µs would be written as 1000 µs.
        if abs(time_ns) >= size * 0.9995:
            return f"{three_digits(time_ns / size)} {unit}"
    return f"{three_digits(time_ns)} ns"


def size_text(size_bytes: float) -> str:
    """
    >>> size_text(3 << 20), size_text(17)
    ('3.00 MiB', '17 B')
    """
    for size, unit in _SIZES:
        if abs(size_bytes) >= size:
            return f"{three_digits(size_bytes / size)} {unit}"
    return f"{size_bytes:.0f} B"


def share_text(share: float) -> str:
    """
    >>> share_text(0.1234), share_text(0.004)
    ('12.3%', '0.4%')
    """
    return f"{100 * share:.1f}%"


def percent_text(share: float) -> str:
    """Without decimals, but 100% only for all.

    >>> percent_text(0.123), percent_text(0.997), percent_text(1)
    ('12%', '99.7%', '100%')
    """
    return f"{share:.0%}" if share >= 1 or share < 0.995 else f"{min(share, 0.999):.1%}"


def counted(number: int, word: str) -> str:
    """
    >>> counted(1, "thread"), counted(2500, "step")
    ('1 thread', '2,500 steps')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"

"""`symbolize_addresses`: the names of machine code in this process, by its addresses."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterable, Sequence

Place = tuple[str, int, str]  # file, line or distance from the start of the file, function
UNKNOWN: Place = ("??", 0, "??")
NO_CODE: Place = ("??", 0, "<unwind unsupported>")


class _Info(ctypes.Structure):
    """`Dl_info` of the dynamic linker."""

    _fields_ = (("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p),
                ("address", ctypes.c_void_p))


def symbolize_addresses(addresses: Iterable[int], mode: str) -> list[Place]:
    """`(file, line, function)` of each address.

    `dladdr` asks the dynamic linker, which knows no lines: their place has the distance from the start of the file in
    memory. `fast` does the same; PyTorch's reads debugging information if a library has some. `addr2line` runs the
    program of that name.
    """
    if mode not in ("fast", "dladdr", "addr2line"):
        raise RuntimeError(f"unexpected mode {mode}")
    found = [_by_linker(int(address)) for address in addresses]
    return _by_program(found) if mode == "addr2line" else found


def _by_linker(address: int) -> Place:
    linker = getattr(ctypes.CDLL(None), "dladdr", None)
    if linker is None:
        raise NotImplementedError("symbolize_addresses: this system's dynamic linker has no dladdr")
    info = _Info()
    if not linker(ctypes.c_void_p(address), ctypes.byref(info)) or info.file is None:
        return UNKNOWN
    # An address is that of the instruction after a call, as in a stack; the call itself is just before.
    distance = address - (info.base or 0) - 1
    return info.file.decode(), distance, "??" if info.symbol is None else info.symbol.decode()


def _by_program(found: Sequence[Place]) -> list[Place]:
    """Places with functions, files and lines by `addr2line`, which runs once per file."""
    program = shutil.which("addr2line")
    if program is None:
        raise RuntimeError("symbolize_addresses: the program addr2line is not installed")
    result = [NO_CODE] * len(found)
    for file in {place[0] for place in found} - {UNKNOWN[0]}:
        numbers = [number for number, place in enumerate(found) if place[0] == file]
        asked = "\n".join(hex(found[number][1]) for number in numbers)
        said = subprocess.run([program, "-C", "-f", "-e", file], input=asked, capture_output=True, text=True,
                              check=False).stdout.splitlines()
        for number, (function, place) in zip(numbers, zip(said[::2], said[1::2])):
            where, _, line = place.partition(" ")[0].rpartition(":")
            result[number] = (where, int(line) if line.isdigit() else 0, function)
    return result

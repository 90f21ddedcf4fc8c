"""Memory over time by category, in the two forms that PyTorch exports: totals at each instant, and single changes."""

from __future__ import annotations

import numpy as np

from .memory_categories import CATEGORIES, Category
from .memory_profile import BEFORE, Action, Changes, MemoryProfile

# PyTorch's order of categories in files; None means no category.
ORDER: tuple[Category | None, ...] = (
    Category.PARAMETER, Category.OPTIMIZER_STATE, Category.INPUT, Category.TEMPORARY, Category.ACTIVATION,
    Category.GRADIENT, Category.AUTOGRAD_DETAIL, None)
POSITION = np.array([ORDER.index(category) for category in CATEGORIES], np.int64)  # by the value in columns


def single_changes(profile: MemoryProfile, device: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Time in nanoseconds, action, bytes and position of the category in `ORDER`, for each change on a device.

    Releases have negative bytes. A new version gives two changes at the same time: the end of the old one and its
    beginning.
    """
    changes = _on(profile, device)
    sign = np.where(changes.action >= Action.INCREMENT_VERSION.value, -1, 1)
    versions = changes.action == Action.INCREMENT_VERSION.value
    order = np.argsort(np.concatenate((np.arange(len(versions)), np.flatnonzero(versions))), kind="stable")
    size = np.concatenate((changes.size_bytes * sign, changes.size_bytes[versions]))
    category = np.concatenate((changes.category, changes.next_category[versions]))
    both = [np.concatenate((column, column[versions])) for column in (changes.time_ns, changes.action)]
    return both[0][order], both[1][order], size[order], POSITION[category[order]]


def totals(profile: MemoryProfile, device: str) -> tuple[np.ndarray, np.ndarray]:
    """Times in microseconds, and for each the bytes per category of `ORDER` from then on.

    Memory from before the recording has the first of the times.
    """
    time_ns, _, size, category = single_changes(profile, device)
    if not len(time_ns):
        return np.zeros(0, np.int64), np.zeros((0, len(ORDER)), np.int64)
    time = np.where(time_ns == BEFORE, BEFORE, time_ns // 1000)
    fresh = np.concatenate(([True], np.diff(time) != 0))
    times = time[fresh]
    bytes_by_category = np.zeros((len(times), len(ORDER)), np.int64)
    np.add.at(bytes_by_category, (np.cumsum(fresh) - 1, category), size)
    if times[0] == BEFORE and len(times) > 1:
        times[0] = times[1]
    return times, np.cumsum(bytes_by_category, axis=0)


def _on(profile: MemoryProfile, device: str) -> Changes:
    here = np.array([name == device for name in profile.device_names], bool)[profile.changes.block]
    return Changes(**{name: column[here] for name, column in vars(profile.changes).items()})

"""`KinetoStepTracker`: the step of a program, as several parts of it count it."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import ClassVar


def counts_for_daemon() -> bool:
    """Whether profilers and optimizers count their steps, which only a tracing daemon needs."""
    return bool(os.environ.get("KINETO_USE_DAEMON"))


class KinetoStepTracker:
    """Counts steps for several requesters; the overall step is the largest count."""

    _current_step = 0
    _step_dict: ClassVar[dict[str, int]] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Begin counting for a requester at the current step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Stop counting for a requester; returns whether it was known."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count one step for a requester and return the overall step."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The overall step."""
        return cls._current_step

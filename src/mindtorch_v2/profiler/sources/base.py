"""What a source is: one kind of thing that recordings note, for all recorders that are active at the same time.

A source writes into a log of its own from `start` to `stop`. A recorder remembers where that log stands when it begins
(`mark`) and takes what came after that when it ends (`take`), so that a profiler inside a profiler sees its part and
the outer one everything.

Anything can fail at any line, and Ctrl-C can come at any line. So `stop` may be called in whatever state a `start` or
another `stop` was left, and again; it puts back what the source has changed and nothing else. `Running` sees to it that
it is called.

A source that waits for others belongs to one recorder, and does its work outside the lock of all recorders: it starts
before the recording and is taken from after it.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from ..options import Options

if TYPE_CHECKING:
    from ..recorder.running import Running
    from .modules import ModuleLabels


@dataclass
class Stretch:
    """The end of a part of a recording, as sources see it when they are asked for what they noted."""

    start_ns: int  # when the recording began
    end_ns: int
    last: bool  # whether nobody else records: what is taken need not be copied
    labels: ModuleLabels  # the recording's own, over all its parts
    taken: dict[str, Any] = field(default_factory=dict)  # what sources before this one gave, by their names


class Source:
    """One kind of thing that is noted. What is wanted of it is said in its class."""

    name: ClassVar[str]
    tables: ClassVar[tuple[str, ...]]  # of the trace, which it fills
    cost: ClassVar[str]  # to the program that is recorded

    def __init__(self, running: Running | None) -> None:
        # Weakly: with the last recorder all logs are freed at once, however large they are.
        self._all = (lambda: None) if running is None else weakref.ref(running)
        self.on = False  # from before `start` until after `stop`

    @property
    def all(self) -> Running | None:
        """All sources, or None if a thread is still in here when the last recording is over."""
        return self._all()

    def wanted(self, options: Options) -> bool:
        """Whether a recording with these options needs this source."""
        raise NotImplementedError(type(self).__name__)

    def start(self) -> None:
        """Begin to note."""
        raise NotImplementedError(type(self).__name__)

    def adapt(self, wishes: Sequence[Options]) -> None:
        """Recorders came or went; these are the wishes of those that are there."""

    def stop(self) -> None:
        """Note nothing more, and put back what was changed."""
        raise NotImplementedError(type(self).__name__)

    def mark(self) -> Any:
        """Where the log stands."""
        raise NotImplementedError(type(self).__name__)

    def take(self, mark: Any, stretch: Stretch) -> Any:
        """What was noted since."""
        raise NotImplementedError(type(self).__name__)

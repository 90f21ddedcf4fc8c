"""Defines a source: it records one kind of thing for all recorders that are active at the same time.

A source writes into a log of its own from `start` to `stop`. A recorder remembers the position in that log when it
begins (`mark`) and takes everything after it when it ends (`take`). So a profiler inside a profiler sees its part and
the outer one everything.

Any line can fail, and Ctrl-C can come at any line. So `stop` may be called after a `start` or another `stop` that broke
off anywhere, and again. It restores what the source has changed and nothing else. `Running` makes sure that it is
called.

A source that waits for others belongs to one recorder and works outside the lock of all recorders: it starts before the
recording and is read after it.
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
    """The end of a part of a recording, for sources that are asked for their results."""

    start_ns: int  # when the recording began
    end_ns: int
    last: bool  # whether no other recorder is active: then results need not be copied
    labels: ModuleLabels  # the recording's own, over all its parts
    taken: dict[str, Any] = field(default_factory=dict)  # results of the sources before this one, by name


class Source:
    """Records one kind of thing. The class variables say what it fills and what it costs."""

    name: ClassVar[str]
    tables: ClassVar[tuple[str, ...]]  # tables of the trace that it fills
    cost: ClassVar[str]  # cost for the recorded program

    def __init__(self, running: Running | None) -> None:
        # Weak references: with the last recorder all logs are freed at once, however large they are.
        self._all = (lambda: None) if running is None else weakref.ref(running)
        self.on = False  # from before `start` until after `stop`

    @property
    def all(self) -> Running | None:
        """All sources, or None if a thread is still in here when the last recording has ended."""
        return self._all()

    def wanted(self, options: Options) -> bool:
        """Whether a recording with these options needs this source."""
        raise NotImplementedError(type(self).__name__)

    def start(self) -> None:
        """Begin to record."""
        raise NotImplementedError(type(self).__name__)

    def adapt(self, wishes: Sequence[Options]) -> None:
        """Recorders started or stopped; these are the options of the active ones."""

    def stop(self) -> None:
        """Stop recording, and restore what was changed."""
        raise NotImplementedError(type(self).__name__)

    def mark(self) -> Any:
        """The position in the log."""
        raise NotImplementedError(type(self).__name__)

    def take(self, mark: Any, stretch: Stretch) -> Any:
        """What was recorded since a mark."""
        raise NotImplementedError(type(self).__name__)

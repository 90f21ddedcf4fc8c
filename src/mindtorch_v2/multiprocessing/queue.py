"""`torch.multiprocessing.queue`: Python's queues, which pickle tensors as `reductions` says."""

from __future__ import annotations

from multiprocessing.queues import Queue as Queue
from multiprocessing.queues import SimpleQueue as SimpleQueue
from multiprocessing.reduction import ForkingPickler
from typing import Any

__all__ = ["ConnectionWrapper", "Queue", "SimpleQueue"]


class ConnectionWrapper:
    """A connection whose objects are pickled as those of queues."""

    def __init__(self, conn: Any) -> None:
        self.conn = conn

    def send(self, obj: Any) -> None:
        """Send an object."""
        self.send_bytes(ForkingPickler.dumps(obj))

    def recv(self) -> Any:
        """The next object."""
        return ForkingPickler.loads(self.recv_bytes())

    def __getattr__(self, name: str) -> Any:
        if "conn" in self.__dict__:
            return getattr(self.conn, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'conn'")

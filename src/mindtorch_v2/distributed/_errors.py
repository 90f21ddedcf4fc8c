"""The errors of process groups.

    RuntimeError
      DistError             any error between processes
        DistBackendError    MPI, a rank that is gone, ranks that disagree, a timeout
        DistNetworkError    never raised here; programs catch it
        DistStoreError      never raised here; programs catch it
"""

from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError"]


class DistError(RuntimeError):
    """Processes could not work together."""


class DistBackendError(DistError):
    """A collective or a message failed."""


class DistNetworkError(DistError):
    """Never raised here: MPI owns the network."""


class DistStoreError(DistError):
    """Never raised here: there are no stores."""

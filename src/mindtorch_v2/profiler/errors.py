"""The profiler's own errors."""

from __future__ import annotations


class ProfilerStateError(RuntimeError, AssertionError):
    """The profiler is not in a state to do this.

    Raised if results are requested before anything was recorded. PyTorch fails an assertion there, so code that expects
    an AssertionError still catches this.
    """

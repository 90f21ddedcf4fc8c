"""`torch.testing._internal.hypothesis_utils`: settings of hypothesis, where it is installed."""

from __future__ import annotations

__all__ = ["assert_deadline_disabled"]


def assert_deadline_disabled() -> None:
    """Tests have no time limit for an example: a busy machine is no failure."""
    try:
        import hypothesis
    except ImportError:
        return
    if hypothesis.settings().deadline is not None:
        raise AssertionError("hypothesis has a deadline for examples")

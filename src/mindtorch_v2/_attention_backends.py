"""Which ways to compute attention are allowed: `torch.nn.attention.sdpa_kernel` sets it, the op reads it."""

from __future__ import annotations

import threading

MATH, FLASH = 0, 1
ALL = (3, 1, 2, 0, 4)


class _Allowed(threading.local):
    """Numbers of `SDPBackend`, in order of priority, for each thread."""

    numbers: tuple[int, ...] = ALL


ALLOWED = _Allowed()


class FastPath:
    """Whether layers of attention may be computed as one op at inference."""

    enabled = True

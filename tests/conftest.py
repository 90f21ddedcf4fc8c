"""For all tests: how busy the machine is decides about none of them."""

from __future__ import annotations

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # some parts are tested where it is not installed
    pass
else:
    settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any machine")

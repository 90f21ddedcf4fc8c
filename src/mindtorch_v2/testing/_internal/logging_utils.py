"""`torch.testing._internal.logging_utils`: tests that look at log records."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

from .common_utils import TestCase

__all__ = ["LoggingTestCase", "capture_log", "log_settings", "make_logging_test", "make_settings_test"]


@contextlib.contextmanager
def capture_log(name: str, level: int = logging.DEBUG) -> Iterator[list[logging.LogRecord]]:
    """The records that a logger gets inside."""
    records: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    logger, handler = logging.getLogger(name), Keep(level)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield records
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def log_settings(settings: Any) -> Any:
    """Refused: PyTorch's log settings are its compiler's."""
    raise NotImplementedError(f"log_settings({settings!r}): the loggers of PyTorch's compiler are not in this runtime")


def make_settings_test(settings: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A test with log settings: see `log_settings`."""

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(self: Any) -> None:
            log_settings(settings)

        return run

    return decorate


def make_logging_test(**settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A test that gets the records of some of PyTorch's loggers: see `log_settings`."""
    return make_settings_test(str(settings))


class LoggingTestCase(TestCase):
    """A test that looks at log records."""

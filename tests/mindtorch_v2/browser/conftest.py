"""One Chromium for the tests of each file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chromium_devtools import Chromium, find_chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    executable = find_chromium()
    if executable is None:
        pytest.skip("Chromium is not installed")
    with Chromium(executable, tmp_path_factory.mktemp("chromium"), timeout=90) as running:
        yield running

"""Chromium without a window, driven over its DevTools protocol through a pair of pipes: no port, no extra package."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # a page that asks another machine must fail here
    "--window-size=1400,900", "--remote-debugging-pipe",
)
# The browser reads commands from descriptor 3 and answers on 4; ours have other numbers, and a shell renumbers them.
RENUMBER = 'commands=$1 answers=$2; shift 2; exec "$@" 3<&"$commands" 4>&"$answers"'
ABOVE_THE_RENUMBERED = 10
POLL_SECONDS = 0.1


def find_chromium() -> str | None:
    """The browser's executable, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def _pipe() -> tuple[int, int]:
    """The two ends of a new pipe, with numbers out of the way of those that the browser expects."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, ABOVE_THE_RENUMBERED) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


class Chromium:
    """One running browser with one page; `with Chromium(...) as browser` ends it."""

    def __init__(self, executable: str, directory: Path, timeout: float = 30.0) -> None:
        self.timeout = timeout
        self.exceptions: list[str] = []
        self._last = 0
        self._received = b""
        commands, self._write = _pipe()
        self._read, answers = _pipe()
        with open(directory / "chromium.log", "wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", RENUMBER, "bash", str(commands), str(answers), executable, *FLAGS,
                 f"--user-data-dir={directory / 'profile'}", "about:blank"],
                pass_fds=(commands, answers), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        os.close(commands)
        os.close(answers)
        self._session: str | None = None
        try:
            pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
            attached = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)
            self._session = attached["sessionId"]
            self.call("Runtime.enable")
            self.call("Page.enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser, by request if it listens, else by force; it and what it started are one process group."""
        with contextlib.suppress(OSError):  # it may have ended already, which is what is wanted
            self._session = None
            self._send("Browser.close", {})
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def _send(self, method: str, parameters: dict[str, Any]) -> int:
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data):]
        return self._last

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser did not answer in time")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise ConnectionError(f"the browser ended with exit code {self._process.wait(10)}")
            self._received += data
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; exceptions of the page that come in between are noted."""
        number = self._send(method, parameters)
        deadline = time.monotonic() + self.timeout
        while True:
            message = self._receive(deadline)
            if message.get("method") == "Runtime.exceptionThrown":
                self.exceptions.append(json.dumps(message["params"]["exceptionDetails"]))
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def open(self, address: str) -> None:
        """Go to a page; the notes on exceptions of an earlier one are gone."""
        self.exceptions.clear()
        answer = self.call("Page.navigate", url=address)
        if "errorText" in answer:
            raise ConnectionError(f"{address}: {answer['errorText']}")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """The value of an expression as soon as JavaScript takes it for true."""
        deadline = time.monotonic() + self.timeout
        while not (value := self.evaluate(expression)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {self.timeout:.0f} s still false: {expression}")
            time.sleep(POLL_SECONDS)
        return value

    def screenshot(self, path: Path) -> None:
        """Write what the page looks like as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

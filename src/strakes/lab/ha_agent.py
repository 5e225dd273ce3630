"""Run commands on a machine of the lab, with the distribution's Python.

  agent.py serve ADDRESS           on the machine: runs commands
  agent.py call ADDRESS COMMAND... outside: passes on output and exit status
  agent.py receive ADDRESS FILE    outside: writes the nodes' alerts to a file, with the time of arrival

The caller sends one JSON line with the words of the command. The agent sends a line ``{"to": 1 or 2, "text": base64}``
for each part of the output (1: standard output, 2: standard error), and ``{"status": N}`` at the end.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import socket
import socketserver
import subprocess
import sys
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORT, ALERT_PORT = 7000, 7002
_CONNECT_S = 5.0
_UNREACHABLE_STATUS = 126


class Running(socketserver.StreamRequestHandler):
    """Handler of a connection, which runs one command."""

    def handle(self) -> None:
        """Run the received command; send its output and its exit status (127: the command could not be started)."""
        words = json.loads(self.rfile.readline())
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/"
            )
        except OSError as error:
            self._tell({"to": 2, "text": base64.b64encode(f"{words[0]}: {error.strerror}\n".encode()).decode()})
            self._tell({"status": 127})
            return
        assert process.stdout is not None
        assert process.stderr is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(process.stdout, selectors.EVENT_READ, 1)
            waiting.register(process.stderr, selectors.EVENT_READ, 2)
            while waiting.get_map():
                for key, _ in waiting.select():
                    part = os.read(key.fd, 65536)
                    if part:
                        self._tell({"to": key.data, "text": base64.b64encode(part).decode()})
                    else:
                        waiting.unregister(key.fileobj)
        self._tell({"status": process.wait()})

    def _tell(self, message: dict[str, Any]) -> None:
        self.wfile.write(json.dumps(message).encode() + b"\n")


class Agent(socketserver.ThreadingTCPServer):
    """Server that runs one command for each connection."""

    allow_reuse_address = True
    daemon_threads = True


class Receiver(BaseHTTPRequestHandler):
    """Receiver of alerts: ``{"text": ...}`` at ``/webhook``, or a mail with a header ``Subject`` at ``/mail``."""

    def do_POST(self) -> None:
        """Append the received alert to the file as a line of JSON, with the time and ``by`` (mail or webhook)."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode(errors="replace")
        by = self.path.strip("/")
        text = self.headers["Subject"] if by == "mail" else json.loads(body)["text"]
        with open(sys.argv[3], "a", encoding="utf-8") as file:
            file.write(json.dumps({"at_s": time.time(), "by": by, "text": text}) + "\n")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Log nothing, because the file contains all alerts."""


def call(address: str, words: Sequence[str]) -> int:
    """Run a command on the machine at an address; return its exit status, or 126 if no machine answers."""
    try:
        connection = socket.create_connection((address, PORT), timeout=_CONNECT_S)
    except OSError as error:
        sys.stderr.write(f"the machine at {address} does not answer: {error}\n")
        return _UNREACHABLE_STATUS
    connection.settimeout(None)
    # A machine whose power is cut does not close its connections, so use keep-alive probes.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    try:
        connection.sendall(json.dumps(list(words)).encode() + b"\n")
        for line in connection.makefile("rb"):
            message = json.loads(line)
            if "status" in message:
                return int(message["status"])
            stream = sys.stdout if message["to"] == 1 else sys.stderr
            stream.buffer.write(base64.b64decode(message["text"]))
            stream.buffer.flush()
    except OSError as error:
        sys.stderr.write(f"the machine at {address} has gone: {error}\n")
    return _UNREACHABLE_STATUS


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        Agent((sys.argv[2], PORT), Running).serve_forever()
    elif sys.argv[1] == "receive":
        ThreadingHTTPServer((sys.argv[2], ALERT_PORT), Receiver).serve_forever()
    else:
        sys.exit(call(sys.argv[2], sys.argv[3:]))

"""Programs on the nodes of the lab "ha". They run with the distribution's Python, without other packages.

  node.py agent ADDRESS                       on a node: runs commands
  node.py call ADDRESS COMMAND...             on the host: runs a command on a node
  node.py receive ADDRESS FILE                on the host: writes alerts to a file, with the time of arrival
  node.py journal DIRECTORY                   the service: acknowledges a record when it is on disk in DIRECTORY/journal
  node.py look                                exits with status 0 if the service on this machine answers
  node.py ask NAME COUNT RATE ADDRESS...      COUNT clients send RATE records a second each until standard input ends;
                                              prints a JSON line per record

``call`` sends one JSON line with the words of the command. The agent sends a line ``{"to": 1 or 2, "text": base64}``
for each part of the output (1: standard output, 2: standard error), and ``{"status": N}`` at the end.

A line of the journal is ``term node client number time``. Each start of the service adds 1 to the
highest term in the journal, and writes a record with the client name ``start``. If terms alternate, two services ran
at once.
"""

from __future__ import annotations

import base64
import json
import os
import select
import selectors
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

AGENT_PORT, JOURNAL_PORT, ALERT_PORT = 7000, 7001, 7002
START = "start"
ONLY = "only-"
_UNREACHABLE_STATUS = 126
# Time limits in seconds: to connect to an agent, to connect to the service, for its answer, and for :func:`look`.
_AGENT_S, _CONNECT_S, _PATIENCE_S, _LOOK_S = 5.0, 0.5, 2.0, 10.0
_LOOK_AGAIN_S = 0.2
_LOOK = "look"


class Server(socketserver.ThreadingTCPServer):
    """TCP server with a thread for each connection."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128
    journal: AcknowledgedJournal


class Running(socketserver.StreamRequestHandler):
    """Handler of a connection to the agent: runs one command."""

    def handle(self) -> None:
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


def call(address: str, words: Sequence[str]) -> int:
    """Run a command on the machine at an address. Return its exit status, or 126 if the machine does not answer."""
    try:
        connection = socket.create_connection((address, AGENT_PORT), timeout=_AGENT_S)
    except OSError as error:
        sys.stderr.write(f"the machine at {address} does not answer: {error}\n")
        return _UNREACHABLE_STATUS
    connection.settimeout(None)
    # A power cut does not close TCP connections, so detect it by keep-alive probes.
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


def receive(address: str, file: str) -> None:
    """Receive alerts by HTTP. Append them to a file, as JSON lines with a time, a text and ``by`` (mail or webhook)."""
    # Import it only here, because the import takes seconds on a User-mode Linux machine.
    from http.server import BaseHTTPRequestHandler

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode(errors="replace")
            by = self.path.strip("/")
            text = self.headers["Subject"] if by == "mail" else json.loads(body)["text"]
            with open(file, "a", encoding="utf-8") as alerts:
                alerts.write(json.dumps({"at_s": time.time(), "by": by, "text": text}) + "\n")
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            """Log no requests to standard error, because each alert is written to a file."""

    Server((address, ALERT_PORT), Receiver).serve_forever()


class AcknowledgedJournal:
    """The journal file of a service. ``term``: how many times the service was started."""

    def __init__(self, directory: str) -> None:
        self.node = os.uname().nodename
        self._lock = threading.Lock()
        self._torn = False
        path = os.path.join(directory, "journal")
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        text = os.read(self._descriptor, os.fstat(self._descriptor).st_size)
        if text and not text.endswith(b"\n"):
            # After a power cut, end the line of an incomplete record. The record was not acknowledged.
            os.write(self._descriptor, b"\n")
        lines = [line.split() for line in text.splitlines()]
        self.term = max((int(words[0]) for words in lines if len(words) == 5 and words[0].isdigit()), default=0) + 1
        self.append(START, "0")
        parent = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(parent)
        os.close(parent)

    def append(self, client: str, number: str) -> None:
        """Write a record to disk (fdatasync). If this raises OSError, do not acknowledge the record.

        For the client name ``look``, only sync the file and write no record.
        """
        with self._lock:
            record = "" if client == _LOOK else f"{self.term} {self.node} {client} {number} {time.time():.6f}\n"
            line = record.encode()
            if self._torn:
                line = b"\n" + line
            self._torn = True
            while line:
                line = line[os.write(self._descriptor, line) :]
            self._torn = False
            os.fdatasync(self._descriptor)


class Answering(socketserver.StreamRequestHandler):
    """Handler of a client's connection. Writes a record for each line ``client number``, then answers ``term node``."""

    server: Server

    def handle(self) -> None:
        journal = self.server.journal
        for line in self.rfile:
            client, number = line.decode().split()
            try:
                journal.append(client, number)
            except OSError:
                return
            self.wfile.write(f"{journal.term} {journal.node}\n".encode())


class Client:
    """A client of the service. If a node does not answer, it fails over to the next address.

    A record without an answer is not sent again, because it may already be in the journal.
    """

    def __init__(
        self, name: str, addresses: Sequence[str], connect_s: float = _CONNECT_S, answer_s: float = _PATIENCE_S
    ) -> None:
        self.name = name
        self._addresses, self._connect_s, self._answer_s = addresses, connect_s, answer_s
        self._at = 0
        self._connection: socket.socket | None = None

    def ask(self, number: int) -> tuple[int, str]:
        try:
            if self._connection is None:
                self._connection = socket.create_connection((self._addresses[self._at], JOURNAL_PORT), self._connect_s)
                self._answers = self._connection.makefile("r")
            self._connection.settimeout(self._answer_s)
            self._connection.sendall(f"{self.name} {number}\n".encode())
            line = self._answers.readline()
            if not line.endswith("\n"):
                raise ConnectionError("connection closed without an answer")
        except OSError:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            self._at = (self._at + 1) % len(self._addresses)
            raise
        term, node = line.split()
        return int(term), node


def look() -> None:
    """Check the service on this machine. Raises OSError if it does not answer within ten seconds."""
    deadline = time.monotonic() + _LOOK_S
    while True:
        try:
            Client(_LOOK, ["127.0.0.1"], _LOOK_S, _LOOK_S).ask(0)
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_LOOK_AGAIN_S)


def ask(name: str, count: int, rate: float, addresses: Sequence[str]) -> None:
    """Run ``count`` clients that each send ``rate`` records per second until standard input ends. Print JSON lines."""
    lock = threading.Lock()
    ended = threading.Event()

    def run(client: Client) -> None:
        begun = time.time()
        number = 0
        while not ended.wait(max(0.0, begun + number / rate - time.time())):
            due = begun + number / rate
            record: dict[str, Any] = {"client": client.name, "number": number, "due_s": due, "sent_s": time.time()}
            try:
                record["term"], record["node"] = client.ask(number)
            except OSError as error:
                record["error"] = str(error)
            record["ended_s"] = time.time()
            with lock:
                sys.stdout.write(json.dumps(record) + "\n")
                sys.stdout.flush()
            number += 1

    clients = [Client(f"c{number}-{name}", addresses) for number in range(count)]
    # An additional client for each address never fails over, to detect two nodes that serve at the same time.
    clients += [Client(f"{ONLY}{address}-{name}", [address]) for address in addresses]
    threads = [threading.Thread(target=run, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    select.select([sys.stdin], [], [])
    ended.set()
    for thread in threads:
        thread.join(2 * _PATIENCE_S)


def main(command: str, *words: str) -> int:
    """Run one of the programs, and return its exit status."""
    if command == "agent":
        Server((words[0], AGENT_PORT), Running).serve_forever()
    elif command == "call":
        return call(words[0], words[1:])
    elif command == "receive":
        receive(*words)
    elif command == "journal":
        with Server(("", JOURNAL_PORT), Answering) as server:
            server.journal = AcknowledgedJournal(words[0])
            server.serve_forever()
    elif command == _LOOK:
        look()
    else:
        ask(words[0], int(words[1]), float(words[2]), words[3:])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

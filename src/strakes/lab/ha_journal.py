"""The journal service of the lab and its clients. Nodes run it with the distribution's Python, without other packages.

  journal.py serve DIRECTORY                  the service: answers a record when it is on disk in DIRECTORY/journal
  journal.py look                             exit status 0 if the service of this machine answers
  journal.py ask NAME COUNT RATE ADDRESS...   COUNT clients send RATE records a second each until standard input ends;
                                              prints a JSON line per record

A line of the journal is ``term node client number time``. Every start of the service begins a new term, one more than
the highest term in the journal, with a record of the client ``start``. Mixed terms reveal two services that run at the
same time.
"""

from __future__ import annotations

import json
import os
import select
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

PORT = 7001
START = "start"
ONLY = "only-"
_PATIENCE_S = 2.0
_CONNECT_S = 0.5
_LOOK_S = 10.0
_LOOK_AGAIN_S = 0.2
_LOOK = "look"


class AcknowledgedJournal:
    """The open journal of one term."""

    def __init__(self, directory: str) -> None:
        self.node = os.uname().nodename
        self._lock = threading.Lock()
        # Whether the last record is incomplete (the disk was full), so that the next one must begin a new line.
        self._torn = False
        path = os.path.join(directory, "journal")
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        text = os.read(self._descriptor, os.fstat(self._descriptor).st_size)
        if text and not text.endswith(b"\n"):
            # A power cut left an incomplete record, which was not acknowledged.
            os.write(self._descriptor, b"\n")
        lines = [line.split() for line in text.splitlines()]
        self.term = max((int(words[0]) for words in lines if len(words) == 5 and words[0].isdigit()), default=0) + 1
        self.append(START, "0")
        parent = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(parent)
        os.close(parent)

    def append(self, client: str, number: str) -> None:
        """Write the record to disk before returning. Raises OSError, after which the record is not acknowledged."""
        with self._lock:
            line = f"{self.term} {self.node} {client} {number} {time.time():.6f}\n".encode()
            if self._torn:
                line = b"\n" + line
            self._torn = True
            while line:
                line = line[os.write(self._descriptor, line) :]
            self._torn = False
            os.fdatasync(self._descriptor)

    def reach(self) -> None:
        """Return if the journal can be written to disk now. Raises OSError if it cannot."""
        with self._lock:
            os.fdatasync(self._descriptor)


class Answering(socketserver.StreamRequestHandler):
    """Handler of a client's connection: receives ``client number``; sends ``term node`` when that is on disk."""

    server: Service

    def handle(self) -> None:
        """Answer each record when it is on disk; if it cannot be written, close the connection without an answer."""
        journal = self.server.journal
        for line in self.rfile:
            client, number = line.decode().split()
            try:
                if client == _LOOK:
                    journal.reach()
                else:
                    journal.append(client, number)
            except OSError:
                return  # this closes the connection without an answer
            self.wfile.write(f"{journal.term} {journal.node}\n".encode())


class Service(socketserver.ThreadingTCPServer):
    """Server of the journal in a directory, on all addresses of this node."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, directory: str) -> None:
        super().__init__(("", PORT), Answering)
        self.journal = AcknowledgedJournal(directory)


class Client:
    """A client that changes to the next address if a node does not answer.

    It sends each record only once: a record without an answer is possibly in the journal.
    """

    def __init__(self, name: str, addresses: Sequence[str]) -> None:
        self.name = name
        self._addresses = addresses
        self._at = 0
        self._connection: socket.socket | None = None
        self._received = b""

    def ask(self, number: int) -> tuple[int, str]:
        """Send record ``number``; return term and node of the answer. Raises OSError without an answer."""
        try:
            connection = self._connected()
            connection.settimeout(_PATIENCE_S)
            connection.sendall(f"{self.name} {number}\n".encode())
            while b"\n" not in self._received:
                part = connection.recv(4096)
                if not part:
                    raise ConnectionError("closed without an answer")
                self._received += part
        except OSError:
            self._leave()
            raise
        line, _, self._received = self._received.partition(b"\n")
        term, node = line.decode().split()
        return int(term), node

    def _connected(self) -> socket.socket:
        if self._connection is None:
            self._received = b""
            self._connection = socket.create_connection((self._addresses[self._at], PORT), timeout=_CONNECT_S)
        return self._connection

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._at = (self._at + 1) % len(self._addresses)


def look() -> None:
    """Query the service of this machine. Raises OSError if it does not answer, even if its process exists.

    If nothing listens, retry for some seconds, because the service may just be starting.
    """
    deadline = time.monotonic() + _LOOK_S
    while True:
        try:
            with socket.create_connection(("127.0.0.1", PORT), timeout=_LOOK_S) as connection:
                connection.sendall(f"{_LOOK} 0\n".encode())
                if not connection.makefile("rb").readline().endswith(b"\n"):
                    raise ConnectionError("closed without an answer")
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_LOOK_AGAIN_S)


def serve(directory: str) -> None:
    """Serve the journal in a directory until the process is ended. Raises OSError if the port is in use."""
    with Service(directory) as service:
        service.serve_forever()


def ask(name: str, count: int, rate: float, addresses: Sequence[str]) -> None:
    """Send ``rate`` records per second from each of ``count`` clients until standard input ends; print each as JSON."""
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
    # One client for each address never changes its address. It detects a node that should not answer but does.
    clients += [Client(f"{ONLY}{address}-{name}", [address]) for address in addresses]
    threads = [threading.Thread(target=run, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    select.select([sys.stdin], [], [])
    ended.set()
    for thread in threads:
        thread.join(2 * _PATIENCE_S)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    elif sys.argv[1] == _LOOK:
        look()
    else:
        ask(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5:])

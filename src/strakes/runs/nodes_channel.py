"""Authenticated messages between processes that share a secret, on an untrusted network.

Both sides prove knowledge of the secret before any other message. Every message has an authentication code (HMAC with
SHA-256, RFC 2104) over its sequence number, which detects forged, repeated and missing messages. Length and waiting
time are limited. Messages are not encrypted.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

MOST_BYTES = 1 << 20
_NONCE = 32
_PROOF = 32
_LENGTH = 4


class StrangerError(OSError):
    """The other side does not know the secret, or sent an invalid message."""


class OpenConnections:
    """A bounded set of connections: the oldest is closed first, so that another client can always connect."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._connections: dict[int, socket.socket] = {}
        self._lock = threading.Lock()

    def add(self, connection: socket.socket) -> None:
        """Add a connection; close the oldest if there are too many."""
        with self._lock:
            if len(self._connections) >= self._most:
                oldest = self._connections.pop(next(iter(self._connections)))
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # whoever waits for its words hears its end
            self._connections[id(connection)] = connection

    def remove(self, connection: socket.socket) -> None:
        """Forget a connection, which stays open."""
        with self._lock:
            self._connections.pop(id(connection), None)


class Channel:
    """One connection after both sides have proved themselves. Not for several threads at once."""

    def __init__(self, connection: socket.socket, secret: bytes, *, asks: bool, limit_s: float) -> None:
        """``asks``: the side that was connected to. Raises StrangerError, or OSError where nothing comes in time."""
        self._connection = connection
        try:
            nonces = self._prove(secret, asks, time.monotonic() + limit_s)
        except BaseException:
            connection.close()
            raise
        self._key = _proof(secret, b"messages", nonces)
        self._names = (b"asks", b"answers") if asks else (b"answers", b"asks")
        self._sent = self._heard = 0

    def _prove(self, secret: bytes, asks: bool, deadline: float) -> bytes:
        """Both ways; what the two sides made up for it."""
        own = secrets.token_bytes(_NONCE)
        self._connection.settimeout(deadline - time.monotonic())
        if asks:
            self._connection.sendall(own)
            nonces = own + self._exactly(_NONCE, deadline)
            self._require(self._exactly(_PROOF, deadline), _proof(secret, b"answers", nonces))
            self._connection.sendall(_proof(secret, b"asks", nonces))
        else:
            nonces = self._exactly(_NONCE, deadline) + own
            self._connection.sendall(own + _proof(secret, b"answers", nonces))
            self._require(self._exactly(_PROOF, deadline), _proof(secret, b"asks", nonces))
        return nonces

    def send(self, message: Mapping[str, Any], limit_s: float) -> None:
        """Send a message with its proof. Raises OSError."""
        data = json.dumps(message).encode()
        self._connection.settimeout(limit_s)
        self._connection.sendall(len(data).to_bytes(_LENGTH) + self._proof_of(self._names[0], self._sent, data) + data)
        self._sent += 1

    def receive(self, limit_s: float) -> dict[str, Any]:
        """Return the next message. Raises EOFError at the end of the connection, StrangerError, or OSError."""
        deadline = time.monotonic() + limit_s
        length = int.from_bytes(self._exactly(_LENGTH, deadline))
        if length > MOST_BYTES:
            raise StrangerError(f"a message of {length} bytes")
        proof = self._exactly(_PROOF, deadline)
        data = self._exactly(length, deadline)
        self._require(proof, self._proof_of(self._names[1], self._heard, data))
        self._heard += 1
        try:
            message = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise StrangerError("it is no message") from error
        if not isinstance(message, dict):
            raise StrangerError("it is no message")
        return message

    @property
    def own_address(self) -> str:
        """This side's address."""
        return str(self._connection.getsockname()[0])

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _proof_of(self, side: bytes, number: int, data: bytes) -> bytes:
        return _proof(self._key, side, number.to_bytes(8) + data)

    def _exactly(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._connection.settimeout(max(deadline - time.monotonic(), 0.001))
            piece = self._connection.recv(min(size - len(data), 65536))
            if not piece:
                raise EOFError("the connection has ended")
            data += piece
            if time.monotonic() > deadline:
                raise TimeoutError("it said nothing in time")
        return bytes(data)

    @staticmethod
    def _require(proof: bytes, expected: bytes) -> None:
        if not hmac.compare_digest(proof, expected):
            raise StrangerError("it does not know the secret")


def _proof(secret: bytes, purpose: bytes, data: bytes) -> bytes:
    return hmac.digest(secret, purpose + b"\0" + data, "sha256")


def stream_pass(secret: bytes) -> bytes:
    """Return what a stream that measures a link begins with."""
    return _proof(secret, b"stream", b"")

"""Send commands to Ceph's monitors over one connection. A call of the ``ceph`` program would take half a second."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any, Self

from strakes.base.errors import EnvironmentLacksError
from strakes.targets.answers import from_json, understood

_LIBRARY = "librados.so.2"
_LIMIT_S = 30


class Monitors:
    """A connection to Ceph's monitors. ``config``: path of ceph.conf. Every call has a time limit of half a minute.

    Raises EnvironmentLacksError if they cannot be reached, or do not belong to ``cluster`` (an fsid; "": any).
    """

    def __init__(self, config: Path, cluster: str = "") -> None:
        try:
            self._rados = ctypes.CDLL(_LIBRARY)
        except OSError as error:
            raise EnvironmentLacksError("librados cannot be loaded", where=_LIBRARY, why=str(error)) from error
        self._cluster = ctypes.c_void_p()
        self._check(self._rados.rados_create(ctypes.byref(self._cluster), b"admin"), "rados_create")
        try:
            done = self._rados.rados_conf_read_file(self._cluster, os.fsencode(config))
            self._check(done, "reading the configuration")
            for name in (b"client_mount_timeout", b"rados_mon_op_timeout"):
                self._rados.rados_conf_set(self._cluster, name, str(_LIMIT_S).encode())
            self._check(self._rados.rados_connect(self._cluster), "connecting")
            with understood("ceph fsid"):
                reached = str(self.command("fsid")["fsid"]) if cluster else ""
            if reached != cluster:
                what, why = "this configuration belongs to another Ceph cluster", f"its id is {reached}, not {cluster}"
                remedy = "Set CEPH_CONF to the configuration file of the mount."
                raise EnvironmentLacksError(what, where=str(config), why=why, remedy=remedy)
        except BaseException:
            self.close()
            raise

    def command(self, prefix: str, **arguments: object) -> Any:
        text = json.dumps({"prefix": prefix, "format": "json", **arguments}).encode()
        command = (self._cluster, (ctypes.c_char_p * 1)(text), ctypes.c_size_t(1), b"", ctypes.c_size_t(0))
        output, status = ctypes.c_void_p(), ctypes.c_void_p()
        output_length, status_length = ctypes.c_size_t(), ctypes.c_size_t()
        buffers = map(ctypes.byref, (output, output_length, status, status_length))
        result = self._rados.rados_mon_command(*command, *buffers)
        answer, words = self._take(output, output_length), self._take(status, status_length)
        if result < 0:
            why = words.decode(errors="replace") or os.strerror(-result)
            raise EnvironmentLacksError(f"the Ceph monitors refuse the command {prefix}", why=why)
        return from_json(answer, f"ceph {prefix}") if answer.strip() else None

    def close(self) -> None:
        if self._cluster.value:
            self._rados.rados_shutdown(self._cluster)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, buffer: ctypes.c_void_p, length: ctypes.c_size_t) -> bytes:
        content = ctypes.string_at(buffer, length.value) if buffer.value else b""
        if buffer.value:
            self._rados.rados_buffer_free(buffer)
        return content

    def _check(self, result: int, what: str) -> None:
        if result < 0:
            raise EnvironmentLacksError("the Ceph monitors cannot be reached", where=what, why=os.strerror(-result))

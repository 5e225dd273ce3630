"""In-memory FUSE file system that injects faults on request (linux/fuse.h, protocol 7.31, without libfuse).

Run as a program, it mounts itself on the given directory and reads orders from standard input, one line of JSON for
each (`_Fault`). `mounts.faulty_mounted` starts it.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import select
import stat
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class _Fault:
    """A fault: calls that fail with ``errno``. 0: no answer until the next order; -1: success without effect.

    ``processes``: the callers affected; empty: all. A write fails only if the files together would exceed
    ``after_bytes``.
    """

    calls: tuple[str, ...] = ()
    errno: int = 0
    processes: tuple[int, ...] = ()
    after_bytes: int = 0


_HEADER = struct.Struct("<IIQQIIIHH")
_ROOT = 1
_MAX_WRITE = 128 << 10
_BLOCK = 1 << 31  # st_blksize; Python's open() would fail with it.
_WRITEBACK_CACHE, _BIG_WRITES = 1 << 16, 1 << 5
_SIZE_IS_SET, _MODE_IS_SET = 1 << 3, 1 << 0
_MNT_DETACH = 2
_FORGETS = {2, 36, 42}  # FORGET, INTERRUPT, BATCH_FORGET: requests without a reply


@dataclass
class _Node:
    mode: int
    data: bytearray = field(default_factory=bytearray)
    entries: dict[bytes, int] = field(default_factory=dict)
    linked: bool = True


class _Refused(Exception):
    pass


class _Server:
    def __init__(self, device: int, writes_later: bool) -> None:
        self._device = device
        self._flags = _BIG_WRITES | (_WRITEBACK_CACHE if writes_later else 0)
        self._nodes = {_ROOT: _Node(stat.S_IFDIR | 0o755)}
        self._fault = _Fault()
        self._unanswered: list[bytes] = []
        self._calls: dict[int, tuple[str, Callable[[int, bytes], bytes]]] = {
            1: ("lookup", lambda node, body: self._entry(self._child(node, body))),
            3: ("getattr", lambda node, _: self._attributes(node)),
            4: ("setattr", self._set_attributes),
            8: ("mknod", lambda node, body: self._entry(self._make(node, _mode(body), body[16:]))),
            9: ("mkdir", lambda node, body: self._entry(self._make(node, stat.S_IFDIR | _mode(body), body[8:]))),
            10: ("unlink", self._unlink),
            11: ("rmdir", self._unlink),
            12: ("rename", lambda node, body: self._rename(node, body, 8)),
            14: ("open", lambda node, body: bytes(16)),
            15: ("read", self._read),
            16: ("write", self._write),
            17: ("statfs", lambda node, body: struct.pack("<5Q4I24x", *[1 << 20] * 5, 4096, 255, 4096, 0)),
            18: ("release", lambda node, body: b""),
            20: ("fsync", lambda node, body: b""),
            25: ("flush", lambda node, body: b""),
            26: ("init", self._init),
            27: ("opendir", lambda node, body: bytes(16)),
            28: ("readdir", self._list),
            29: ("releasedir", lambda node, body: b""),
            30: ("fsyncdir", lambda node, body: b""),
            35: ("create", lambda node, body: self._entry(self._make(node, _mode(body[4:]), body[16:])) + bytes(16)),
            45: ("rename", lambda node, body: self._rename(node, body, 16)),
        }  # fmt: skip

    def serve(self) -> None:
        while True:
            ready, _, _ = select.select([self._device, sys.stdin.fileno()], [], [])
            if sys.stdin.fileno() in ready:
                order = sys.stdin.readline()
                if not order:
                    return
                self._fault = _Fault(**json.loads(order))
                unanswered, self._unanswered = self._unanswered, []
                for request in unanswered:
                    self._answer(request)
                print("done", flush=True)
                continue
            try:
                self._answer(os.read(self._device, _MAX_WRITE + (1 << 16)))
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                if error.errno not in (errno.EINTR, errno.ENOENT):  # the kernel withdrew the request
                    raise

    def _answer(self, request: bytes) -> None:
        _, call, unique, node, _, _, thread, _, _ = _HEADER.unpack_from(request)
        if call in _FORGETS:
            return
        name, answer = self._calls.get(call, ("", None))
        body, failed = b"", 0
        try:
            if answer is None:
                raise _Refused(errno.ENOSYS)
            if self._is_to_fail(name, thread, node, request[_HEADER.size :]):
                if not self._fault.errno:
                    self._unanswered.append(request)
                    return
                if self._fault.errno > 0:
                    raise _Refused(self._fault.errno)
            else:
                body = answer(node, request[_HEADER.size :])
        except _Refused as refused:
            failed = refused.args[0]
        os.write(self._device, struct.pack("<IiQ", 16 + len(body), -failed, unique) + body)

    def _is_to_fail(self, call: str, thread: int, node: int, body: bytes) -> bool:
        fault = self._fault
        if call not in fault.calls:
            return False
        if call == "write":
            offset, size = struct.unpack_from("<8xQI", body)
            used_bytes = sum(len(file.data) for file in self._nodes.values() if file.linked)
            if used_bytes + max(0, offset + size - len(self._nodes[node].data)) <= fault.after_bytes:
                return False
        return not fault.processes or any(
            Path(f"/proc/{process}/task/{thread}").exists() for process in fault.processes
        )

    def _init(self, _: int, body: bytes) -> bytes:
        _, _, readahead, flags = struct.unpack_from("<4I", body)
        return struct.pack("<4I2H2I36x", 7, 31, readahead, flags & self._flags, 16, 12, _MAX_WRITE, 1)

    def _child(self, node: int, body: bytes) -> int:
        child = self._nodes[node].entries.get(body.split(b"\0")[0])
        if child is None:
            raise _Refused(errno.ENOENT)
        return child

    def _make(self, parent: int, mode: int, body: bytes) -> int:
        number = max(self._nodes) + 1
        self._nodes[number] = _Node(mode)
        self._nodes[parent].entries[body.split(b"\0")[0]] = number
        return number

    def _unlink(self, parent: int, body: bytes) -> bytes:
        number = self._child(parent, body)
        if self._nodes[number].entries:
            raise _Refused(errno.ENOTEMPTY)
        self._nodes[number].linked = False
        del self._nodes[parent].entries[body.split(b"\0")[0]]
        return b""

    def _rename(self, parent: int, body: bytes, names_at: int) -> bytes:
        (to,) = struct.unpack_from("<Q", body)
        old, new = body[names_at:].split(b"\0")[:2]
        self._nodes[to].entries[new] = self._nodes[parent].entries.pop(old)
        return b""

    def _stat(self, number: int) -> bytes:
        node = self._nodes[number]
        size = len(node.data)
        return struct.pack(
            "<6Q10I", number, size, -(-size // 512), 0, 0, 0, 0, 0, 0, node.mode, int(node.linked), 0, 0, 0, _BLOCK, 0
        )

    def _entry(self, number: int) -> bytes:
        return struct.pack("<4Q2I", number, 0, 0, 0, 0, 0) + self._stat(number)

    def _attributes(self, number: int) -> bytes:
        return struct.pack("<Q2I", 0, 0, 0) + self._stat(number)

    def _set_attributes(self, number: int, body: bytes) -> bytes:
        valid, size, mode = struct.unpack_from("<I12xQ44xI", body)
        node = self._nodes[number]
        if valid & _SIZE_IS_SET:
            node.data = node.data[:size].ljust(size, b"\0")
        if valid & _MODE_IS_SET:
            node.mode = mode
        return self._attributes(number)

    def _read(self, number: int, body: bytes) -> bytes:
        offset, size = struct.unpack_from("<8xQI", body)
        return bytes(self._nodes[number].data[offset : offset + size])

    def _write(self, number: int, body: bytes) -> bytes:
        offset, size = struct.unpack_from("<8xQI", body)
        data = self._nodes[number].data
        if len(data) < offset:
            data.extend(bytes(offset - len(data)))
        data[offset : offset + size] = body[40 : 40 + size]
        return struct.pack("<2I", size, 0)

    def _list(self, number: int, body: bytes) -> bytes:
        offset, size = struct.unpack_from("<8xQI", body)
        rows = b""
        for name, entry in sorted(self._nodes[number].entries.items(), key=lambda item: item[1]):
            # An offset is a node number: with positions, a removal during a listing would hide other entries.
            if entry <= offset:
                continue
            row = struct.pack("<2Q2I", entry, entry, len(name), stat.S_IFMT(self._nodes[entry].mode) >> 12) + name
            row = row.ljust(-(-len(row) // 8) * 8, b"\0")
            if len(rows) + len(row) > size:
                break
            rows += row
        return rows


def _mode(body: bytes) -> int:
    mode: int = struct.unpack_from("<I", body)[0]
    return mode


def main(place: str, mounter: int, writes_later: bool) -> None:
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id={mounter},group_id=0,allow_other,default_permissions"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"strakes-test", os.fsencode(place), b"fuse", 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    print("mounted", flush=True)
    try:
        _Server(device, writes_later).serve()
    finally:
        libc.umount2(os.fsencode(place), _MNT_DETACH)  # a test that was killed has not unmounted it


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), "later" in sys.argv[3:])

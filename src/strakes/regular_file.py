"""Files of others: what is no regular file, or larger than it can be, is not read."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from strakes.errors import BadInputError

_PIECE_BYTES = 1 << 20


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading that nobody can make us wait for: no pipe, no device, no directory.

    Raises BadInputError for what is none, OSError where it cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadInputError("this is not a regular file", where=str(path), remedy="Copy its content to a file.")
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")  # closes it, whatever interrupts us from here on


def open_own(path: Path, what: str, remedy: str) -> BinaryIO:
    """Open a file of this user in a directory of this user, by its only name: what it says is done in his name.

    Raises BadInputError for any other, saying that ``what`` belongs to another user; OSError.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise _others(what, path, "it is a link", remedy) from error
    try:
        state, user = os.fstat(descriptor), os.geteuid()
        others = [owner for owner in (state.st_uid, os.stat(path.parent).st_uid) if owner != user]
        if others or state.st_nlink > 1 or not stat.S_ISREG(state.st_mode):
            raise _others(what, path, f"user {others[0]}" if others else "it is a link, or not a file", remedy)
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _others(what: str, path: Path, why: str, remedy: str) -> BadInputError:
    return BadInputError(f"{what} belongs to another user", where=str(path), why=why, remedy=remedy)


def read_whole(file: BinaryIO, path: Path, most_bytes: int) -> bytes:
    """Read an open file. Raises BadInputError for one that is too large or has no end, OSError."""
    content = bytearray()
    # Files of the kernel say that they are empty, and others may grow meanwhile.
    size = os.fstat(file.fileno()).st_size
    while size <= most_bytes and len(content) <= most_bytes:
        piece = file.read(max(_PIECE_BYTES, size + 1 - len(content)))
        if piece is None:
            # A file of the kernel that would have us wait for what is to come.
            raise BadInputError("this file has no end", where=str(path), remedy="Copy its content to a file.")
        if not piece:
            return bytes(content)
        content += piece
    raise BadInputError("the file is too large", where=str(path), why=f"it is larger than {most_bytes >> 20} MiB")


def read_at_most(path: Path, most_bytes: int) -> bytes:
    """Read a regular file. Raises BadInputError for what is none or is too large, OSError where it cannot be read."""
    with open_regular(path) as file:
        return read_whole(file, path, most_bytes)


def read_regular(path: Path, most_bytes: int, what: str = "the file cannot be read", remedy: str = "") -> bytes:
    """Read the whole file.

    Raises BadInputError; does not wait for the other end of a pipe, nor read a device that never ends.
    """
    try:
        return read_at_most(path, most_bytes)
    except OSError as error:
        raise BadInputError(what, where=str(path), why=error.strerror or str(error), remedy=remedy) from error

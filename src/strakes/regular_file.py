"""Files of others: what is no regular file, or larger than it can be, is not read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from strakes.errors import BadInputError


def read_regular(path: Path, most_bytes: int, what: str = "the file cannot be read", remedy: str = "") -> bytes:
    """Read the whole file.

    Raises BadInputError; does not wait for the other end of a pipe, nor read a device that never ends.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise BadInputError("this is not a regular file", where=str(path), remedy="Copy its content to a file.")
            # Files of the kernel say that they are empty, and others may grow meanwhile.
            too_large = status.st_size > most_bytes
            content = b"" if too_large else file.read(most_bytes + 1)
    except OSError as error:
        raise BadInputError(what, where=str(path), why=error.strerror or str(error), remedy=remedy) from error
    if too_large or len(content) > most_bytes:
        raise BadInputError("the file is too large", where=str(path), why=f"it is larger than {most_bytes >> 20} MiB")
    return content

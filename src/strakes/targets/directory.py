"""Check the directory that a user gives as DIR."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.base.file_kinds import DIRECTORY, refuse_other_kind
from strakes.targets import calls

_RUN = re.compile(r"\d{8}-\d{6}-")
_PROBLEMS = {
    errno.ENOENT: ("no such directory", "Create it, or give another directory."),
    errno.ENOTDIR: ("this is not a directory", "Give a directory on the file system to measure."),
    errno.ELOOP: ("the symbolic links of this path lead in a circle", "Give the path of the directory itself."),
    errno.EACCES: (
        ("you may not enter this directory"),
        "Give a directory that you can write to, or run strakes as another user.",
    ),
    errno.ENOTCONN: ("the file system there does not answer", "Mount it again, then try again."),
    errno.ESTALE: ("the file system there does not answer", "Mount it again, then try again."),
}


def require_directory(path: Path) -> Path:
    """Return ``path`` with links resolved.

    Raises BadInputError with a remedy if it is not a directory that can be entered, MeasurementError if its file system
    does not answer.
    """
    try:
        return Path(calls.call("realpath", str(path)))
    except OSError as error:
        what, remedy = _PROBLEMS.get(error.errno or 0, ("this directory cannot be used", "Give another directory."))
        if error.errno == errno.ENOTDIR:
            refuse_other_kind(path, "directory", DIRECTORY.name)
        if error.errno == errno.ENOENT and _RUN.match(str(path)):
            what, remedy = "this is the id of a run, not a directory", f"See it with: strakes report {path}"
        raise BadInputError(what, where=str(path), why=os.strerror(error.errno or 0), remedy=remedy) from error

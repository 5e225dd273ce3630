"""Log files for internal errors of strakes, with the traceback."""

from __future__ import annotations

import os
import platform
import secrets
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from strakes.base.files import create_kept, make_directory
from strakes.base.foreign_text import without_secrets
from strakes.base.version import __version__


def write_crash_log(error: BaseException, arguments: Sequence[str]) -> Path:
    """Write a new file that says what happened, in the state directory or else a temporary one; return its path."""
    text = "\n".join(
        [
            f"strakes {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"arguments: {list(map(without_secrets, arguments))}",
            f"executable: {sys.executable}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )
    prefix = time.strftime("crash-%Y%m%d-%H%M%S-")
    try:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "strakes"
        log = state / f"{prefix}{secrets.token_hex(4)}.log"
        make_directory(state)
        create_kept(log, text.encode("utf-8", "backslashreplace"))
    except (OSError, RuntimeError):  # not writable, or no home at all
        handle, name = tempfile.mkstemp(prefix=f"strakes-{prefix}", suffix=".log")
        log = Path(name)
        with os.fdopen(handle, "w", errors="backslashreplace") as file:
            file.write(text)
    return log

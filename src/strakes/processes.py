"""Starting our own modules as processes, and what tells one process from a later one of the same number."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path


def python_module(module: str, *words: str) -> list[str]:
    """Return the command that runs a module of strakes, whatever lies in the current directory.

    ``python -m`` alone looks there first, and whoever may write there would have root run what he likes.
    """
    package = Path(__file__).resolve()
    user_site = site.getusersitepackages() if site.ENABLE_USER_SITE else None
    # -I leaves out the user's own packages, too, which must not happen where strakes is one of them.
    isolation = "-P" if user_site and package.is_relative_to(Path(user_site).resolve()) else "-I"
    return [sys.executable, isolation, "-m", module, *words]


def process_start(pid: int) -> int | None:
    """When the process began, in clock ticks since boot; None when there is none (field 22 of proc_pid_stat(5))."""
    fields = _fields(pid)
    # A zombie works no more.
    return None if not fields or fields[0] in "ZX" else int(fields[19])


def descendants_of(pid: int) -> tuple[int, ...]:
    """Return the processes that it started, and those that they did, in order of their numbers.

    >>> os.getpid() in descendants_of(os.getppid())
    True
    """
    parents = {
        int(name): int(fields[1]) for name in os.listdir("/proc") if name.isdigit() and (fields := _fields(name))
    }
    family = {pid}
    while new := {process for process, parent in parents.items() if parent in family} - family:
        family |= new
    return tuple(sorted(family - {pid}))


def _fields(pid: int | str) -> list[str]:
    """Of proc_pid_stat(5), from the state on; none where there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    # The second field is the program's name in parentheses and may hold anything.
    return text.rpartition(")")[2].split()

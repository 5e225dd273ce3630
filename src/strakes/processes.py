"""What tells one process from a later one of the same number."""

from __future__ import annotations

from pathlib import Path


def process_start(pid: int) -> int | None:
    """When the process began, in clock ticks since boot; None when there is none (field 22 of proc_pid_stat(5))."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses and may hold anything.
    fields = text.rpartition(")")[2].split()
    # A zombie works no more.
    return None if fields[0] in "ZX" else int(fields[19])

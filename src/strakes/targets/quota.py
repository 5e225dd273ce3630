"""Quotas of whoever asks, as the kernel counts them.

Of the user, the group, and the project that a directory belongs to (quotactl(2)).
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from strakes.units import counted, format_bytes


@dataclass(frozen=True)
class Quota:
    """``whose`` is such as "user 1000".

    A limit of 0 is none; it is the lower one where there is a soft one and a hard one.
    """

    whose: str
    used_bytes: int
    limit_bytes: int
    used_files: int
    limit_files: int

    @property
    def free_bytes(self) -> int | None:
        """None without a limit."""
        return max(0, self.limit_bytes - self.used_bytes) if self.limit_bytes else None

    @property
    def free_files(self) -> int | None:
        """None without a limit."""
        return max(0, self.limit_files - self.used_files) if self.limit_files else None

    def __str__(self) -> str:
        """Return what may be used of it.

        >>> print(Quota("user 1000", 3 << 20, 16 << 20, 12, 0))
        The quota of user 1000 leaves 13 MiB of 16 MiB.
        >>> print(Quota("project 42", 0, 1 << 20, 90, 100))
        The quota of project 42 leaves 1 MiB of 1 MiB and 10 of 100 files.
        """
        parts = []
        if self.free_bytes is not None:
            parts.append(f"{format_bytes(self.free_bytes)} of {format_bytes(self.limit_bytes)}")
        if self.free_files is not None:
            parts.append(f"{self.free_files:,} of {counted(self.limit_files, 'file')}")
        return f"The quota of {self.whose} leaves {' and '.join(parts)}."


def read_quotas(lines: list[str]) -> tuple[Quota, ...]:
    """From lines of kind, number (of a directory: its name, hexadecimal) and (soft, hard, used) of bytes and files.

    >>> read_quotas(["user 7 0 4096 1024 20 30 3"])
    (Quota(whose='user 7', used_bytes=1024, limit_bytes=4096, used_files=3, limit_files=20),)
    """
    quotas = []
    for line in lines:
        kind, who, *rest = line.split()
        soft_bytes, hard_bytes, used_bytes, soft_files, hard_files, used_files = map(int, rest)
        whose = f"{kind} {os.fsdecode(bytes.fromhex(who)) if kind == 'directory' else who}"
        quotas.append(
            Quota(whose, used_bytes, lower(soft_bytes, hard_bytes), used_files, lower(soft_files, hard_files))
        )
    return tuple(quotas)


def lower(soft: int, hard: int) -> int:
    """Return the one that is there where the other is none."""
    return min((limit for limit in (soft, hard) if limit), default=0)

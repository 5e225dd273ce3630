"""Quotas of the calling user and group, and of the directory's project, from the kernel (quotactl(2))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from strakes.base.units import counted, format_bytes


@dataclass(frozen=True)
class Quota:
    """A quota of ``whose``, for example "user 1000".

    A limit is the lower of the soft and the hard one; 0 means unlimited.
    """

    whose: str
    used_bytes: int
    limit_bytes: int
    used_files: int
    limit_files: int

    @classmethod
    def of(cls, whose: str, *values: int) -> Self:
        """Return a quota from soft limit, hard limit and use, in bytes and in files.

        >>> Quota.of("user 7", 0, 4096, 1024, 20, 30, 3)
        Quota(whose='user 7', used_bytes=1024, limit_bytes=4096, used_files=3, limit_files=20)
        """
        soft_bytes, hard_bytes, used_bytes, soft_files, hard_files, used_files = values
        limit_bytes = min(filter(None, (soft_bytes, hard_bytes)), default=0)
        return cls(whose, used_bytes, limit_bytes, used_files, min(filter(None, (soft_files, hard_files)), default=0))

    @property
    def free_bytes(self) -> int | None:
        """Return the bytes left, or None without a limit."""
        return max(0, self.limit_bytes - self.used_bytes) if self.limit_bytes else None

    @property
    def free_files(self) -> int | None:
        """Return the files left, or None without a limit."""
        return max(0, self.limit_files - self.used_files) if self.limit_files else None

    def __str__(self) -> str:
        """Return a sentence with the bytes and files left.

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

"""``lfs quota``: what a user may have, and has."""

from __future__ import annotations

import os
import pwd
import re
from dataclasses import dataclass

from strakes.targets.command import Command, Completed
from strakes.targets.lustre.output import checked, not_understood
from strakes.targets.quota import Quota, lower

_TOOL = "lfs quota"
# A number is in brackets when a server did not answer, and starred when it is over its limit.
_NUMBER = re.compile(r"^\[?(\d+)\]?\*?$")


@dataclass(frozen=True)
class LustreQuota:
    """A limit of 0 is none. ``exact`` is False where a server did not answer."""

    used_bytes: int
    soft_bytes: int
    hard_bytes: int
    used_files: int
    soft_files: int
    hard_files: int
    exact: bool

    def of(self, user: str) -> Quota:
        """As every file system tells it."""
        limit_bytes, limit_files = lower(self.soft_bytes, self.hard_bytes), lower(self.soft_files, self.hard_files)
        return Quota(f"user {user}", self.used_bytes, limit_bytes, self.used_files, limit_files)


def quota(user: str, path: str) -> Command[LustreQuota]:
    """Ask for a user's limits."""
    return Command(("lfs", "quota", "-u", user, path), read_quota)


def read_quota(done: Completed) -> LustreQuota:
    """Read them."""
    lines = checked(done, "the quota is not known").splitlines()
    heading = next((i for i, line in enumerate(lines) if line.split()[:1] == ["Filesystem"]), None)
    if heading is None:
        raise not_understood(_TOOL, lines[0] if lines else "")
    # A long path stands on a line of its own; the eight values follow it.
    words = [word for line in lines[heading + 1 : heading + 3] for word in line.split()][-8:]
    if len(words) < 8:
        raise not_understood(_TOOL, " ".join(words))
    numbers = []
    for place in (0, 1, 2, 4, 5, 6):
        match = _NUMBER.match(words[place])
        if match is None:
            raise not_understood(_TOOL, words[place])
        numbers.append(int(match[1]))
    used, soft, hard, used_files, soft_files, hard_files = numbers
    exact = "[" not in words[0] + words[4]
    return LustreQuota(used * 1024, soft * 1024, hard * 1024, used_files, soft_files, hard_files, exact)


def user_name() -> str:
    """Whoever asks; the number of one without a name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())

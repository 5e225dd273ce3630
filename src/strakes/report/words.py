"""Titles of warnings, and explanations of the names of access patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping

from strakes.base.language import gettext

# Code of a warning -> its title.
WARNINGS: Mapping[str, str] = {
    "background-load": "Other programs kept this machine busy",
    "begun-apart": "Some ranks started late, which lowers rates",
    "burst": "Some rates are those of a burst",
    "cache-below": "Reads: the device is a file, and memory below it may have answered",
    "cache-suspect": "Reads: a cache answered, at least in part",
    "cache-unseen": "Reads: the client's own cache may have answered",
    "counters-unread": "Counters of servers could not be read",
    "direct-refused": "The file system refuses O_DIRECT",
    "few-runs": "Too few runs for an interval",
    "fits-servers-memory": "The data that was moved fits into the servers' caches",
    "gave-way": "The measurement was slowed down to protect other users",
    "held-back": "The load was limited, so the file system may do more",
    "hybrid-io": "The client turned buffered calls into direct ones",
    "imported": "Another tool measured this: single points without intervals",
    "imported-note": "A remark on the import of the file",
    "impossible-rate": "A rate is higher than links or memory allow",
    "left-out": "Runs with other load limits were left out",
    "memory-file-system": "This file system is in memory",
    "names-from-memory": "Look-ups: the memory of this node answered, not the file system",
    "node-unlike": "The nodes are not alike",
    "other-measurement": "Another measurement ran in the same directory",
    "server-changed": "A server was restarted or lost its counters",
    "server-unlike": "One server is slower than the others",
    "servers-not-well": "Servers reported problems",
    "service-interrupted": "The service was interrupted",
    "setting-differs": "The setting in effect is not the requested one",
    "short-phases": "Phases were too short for a sustained rate",
    "unsynced": "Writes: not synced, so memory may still have held the data",
    "target-unlike": "One target is unlike the others",
}

# Access patterns of publication S5: single (SF) or multiple files (MF), each read whole (WA) or in segments (SA).
PATTERNS: Mapping[str, str] = {
    "SFWA": "every rank reads one whole file",
    "MFWA": "a file per rank",
    "SFSA strided": "ranks interleaved in a shared file",
    "SFSA": "one segment per rank of a shared file",
}


def title_of_warning(code: str) -> str:
    """Return the title of a warning. If it has no title, return its code with spaces for hyphens."""
    return gettext(WARNINGS.get(code) or code.replace("-", " ").capitalize())


def explained(text: str) -> str:
    """Add an explanation to the first occurrence of each access pattern's name in a text.

    >>> explained("MFWA against SFSA; MFWA wins"), explained("MFWA: a file per rank")
    ('MFWA (a file per rank) against SFSA (one segment per rank of a shared file); MFWA wins', 'MFWA: a file per rank')
    """
    for name, meaning in PATTERNS.items():
        # Skip names that are already followed by an explanation.
        text = re.sub(rf"\b{name}\b(?!:| \(| strided)", f"{name} ({gettext(meaning)})", text, count=1)
    return text

"""What the outputs of ``lfs`` and ``lctl`` have in common: names of targets, "key: value" lines, refusals."""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
from collections.abc import Iterator

from strakes.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError
from strakes.targets.command import Completed
from strakes.units import counted

# The exit status of a usage error; all others are the errno.
_USAGE = 4

_TARGET = re.compile(r"^(?P<name>[\w-]+?-(?P<kind>OST|MDT)(?P<index>[0-9a-f]{4}))(?:_UUID)?$")
_NUMBERED = re.compile(r" \(\d+\)$")
_KEY = re.compile(r"(?<![\w.])([a-z][a-z0-9_.]*):(?=\s|$)")

_ROOT = "Run strakes as root or as the owner, or ask your administrator to allow it."
_WHERE = "Give a directory on a mounted Lustre file system."
_AGAIN = "See what the servers say (lfs check servers, lctl get_param *.*.import) and try again when they answer."
_SPACE = "lfs df and lfs quota show where the space has gone."

# What the user can mend, and what came from the file system; with the next thing to do where there is one.
_BAD_INPUT = {
    errno.ENOENT: "",
    errno.EEXIST: "Choose a name that is not taken.",
    errno.ENOTDIR: "",
    errno.ENODEV: "",
    errno.EINVAL: "",
    errno.ENOTTY: _WHERE,
    errno.EFBIG: "",
    errno.ERANGE: "",
    errno.ENAMETOOLONG: "",
    errno.ENODATA: "",
    errno.EOPNOTSUPP: _WHERE,
    errno.ENOTEMPTY: "",
}
_FAILED = {
    **dict.fromkeys(
        (errno.EIO, errno.EAGAIN, errno.ENOTCONN, errno.ESHUTDOWN, errno.ETIMEDOUT, errno.EHOSTUNREACH), _AGAIN
    ),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _SPACE),
}
_BY_TEXT = {os.strerror(number): number for number in (*_FAILED, *_BAD_INPUT)}


class NotUnderstoodError(MeasurementError):
    """Output that is not of the form known: another version of Lustre, or cut off."""


def not_understood(tool: str, line: str) -> NotUnderstoodError:
    """For output of ``tool`` (as typed) that makes no sense at ``line``."""
    remedy = "Please report it with the version (lfs --version) and the whole output."
    return NotUnderstoodError(f"the output of {tool} is not understood", where=repr(line[:200]), remedy=remedy)


def number(text: str, tool: str) -> int:
    """Return a whole number, decimal or hexadecimal. Raises NotUnderstoodError."""
    try:
        return int(text, 0)
    except ValueError:
        raise not_understood(tool, text) from None


def target_name(uuid: str, tool: str) -> tuple[str, str, int]:
    """Name, kind and index of a target. Raises NotUnderstoodError.

    >>> target_name("labfs-OST000a_UUID", "lfs osts")
    ('labfs-OST000a', 'OST', 10)
    """
    match = _TARGET.match(uuid)
    if match is None:
        raise not_understood(tool, uuid)
    return match["name"], match["kind"], int(match["index"], 16)


def key_values(line: str) -> Iterator[tuple[str, str]]:
    """Return the pairs of a line, of which a value may be missing.

    >>> list(key_values("stripe_count:  1 pattern:        stripe_offset: -1"))
    [('stripe_count', '1'), ('pattern', ''), ('stripe_offset', '-1')]
    """
    keys = list(_KEY.finditer(line))
    ends = [*(key.start() for key in keys[1:]), len(line)]
    for key, end in zip(keys, ends, strict=False):
        yield key[1], line[key.end() : end].strip()


def explanation(done: Completed) -> str:
    """Return what a command said of its failure; of lines that end with the same reason the first."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if not lines and done.status != _USAGE:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()][-1:]
    reasons: dict[str, str] = {}
    for line in lines:
        reasons.setdefault(_NUMBERED.sub("", line).rpartition(": ")[2], line)
    lines = list(reasons.values())
    return "; ".join(lines[:3]) + (f"; and {counted(len(lines) - 3, 'line')} more" if len(lines) > 3 else "")


def refusal(done: Completed, what: str, where: str = "", remedy: str = "") -> StrakesError:
    """Return the error for a command that ended with a status other than 0: who has to do what follows from the status.

    ``remedy`` is for values that are not good; other causes have theirs.

    >>> done = Completed(("lfs", "mkdir", "-i", "99", "d"), 19, "", "lfs mkdir: dirstripe error on 'd': No such device")
    >>> type(refusal(done, "the directory was not made")).__name__
    'BadInputError'
    """
    where = where or shlex.join(done.argv)
    why = explanation(done)
    if "Operation not permitted" in why or "Permission denied" in why:
        return EnvironmentLacksError(what, where=where, why=why, remedy=_ROOT)
    if "is not a valid command" in why or (
        done.status == _USAGE and (not why or "unrecognized option" in why or "invalid option" in why)
    ):
        why = why or "it printed how it is used instead"
        return EnvironmentLacksError(
            what, where=where, why=why, remedy="This version of Lustre does not know that; a newer one may."
        )
    if "not on a Lustre file" in why:
        return BadInputError(what, where=where, why=why, remedy=_WHERE)
    if done.status == _USAGE:
        return BadInputError(what, where=where, why=why, remedy=remedy)
    if done.status < 0:
        return MeasurementError(what, where=where, why=f"the command was ended by {signal.Signals(-done.status).name}")
    # The words are surer than the status, which other tools do not take from errno.
    number = next((number for text, number in _BY_TEXT.items() if text in why), done.status)
    if not why:
        why = f"exit status {done.status}" + (f": {os.strerror(number)}" if number in _BY_TEXT.values() else "")
    if number in _BAD_INPUT:
        return BadInputError(
            what, where=where, why=why, remedy=_BAD_INPUT[number] or (remedy if done.status != errno.ENOENT else "")
        )
    return MeasurementError(what, where=where, why=why, remedy=_FAILED.get(number, ""))


def checked(done: Completed, what: str, where: str = "", remedy: str = "") -> str:
    """Return standard output of a command that succeeded. Raises what :func:`refusal` makes of one that did not."""
    if done.status != 0:
        raise refusal(done, what, where, remedy)
    return done.stdout

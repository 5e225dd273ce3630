"""Recorded recoveries of a Lustre server, read into time lines.

A drill NAME is a set of files in one directory: ``NAME_creates_CLIENT.txt`` (number, begin, end, ``ok`` or an errno),
one of ``NAME_events.txt`` (time, text) and ``NAME_umount.txt`` for the fault, and where they are there
``NAME_remount.txt``, ``NAME_recovery_status_1hz.txt``, ``NAME_client_import_1hz.txt`` (``=== time`` before each
answer), ``NAME_client_state_after.txt`` (``lctl get_param mdc.*.state osc.*.state``, which remembers evictions that are
over too soon to be seen otherwise) and ``NAME_recovery_status_after.txt``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from strakes.errors import BadInputError, StrakesError
from strakes.failover.timeline import ClientOperation, Moment, Timeline, outages_of, timeline
from strakes.files import read_regular
from strakes.targets.command import Completed
from strakes.targets.description import TargetRecovery
from strakes.targets.lustre.parameters import Recovery, lost_changes, parse_recovery, parse_states
from strakes.targets.lustre.tool import device, read_params

_MOST_BYTES = 64 << 20
_STATUS = re.compile(
    r"(?m)^(?:mdt|obdfilter)\.(?P<target>[^.\s]+)\.recovery_status=\n?(?P<body>(?:(?!\S+=)[a-zA-Z_ -]+:.*\n?)*)"
)
_HEAD = re.compile(r"(?m)^===(?: (.*))?$")
_DAY_S = 86400.0
_IMPORT = re.compile(r"(?m)^\s*state: (\w+)")


def drills_in(directory: Path) -> tuple[str, ...]:
    """Return the names of the drills recorded in a directory. Raises BadInputError when there is none."""
    names = sorted({path.name.partition("_creates_")[0] for path in directory.glob("*_creates_*.txt")})
    if not names:
        raise BadInputError("no recorded drill", where=str(directory), why="there is no file NAME_creates_CLIENT.txt")
    return tuple(names)


def read_drill(directory: Path, name: str) -> Timeline:
    """Read one drill. Raises BadInputError that names the file and the line that is not understood."""
    done = [*_events(directory / f"{name}_events.txt"), *_command(directory / f"{name}_umount.txt")]
    if not done:
        raise BadInputError(
            "nothing says when the fault was done",
            where=str(directory),
            why=f"neither {name}_events.txt nor {name}_umount.txt does",
        )
    fault_s = done[0].at_s
    notes: list[str] = []
    clients = {
        path.stem.partition("_creates_")[2]: _operations(path, notes)
        for path in sorted(directory.glob(f"{name}_creates_*.txt"))
    }
    _refuse_other_clock(directory, fault_s, clients.values())
    moments = [*done, *_command(directory / f"{name}_remount.txt")]
    moments += _status_changes(directory / f"{name}_recovery_status_1hz.txt")
    moments += _import_changes(directory / f"{name}_client_import_1hz.txt")
    moments += _remembered(directory / f"{name}_client_state_after.txt", fault_s, notes)
    after = _read(directory / f"{name}_recovery_status_after.txt")
    targets = [_target(target, recovery) for target, recovery in _statuses(after)]
    outages = outages_of(clients, fault_s, moments)
    return timeline(name, fault_s, moments, outages, targets, notes)


def _refuse_other_clock(directory: Path, fault_s: float, clients: Iterable[list[ClientOperation]]) -> None:
    """Refuse a fault that no client's record reaches, or whose time has another unit."""
    operations = [operation for client in clients for operation in client]
    if not operations:
        return
    first_s = min(operation.begun_s for operation in operations)
    last_s = max(operation.ended_s for operation in operations)
    if not first_s - _DAY_S <= fault_s <= last_s:
        raise BadInputError(
            "the fault is not in the time of the clients' records",
            where=str(directory),
            why=f"the fault was done at {fault_s:.1f}, and the records cover {first_s:.1f} to {last_s:.1f}",
            remedy="Give all times in seconds since 1970, by one clock, and record clients until after the fault.",
        )


def _seconds(text: str) -> float:
    """Raise ValueError for what is no time."""
    at_s = float(text)
    if not math.isfinite(at_s):
        raise ValueError(text)
    return at_s


def _read(path: Path) -> str:
    """Return the text of the file, empty where there is none."""
    try:
        return read_regular(path, _MOST_BYTES, "a recording cannot be read").decode(errors="replace")
    except BadInputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return ""
        raise


def _without_cut_line(text: str, path: Path, notes: list[str]) -> str:
    """Return a text whose lines all end: of who was killed, or copied while at work, the last one may not."""
    if not text or text.endswith("\n"):
        return text
    notes.append(f"the last line of {path.name} is cut off and was not read")
    return text[: text.rfind("\n") + 1]


def _operations(path: Path, notes: list[str]) -> list[ClientOperation]:
    operations = []
    for number, line in enumerate(_without_cut_line(_read(path), path, notes).splitlines(), 1):
        words = line.split()
        try:
            result = " ".join(words[3:])
            begun_s, ended_s = _seconds(words[1]), _seconds(words[2])
            if ended_s < begun_s:
                raise ValueError(line)
            operations.append(ClientOperation(begun_s, ended_s, "" if result == "ok" else result or "no result"))
        except (IndexError, ValueError) as error:
            raise BadInputError("not a line of a client's record", where=f"{path}:{number}", why=repr(line)) from error
    return operations


def _events(path: Path) -> list[Moment]:
    moments = []
    for number, line in enumerate(_read(path).splitlines(), 1):
        at, _, text = line.partition(" ")
        try:
            moments.append(Moment(_seconds(at), "operator", text))
        except ValueError as error:
            raise BadInputError("not a time and a text", where=f"{path}:{number}", why=repr(line)) from error
    return moments


def _command(path: Path) -> list[Moment]:
    """Read a time, the command, its output, and the time when it was done."""
    lines = _read(path).splitlines()
    command = next((line[2:] for line in lines if line.startswith("$ ")), "")
    times = [float(line) for line in lines if re.fullmatch(r"\d+\.\d+", line)]
    if not command or len(times) < 2:
        return []
    return [Moment(times[0], "operator", command), Moment(times[1], "operator", f"done: {command}")]


def _answers(path: Path) -> Iterator[tuple[float, str]]:
    text = _read(path)
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads), len(text)][1:]
    for head, end in zip(heads, ends, strict=True):
        try:
            at_s = _seconds(head[1] or "")
        except ValueError as error:
            where = f"{path}:{text.count(chr(10), 0, head.start()) + 1}"
            raise BadInputError(
                "not a time in seconds", where=where, why=repr(head[0]), remedy="Write it with: date '+=== %s.%N'"
            ) from error
        yield at_s, text[head.end() : end].removeprefix("\n")


def _statuses(text: str) -> Iterator[tuple[str, Recovery]]:
    for match in _STATUS.finditer(text):
        body = "\n".join(line for line in match["body"].splitlines() if not line.startswith("error:"))
        if body.strip():
            yield match["target"], parse_recovery(body)


def _status_changes(path: Path) -> Iterator[Moment]:
    known: dict[str, str] = {}
    for at_s, text in _answers(path):
        for target, recovery in _statuses(text):
            if known.get(target) != recovery.status:
                known[target] = recovery.status
                yield Moment(at_s, target, recovery.status)


def _import_changes(path: Path) -> Iterator[Moment]:
    known = ""
    for at_s, text in _answers(path):
        match = _IMPORT.search(text)
        if match and match[1] != known:
            known = match[1]
            yield Moment(at_s, "client's connection", known)


def _remembered(path: Path, fault_s: float, notes: list[str]) -> Iterator[Moment]:
    """Return what the client's connections went through from the fault on, as its kernel remembers it."""
    lines = [line for line in _read(path).splitlines() if not line.startswith(("$ ", "[exit status "))]
    try:
        params = read_params(Completed(("lctl", "get_param", "*.*.state"), 0, "\n".join(lines), ""))
        for parameter, text in params.values.items():
            target = re.split("-(?:mdc|osc|osp|lwp)-", device(parameter))[0]
            states = parse_states(text)
            if states.cut_off:
                notes.append(f"the last line of {path.name} is cut off and was not read")
            for change in lost_changes(states.changes):
                # Its times are whole seconds, cut off.
                if change.unix_s + 1 > fault_s:
                    yield Moment(max(change.unix_s, fault_s), f"connection to {target}", change.state)
    except StrakesError as error:
        raise BadInputError("not a client's connections", where=str(path), why=error.where or error.what) from error


def _target(name: str, recovery: Recovery) -> TargetRecovery:
    return TargetRecovery(
        name,
        recovery.status,
        recovery.duration_s,
        recovery.all_clients,
        recovery.evicted_clients,
        recovery.replayed_requests,
    )

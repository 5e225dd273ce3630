"""Read and write the description of an application's I/O (``app.toml``). Unknown keys are errors.

The properties follow publication S1, section 2.1 (see docs/guide/studies.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, get_args

from strakes.base.foreign_text import for_terminal
from strakes.base.toml_file import (
    Key,
    Keys,
    TomlFile,
    count_value,
    flag_value,
    one_of,
    parse_toml,
    read_toml,
    text_value,
)
from strakes.base.units import GIB, KIB, MIB, format_bytes, parse_bytes

Interface = Literal["posix", "mpiio", "hdf5", "pnetcdf", "adios2"]
Operation = Literal["write", "read"]
# How ranks share files. "same": every rank reads the whole file. "gathered": rank 0 does the I/O of all ranks.
Files = Literal["per-process", "shared", "same", "gathered"]

# I/O interfaces that have collective calls as well as independent calls.
_WITH_COLLECTIVES = ("mpiio", "hdf5", "pnetcdf")
_TOLERATED_SHARE, _MOST_PHASES = 0.01, 64  # A plan has at most 64 phases.


@dataclass(frozen=True)
class AppPhase:
    """One I/O phase of an application, which reads or writes one kind of data.

    ``data_bytes``: bytes of each rank. ``share``: share of all I/O time or of all data (None: unknown).
    """

    name: str
    operation: Operation
    files: Files
    data_bytes: int
    record_bytes: tuple[int, ...] = ()
    share: float | None = None
    collective: bool = False

    @property
    def usual_record(self) -> int:
        """Bytes of a typical call. By default, a call moves all data of a rank."""
        return self.record_bytes[0] if self.record_bytes else self.data_bytes


@dataclass(frozen=True)
class App:
    """Description of an application's I/O. ``grouping``: one rank can write the data of up to this many ranks."""

    title: str
    interface: Interface
    ranks: int
    ranks_per_node: int
    phases: tuple[AppPhase, ...]
    grouping: int = 1

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return -(-self.ranks // self.ranks_per_node)

    def file_bytes(self, phase: AppPhase) -> int:
        """Return the size in bytes of one file of the phase."""
        return phase.data_bytes * self.ranks if phase.files in ("shared", "gathered") else phase.data_bytes

    def total_bytes(self, phase: AppPhase) -> int:
        """Return the bytes of all ranks in the phase."""
        return phase.data_bytes * self.ranks


def _size(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("expected a size")
    size = value if isinstance(value, int) else parse_bytes(value)
    if size < 1:
        raise ValueError("expected at least one byte")
    return size


def _sizes(value: object) -> tuple[int, ...]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ValueError("expected a list that is not empty")
    return tuple(_size(size) for size in values)


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError("expected a number above 0 and at most 1")
    return float(value)


_APP_KEYS: Mapping[str, Key] = {
    "title": Key(text_value, "title", 'title = "my simulation"'),
    "interface": Key(one_of(get_args(Interface)), "interface", 'interface = "mpiio"', required=True),
    "ranks": Key(count_value, "ranks", "ranks = 4096", required=True),
    "ranks_per_node": Key(count_value, "ranks_per_node", "ranks_per_node = 32", required=True),
    "grouping": Key(count_value, "grouping", "grouping = 8"),
}
_PHASE_KEYS: Mapping[str, Key] = {
    "name": Key(text_value, "name", 'name = "checkpoint"', required=True),
    "operation": Key(one_of(get_args(Operation)), "operation", 'operation = "write"', required=True),
    "files": Key(one_of(get_args(Files)), "files", 'files = "per-process"', required=True),
    "data_per_rank": Key(_size, "data_bytes", 'data_per_rank = "64MiB"', required=True),
    "record_size": Key(_sizes, "record_bytes", 'record_size = "1MiB", or a list of sizes, most frequent first'),
    "share": Key(_share, "share", "share = 0.8"),
    "collective": Key(flag_value, "collective", "collective = true"),
}


def read_app(path: Path) -> App:
    """Read the description of an application. Raises BadInputError with file, line, key and remedy.

    >>> import tempfile
    >>> text = 'interface = "posix"\\nranks = 64\\nranks_per_node = 32\\n[[phase]]\\nname = "dump"\\n'
    >>> text += 'operation = "write"\\n'
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = (Path(place) / "app.toml").write_text(text + 'files = "shared"\\ndata_per_rank = "64MiB"\\n')
    ...     app = read_app(Path(place) / "app.toml")
    >>> app.nodes, app.file_bytes(app.phases[0])
    (2, 4294967296)
    """
    return _app(read_toml(path, "the application description", "interface"), path.stem)


def app_from_text(text: str, name: str) -> App:
    """Parse the description of an application. ``name``: name of the file, for error messages."""
    return _app(parse_toml(text, name, "the application description"), Path(name).stem)


def _app(file: TomlFile, stem: str) -> App:
    remedy = "Add a [[phase]] table for each kind of reads and writes."
    phases = file.tables("phase", (*_APP_KEYS, "phase"), "the application has no phase", remedy)
    if len(phases) > _MOST_PHASES:
        raise file.error(
            ("phase", _MOST_PHASES), f"more than {_MOST_PHASES} phases", remedy="Join phases that are alike."
        )
    top = {key: value for key, value in file.values.items() if key != "phase"}
    app = App(
        **{"title": stem, **file.fields((), "the application", top, _APP_KEYS)},
        phases=tuple(
            AppPhase(**file.fields(("phase", number), "the phase", entry, _PHASE_KEYS))
            for number, entry in enumerate(phases)
        ),
    )
    for keys, why, remedy in _contradictions(app):
        raise file.error(keys, f"{keys[-1]} contradicts other keys", why=why, remedy=remedy)
    return app


def _contradictions(app: App) -> Iterator[tuple[Keys, str, str]]:
    if app.ranks_per_node > app.ranks:
        why = f"{app.ranks_per_node} ranks on a node, but only {app.ranks} in all"
        yield ("ranks_per_node",), why, "ranks is the number of ranks on all nodes together."
    if app.grouping > app.ranks:
        why = f"{app.grouping} ranks in a group, but only {app.ranks} in all"
        yield ("grouping",), why, "grouping is the number of ranks that share one writer."
    names: set[str] = set()
    for number, phase in enumerate(app.phases):
        for key, why, remedy in _contradictions_of(app, phase):
            yield ("phase", number, key), why, remedy
        if phase.name in names:
            why = f"two phases are called {phase.name!r}"
            yield ("phase", number, "name"), why, "Give each phase a different name."
        names.add(phase.name)
    shares = {number: phase.share for number, phase in enumerate(app.phases) if phase.share is not None}
    total, last = sum(shares.values()), max(shares, default=0)
    if total > 1 + _TOLERATED_SHARE:
        remedy = "Each share is a part of all I/O; their sum must be at most 1."
        yield ("phase", last, "share"), f"the shares add up to {total:.2f}", remedy
    if len(shares) == len(app.phases) and total < 1 - _TOLERATED_SHARE:
        why = f"every phase has a share, and they add up to {total:.2f}"
        yield ("phase", last, "share"), why, "Make the shares add up to 1, or leave out the share of one phase."


def _contradictions_of(app: App, phase: AppPhase) -> Iterator[tuple[str, str, str]]:
    largest, reads = max(phase.record_bytes, default=0), phase.operation == "read"
    if largest > phase.data_bytes:
        why = f"one call moves {format_bytes(largest)}, but a rank has only {format_bytes(phase.data_bytes)}"
        remedy = "record_size is the data of one call; data_per_rank is the data of a rank in the whole phase."
        yield "record_size", why, remedy
    if phase.collective and app.interface not in _WITH_COLLECTIVES:
        remedy = f"Write collective = false, or interface = one of {', '.join(_WITH_COLLECTIVES)}."
        yield "collective", f"{app.interface} has no collective calls", remedy
    if phase.collective and phase.files != "shared":
        why = f"collective calls need a shared file, but files are {phase.files}"
        yield "collective", why, 'Write collective = false, or files = "shared".'
    if app.interface == "pnetcdf" and phase.files == "per-process":
        yield "files", "pnetcdf writes one file for all ranks", 'Write files = "shared".'
    if phase.files == "same" and not reads:
        yield "files", "every rank would write the whole file", 'Write operation = "read", or files = "shared".'
    if phase.files == "gathered" and app.grouping > 1 and not reads:
        why = "rank 0 collects all data, so groups of ranks cannot write"
        yield "files", why, 'Write files = "per-process", or leave out grouping.'


def to_toml(app: App, remarks: tuple[str, ...] = ()) -> str:
    """Return the description as TOML. ``remarks``: comments at the top.

    >>> print(to_toml(App("t", "posix", 4, 2, (AppPhase("out", "write", "shared", 1 << 20),))).splitlines()[0])
    title = "t"
    """
    lines = [*(f"# {for_terminal(remark)}" for remark in remarks), *_lines(app, _APP_KEYS)]
    for phase in app.phases:
        lines += ["", "[[phase]]", *_lines(phase, _PHASE_KEYS)]
    return "\n".join(lines) + "\n"


def _lines(value: App | AppPhase, keys: Mapping[str, Key]) -> Iterator[str]:
    defaults = {field.name: field.default for field in fields(value)}
    for name, key in keys.items():
        member = getattr(value, key.field)
        if member != defaults[key.field]:
            yield f"{name} = {_written(key.field, member)}"


def _written(field: str, value: object) -> str:
    """Return a value as TOML.

    >>> _written("name", "a\\u202eb")
    '"a\\\\U0000202eb"'
    """
    if isinstance(value, tuple):
        sizes = [_written(field, size) for size in value]
        return sizes[0] if len(sizes) == 1 else f"[{', '.join(sizes)}]"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and field.endswith("_bytes"):
        units = ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
        return next((f'"{value // unit}{name}"' for unit, name in units if value % unit == 0), str(value))
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in text)

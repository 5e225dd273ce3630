"""elbencho: result CSV (--csvfile), JSON lines (--jsonfile) and result text (--resfile)."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from strakes.base.units import MIB, counted
from strakes.interop.foreign import Foreign, ForeignFigure, gathered, number, slug, time_of
from strakes.interop.reader_blocks import Block, Document, Printed, Result, Unread, csv_rows
from strakes.model.portrait import Setting

# Names of each setting in the CSV, in the JSON, and in strakes.
_SETTINGS = (
    ("path type", "path_type", "path_type"),
    ("hosts", "hosts", "hosts"),
    ("threads", "threads", "threads"),
    ("dirs", "dirs", "dirs"),
    ("files", "files", "files"),
    ("file size", "file_size", "file_bytes"),
    ("block size", "block_size", "block_bytes"),
    ("direct IO", "direct_io", "direct"),
    ("random", "random_offsets", "random"),
    ("IO depth", "io_depth", "queue_depth"),
)
# The first line of an operation in the text, and a line with a rate. An entry is a file, directory, object or bucket.
_BLOCK = re.compile(r" *([A-Z]\S*)\s+Elapsed ")
_RATE = re.compile(r"^(?:Throughput )?(MiB|MB|[A-Z][a-z]+)/s(?: (write|read))?$")
_MIB = {"MiB": 1.0, "MB": 1e6 / MIB}


@dataclass
class _Phase:
    """An operation of a run with its rates, and its total in MiB or entries.

    Keys of the rates are "mib" and "entries"; for reads during a phase of writes, "read mib" and "read entries".
    """

    operation: str
    rates: dict[str, float | None] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    version: str = ""
    began: str = ""
    total: float = 0.0


def read_csv(block: Block) -> Iterator[Result]:
    """Read the CSV: one row for each phase. Rates are those at the end of the slowest thread."""
    rows = list(csv_rows(block))
    yield from (row for row in rows if isinstance(row, Unread))
    yield from _runs(_of_row(row) for row in rows if not isinstance(row, Unread))


def read_json(documents: Sequence[Document]) -> Iterator[Result]:
    """Read the JSON: one object for each phase, with the configuration of its run."""
    phases = []
    for document in documents:
        if isinstance(document.value, str):
            yield document.unread(f"not valid JSON ({document.value})")
            continue
        config, last = document.value.get("config", {}), document.value.get("last_done", {})
        row = {column: str(config.get(name, "")) for column, name, _ in _SETTINGS}
        row |= {key: str(config.get(key, "")) for key in ("command", "version")}
        row |= {"operation": document.value["phase_type"], "ISO date": str(document.value.get("iso_start_date", ""))}
        for part, side in (("", last), ("rwmix read ", last.get("rwmix_read", {}))):
            row[f"{part}MiB/s [last]"] = str((number(str(side.get("bytes/s", ""))) or 0.0) / MIB)
            row[f"{part}entries/s [last]"] = str(side.get("entries/s", ""))
        phases.append(_of_row(row))
    yield from _runs(phases)


def _of_row(row: Mapping[str, str]) -> _Phase:
    rates = {
        f"{part}{kind}": number(row.get(f"{column}{unit}/s [last]", ""))
        for part, column in (("", ""), ("read ", "rwmix read "))
        for kind, unit in (("mib", "MiB"), ("entries", "entries"))
    }
    settings = {key: row.get(column, "") for column, _, key in _SETTINGS}
    command, version, began = (row.get(key, "").strip() for key in ("command", "version", "ISO date"))
    return _Phase(row["operation"], rates, settings, command, version, began)


def read_text(block: Block) -> Iterator[Result]:
    """Read the table of a run. Operations that occur several times are repetitions, unless services printed them."""
    phases = list(_blocks(block))
    whole = list(_without_services(phases, any("Service now listening" in line for line in block.lines)))
    runs = list(_runs(whole))
    if not runs:
        yield block.unread("the table has no rates")
    left_out = f"{counted(len(phases) - len(whole), 'table')} left out, because each shows one service only"
    yield from (replace(run, notes=(left_out,) if len(whole) < len(phases) else ()) for run in runs)


def _blocks(block: Block) -> Iterator[_Phase]:
    """Yield each operation of a table, with the rates of its parts."""
    command, began = block.search(r"^ *COMMAND LINE: (.*)$"), block.search(r"^ *ISO DATE: (.*)$")
    _, operations = block.parts(_BLOCK.match)
    for operation in operations:
        phase = _Phase(operation.search(_BLOCK.pattern), command=command, began=began)
        for line in operation.lines:
            label, _, values = line.partition(" :")
            value = number(values.split()[-1]) if values.split() else None
            if match := _RATE.match(label.strip()):
                kind = f"{'read ' if match[2] == 'read' else ''}{'mib' if match[1] in _MIB else 'entries'}"
                # --dirstats adds rates of directories below the rates of files.
                phase.rates.setdefault(kind, value * _MIB.get(match[1], 1.0) if value else None)
            elif re.search(r"^Total Mi?B|\btotal$", label.strip()):
                phase.total = phase.total or value or 0.0
        yield phase


def _without_services(phases: Sequence[_Phase], serviced: bool) -> Iterator[_Phase]:
    """Yield the phases without the phases of services. These precede the master's phase, whose total is their sum."""
    for _, group in itertools.groupby(phases, key=lambda phase: phase.operation):
        same = list(group)
        total = sum(phase.total for phase in same[:-1])
        is_sum = len(same) > 2 and total > 0 and math.isclose(total, same[-1].total, rel_tol=0.01)
        yield from same[-1:] if serviced or is_sum else same


def _runs(phases: Iterable[_Phase]) -> Iterator[Foreign]:
    """Yield the phases of each command as one run. Commands without any rate are left out."""
    runs: dict[str, list[_Phase]] = {}
    for phase in phases:
        runs.setdefault(phase.command, []).append(phase)
    for command, same in runs.items():
        words = re.findall(r'"([^"]*)"', command)
        if figures := gathered(figure for phase in same for figure in _figures(phase)):
            yield Foreign(
                tool="elbencho",
                figures=figures,
                version=same[0].version,
                when=time_of(same[0].began),
                command=" ".join(words),
                path=words[-1] if words else "",
            )


def _figures(phase: _Phase) -> Iterator[ForeignFigure]:
    """Yield the figures of one operation. If some ranks read while others write, the figures have different names."""
    settings = _settings(phase.settings)
    mixed = bool(phase.rates.get("read mib") or phase.rates.get("read entries"))
    for part, side in (("", "-write" if mixed else ""), ("read ", "-read")):
        name = f"{slug(phase.operation)}{side}"
        if (mib_per_s := phase.rates.get(f"{part}mib")) is not None:
            yield ForeignFigure(name, "bytes_per_s", (mib_per_s * MIB,), settings)
            name += "-entries"
        if (entries_per_s := phase.rates.get(f"{part}entries")) is not None:
            yield ForeignFigure(name, "operations_per_s", (entries_per_s,), settings)


def _settings(columns: Mapping[str, str]) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    for key, value in columns.items():
        if key in ("direct", "random") and value:
            settings[key] = value in ("1", "true")
        elif value.isdecimal() and len(value) < 19:
            settings[key] = int(value)
        elif value:
            settings[key] = value
    return settings


TEXT = Printed(
    "elbencho text",
    # Loggers put a prefix before the first line of the heading, but not before the second one.
    opens=re.compile(r" *(?:ISO DATE: |COMMAND LINE: |Service now listening|OPERATION\s+RESULT TYPE|=+ =+ +=+ +=+ *$)"),
    table=re.compile(r" *[A-Z]\S*\s+Elapsed (?:ms|time)\s+:"),
    read=read_text,
)

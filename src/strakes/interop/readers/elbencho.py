"""elbencho: result CSV (--csvfile), JSON lines (--jsonfile), result text (--resfile) and live CSV (--livecsv)."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from strakes.findings.portrait import Setting
from strakes.interop.foreign import Foreign, ForeignFigure, gathered, number, slug, time_of
from strakes.interop.readers.blocks import Block, Printed, Result, Unread, json_documents
from strakes.units import MIB, counted

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

# Rates by "mib" and "entries"; the reads of a phase with reads and writes have "read mib" and "read entries".
_Rates = dict[str, float | None]


def is_csv(text: str) -> bool:
    """Return whether the text is a result CSV (--csvfile)."""
    return text.lstrip().startswith("ISO date,") and "operation," in text.split("\n", 1)[0]


def read_csv(text: str) -> Iterator[Result]:
    """Read the CSV: one row for each phase, and the command of its run. The rates are those until the last thread
    finished.
    """
    header, *lines = text.strip().splitlines()
    columns = next(csv.reader([header]))
    runs: dict[str, list[ForeignFigure]] = {}
    first: dict[str, Mapping[str, str]] = {}
    for index, line in enumerate(lines, start=2):
        if line == header or not line.strip():
            continue
        # The last column is the command with quotation marks that are not escaped.
        cells = line.split(",", len(columns) - 1)
        if len(cells) < len(columns) - 1:
            yield Unread(index, index, "the row has fewer columns than the header")
            continue
        row = dict(zip(columns, cells, strict=False))
        command = row.get("command", "").strip()
        first.setdefault(command, row)
        settings = _settings({key: row.get(column, "") for column, _, key in _SETTINGS})
        rates = {
            f"{part}{kind}": number(row.get(f"{column}{unit}/s [last]") or "")
            for part, column in (("", ""), ("read ", "rwmix read "))
            for kind, unit in (("mib", "MiB"), ("entries", "entries"))
        }
        runs.setdefault(command, []).extend(_figures(row["operation"], rates, settings))
    for command, figures in runs.items():
        yield _foreign(figures, first[command].get("version", ""), first[command].get("ISO date", ""), command)


def is_json(text: str) -> bool:
    """Return whether the text is a file of JSON lines (--jsonfile)."""
    return text.lstrip().startswith("{") and '"phase_type"' in text


def read_json(text: str) -> Iterator[Result]:
    """Read the JSON: one object for each phase, with the configuration of its run."""
    runs: dict[str, tuple[list[ForeignFigure], Mapping[str, Any]]] = {}
    for entry in json_documents(text):
        if isinstance(entry, Unread):
            yield entry
            continue
        config, last = entry.get("config", {}), entry.get("last_done", {})
        settings = _settings({key: str(config.get(name, "")) for _, name, key in _SETTINGS})
        rates: _Rates = {}
        for part, side in (("", last), ("read ", last.get("rwmix_read", {}))):
            rate = number(str(side.get("bytes/s", "")))
            rates[f"{part}mib"] = rate / MIB if rate else None
            rates[f"{part}entries"] = number(str(side.get("entries/s", "")))
        figures, _ = runs.setdefault(str(config.get("command", "")).strip(), ([], entry))
        figures += _figures(entry["phase_type"], rates, settings)
    for command, (figures, first) in runs.items():
        config = first.get("config", {})
        yield _foreign(figures, str(config.get("version", "")), str(first.get("iso_start_date", "")), command)


def read_text(block: Block) -> Iterator[Result]:
    """Read the table of a run. Operations that occur several times are repetitions, unless services printed them."""
    command = block.search(r"^ *COMMAND LINE: (.*)$")
    phases = list(_blocks(block.lines))
    serviced = any("Service now listening" in line for line in block.lines)
    whole = list(_without_services(phases, serviced))
    figures = [figure for phase in whole for figure in _figures(phase.name, phase.rates, {})]
    if not figures:
        yield block.unread("the table has no rates")
        return
    left_out = f"{counted(len(phases) - len(whole), 'table')} left out that elbencho services printed, one each"
    foreign = _foreign(figures, "", block.search(r"^ *ISO DATE: (.*)$"), command)
    yield replace(foreign, notes=(left_out,)) if len(whole) < len(phases) else foreign


@dataclass
class _Phase:
    """An operation with its rates and its total in MiB or entries."""

    name: str
    rates: _Rates = field(default_factory=dict)
    total: float = 0.0


def _without_services(phases: Sequence[_Phase], serviced: bool) -> Iterator[_Phase]:
    """Yield the phases of the master: the last of consecutive ones whose total is the sum of the others."""
    for _, group in itertools.groupby(phases, key=lambda phase: phase.name):
        same = list(group)
        total = sum(phase.total for phase in same[:-1])
        is_sum = len(same) > 2 and total > 0 and math.isclose(total, same[-1].total, rel_tol=0.01)
        yield from same[-1:] if serviced or is_sum else same


def _blocks(lines: Sequence[str]) -> Iterator[_Phase]:
    """Yield each operation of a table, with the rates of its parts."""
    phase: _Phase | None = None
    for line in lines:
        if opened := _BLOCK.match(line):
            if phase:
                yield phase
            phase = _Phase(opened[1])
        label, _, values = line.partition(" :")
        if not phase or not values.split():
            continue
        value = number(values.split()[-1])
        if match := _RATE.match(label.strip()):
            kind = f"{'read ' if match[2] == 'read' else ''}{'mib' if match[1] in _MIB else 'entries'}"
            # --dirstats adds rates of directories below the rates of files.
            phase.rates.setdefault(kind, value * _MIB.get(match[1], 1.0) if value else None)
        elif re.search(r"^Total Mi?B|\btotal$", label.strip()):
            phase.total = phase.total or value or 0.0
    if phase:
        yield phase


def is_live_csv(text: str) -> bool:
    """Return whether the text is a live CSV (--livecsv)."""
    return bool(re.match(r"\s*(ISO Date,)?Label,Phase,RuntimeMS,Rank,", text))


def read_live_csv(text: str) -> Iterator[Result]:
    """Read the log of all runs: what each phase had done at its last line, divided by the time until then."""
    header, *lines = text.strip().splitlines()
    figures: list[ForeignFigure] = []
    rates: _Rates = {}
    began, phase, until = "", "", 0.0
    for row in csv.DictReader([header, *(line for line in lines if line != header)]):
        began = began or row.get("ISO Date", "")
        milliseconds = number(row["RuntimeMS"])
        if row["Rank"] != "Total" or milliseconds is None:
            continue
        if row["Phase"] != phase or milliseconds < until:
            figures += _figures(phase, rates, {})
            phase, rates = row["Phase"], {}
        until = milliseconds
        done, entries = number(row["DoneBytes"]), number(row["Entries"])
        part = "read " if row["MixType"] == "Read" else ""
        rates[f"{part}mib"] = done / MIB / until * 1000 if done else None
        rates[f"{part}entries"] = entries / until * 1000 if entries else None
    figures += _figures(phase, rates, {})
    note = "from a live log: the part of each phase after its last line is missing"
    yield Foreign("elbencho", gathered(figures), when=time_of(began), notes=(note,))


def _figures(operation: str, rates: _Rates, settings: Mapping[str, Setting]) -> Iterator[ForeignFigure]:
    """Yield the figures of one operation. If some ranks read while others write, the names distinguish them."""
    mixed = bool(rates.get("read mib") or rates.get("read entries"))
    for part, side in (("", "-write" if mixed else ""), ("read ", "-read")):
        name = f"{slug(operation)}{side}"
        if (mib_per_s := rates.get(f"{part}mib")) is not None:
            yield ForeignFigure(name, "bytes_per_s", (mib_per_s * MIB,), settings)
            name += "-entries"
        if (entries_per_s := rates.get(f"{part}entries")) is not None:
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


def _foreign(figures: list[ForeignFigure], version: str, began: str, command: str) -> Foreign:
    words = re.findall(r'"([^"]*)"', command)
    return Foreign(
        tool="elbencho",
        figures=gathered(figures),
        version=version,
        when=time_of(began),
        command=" ".join(words),
        path=words[-1] if words else "",
    )


TEXT = Printed(
    "elbencho text",
    opens=re.compile(r" *(?:ISO DATE: |COMMAND LINE: |Service now listening|OPERATION\s+RESULT TYPE\s+FIRST DONE)"),
    table=re.compile(r" *[A-Z]\S*\s+Elapsed (?:ms|time)\s+:"),
    read=read_text,
)

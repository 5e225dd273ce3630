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

# Names of a setting in the CSV, in the JSON and in strakes.
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
# Patterns of an operation's first line, and of the labels of rates. An entry is a file, directory, object or bucket.
_BLOCK = re.compile(r" *([A-Z]\S*)\s+Elapsed ")
_RATE = re.compile(r"^(?:Throughput )?(MiB|MB|[A-Z][a-z]+)/s(?: (write|read))?$")
_TOTAL = re.compile(r"^(?=Total Mi?B$|[A-Z][a-z]+s total$)(?:Total )?(\S+)")
_MIB = {"MiB": 1.0, "MB": 1e6 / MIB}
_OF_SERVICES = "{1} tables of {0} without a heading between them: tables of services"
_Rates = dict[str, float | None]


@dataclass
class _Phase:
    """An operation of a run, with its rates.

    Keys of ``rates``: "mib" and "entries" per second, or "read mib" and "read entries" for reads in a writing phase.
    """

    operation: str
    rates: _Rates = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    version: str = ""
    began: str = ""


def read_csv(block: Block) -> Iterator[Result]:
    """Read the CSV, which has a row for each phase. Rates are from the end of the slowest thread."""
    rows = list(csv_rows(block))
    yield from (row for row in rows if isinstance(row, Unread))
    yield from _runs(_of_row(row) for row in rows if not isinstance(row, Unread))


def read_json(documents: Sequence[Document]) -> Iterator[Result]:
    """Read the JSON, which has an object for each phase with the configuration of its run."""
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
    """Read the tables of a run. An operation has one table, or several if services printed to the same output."""
    command, began = block.search(r"^ *COMMAND LINE: (.*)$"), block.search(r"^ *ISO DATE: (.*)$")
    services = len(re.findall(r"(?i)service now listening", block.text))
    phases, unread, left_out = list[_Phase](), list[Unread](), 0
    _, tables = block.parts(_BLOCK.match)
    for operation, group in itertools.groupby(tables, key=lambda table: table.search(_BLOCK.pattern)):
        same = list(group)
        rows = [list(_rows(table)) for table in same]
        rates = _of_coordinator(rows, services)
        why = "the table of {} has rows of others" if len(same) == 1 else _OF_SERVICES
        if not any(rows):
            is_cut = same[-1] is tables[-1] and not any(line.strip() == "---" for line in same[-1].lines)
            why, rates = "the table of {} is cut off", None if is_cut else {}
        if rates is None:
            unread.append(replace(same[-1].unread(why.format(operation, len(same))), first=same[0].first))
        else:
            left_out += len(same) - 1 if rates else 0
            phases.append(_Phase(operation, rates, command=command, began=began))
    runs = list(_runs(phases))
    if not runs and not unread:
        yield block.unread("the table has no rates")
    note = f"{counted(left_out, 'table')} left out, because each shows one service only"
    yield from (replace(run, notes=(note,) if left_out else ()) for run in runs)
    yield from unread


def _rows(table: Block) -> Iterator[tuple[str, float | None]]:
    """Yield (kind, value) of each row of a table: rates, "total mib", "total entries", "ms" (time) and "end"."""
    if not any(_RATE.match(label := line.partition(" :")[0].strip()) or _TOTAL.match(label) for line in table.lines):
        return
    for line in table.lines:
        label, _, values = line.partition(" :")
        value = number(values.split()[-1]) if values.split() else None
        if line.strip() == "---":
            yield "end", None
        elif _BLOCK.match(line) and label.rstrip().endswith(" ms"):
            yield "ms", value
        elif match := _RATE.match(label.strip()) or _TOTAL.match(label.strip()):
            unit = "mib" if match[1] in _MIB else "entries"
            part = "total " if match.re is _TOTAL else "read " if match[2] == "read" else ""
            yield part + unit, value * _MIB.get(match[1], 1.0) if value else None


def _of_coordinator(tables: Sequence[Sequence[tuple[str, float | None]]], services: int) -> _Rates | None:
    """Return the coordinator's rates for an operation, or None if the services' rates look the same.

    ``tables``: rows of the coordinator's and the services' tables. The coordinator's total is the sum of the services'
    totals. Rows may be mixed, because all write to the same log. Rates that match the total and a time are then used.
    """
    # With --dirstats, rates of directories follow the rates of files.
    rates = [dict(reversed(table)) for table in tables]
    is_mixed = any(
        kind != "end" for table in tables for kind, _ in itertools.dropwhile(lambda row: row[0] != "end", table)
    )
    if len(tables) == 1:
        return None if is_mixed else rates[0]
    found: _Rates = {}
    for unit in ("mib", "entries"):
        values, totals, times_ms = (
            [value for table in tables for kind, value in table if kind == wanted and value]
            for wanted in (unit, f"total {unit}", "ms")
        )
        most = max(totals, default=0.0)
        is_sum = len(totals) == len(tables) and math.isclose(sum(totals), 2 * most, rel_tol=0.01)
        if not is_sum or (len(tables) == 2 and services != 1):
            continue
        if not is_mixed:
            return next((one for one in reversed(rates) if one.get(f"total {unit}") == most), None)
        matching = {rate for rate in values for ms in times_ms if math.isclose(rate * ms / 1000, most, rel_tol=0.01)}
        if len(matching) == 1:
            found[unit] = matching.pop()
    kinds = {kind for table in tables for kind, _ in table if kind.endswith(("mib", "entries"))}
    return found if found.keys() >= {kind for kind in kinds if "total" not in kind} and found else None


def _runs(phases: Iterable[_Phase]) -> Iterator[Foreign]:
    """Yield a run for each command, from its phases. Commands without a rate are left out."""
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
    """Yield the figures of one operation, with the suffix -read or -write if some ranks read while others write."""
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
    # Loggers put a prefix only before the first line of the heading.
    opens=re.compile(r" *(?:ISO DATE: |COMMAND LINE: |Service now listening|OPERATION\s+RESULT TYPE|=+ =+ +=+ +=+ *$)"),
    table=re.compile(r" *[A-Z]\S*\s+Elapsed (?:ms|time)\s+:"),
    read=read_text,
)

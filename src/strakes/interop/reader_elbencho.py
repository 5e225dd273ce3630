"""elbencho: result CSV (--csvfile), JSON lines (--jsonfile) and result text (--resfile)."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from strakes.base.errors import BadInputError
from strakes.base.units import MIB, counted, parse_bytes
from strakes.interop.command_options import table_of
from strakes.interop.foreign import Foreign, ForeignFigure, gathered, number, settings_of, slug, time_of
from strakes.interop.reader_blocks import Block, Document, Printed, Result, Unread, csv_rows

# Name of a setting in elbencho's CSV -> names in its JSON and in strakes.
_SETTINGS: Mapping[str, Sequence[str]] = table_of("readers")["elbencho"]
# Patterns of the first line of an operation, and of the label of a rate, such as IOPS, MiB/s, Files/s or Buckets/s.
_BLOCK = re.compile(r" *([A-Z]\S*)\s+Elapsed ")
_RATE = re.compile(r"^(?:Throughput )?(IOPS|(?:MiB|MB|[A-Z][a-z]+)(?=/s))(?:/s)?(?: (write|read))?$")
_BLOCK_SIZE = re.compile(r" (?:-[a-zA-Z]*b ?|--block[ =])(\S+)")
_TOTAL = re.compile(r"^(?=Total Mi?B$|[A-Z][a-z]+s total$)(?:Total )?(\S+)")
# Column of elbencho's CSV -> key in its JSON.
_RATES = {"entries/s": "entries/s", "IOPS": "iops"}
_MIB = {"MiB": 1.0, "MB": 1e6 / MIB}
# Below this rate, elbencho prints fewer than three digits, because it prints whole MiB/s.
_COARSE_MIB = 100
_OF_SERVICES = "{1} tables of {0} without a heading between them: they may be tables of services"
_Rates = dict[str, float | None]


@dataclass
class _Phase:
    """An operation in a run of elbencho, with its rates.

    Keys of ``rates``: "mib", "entries" and "iops" (each per second), or "read mib" etc. for reads in a writing phase.
    """

    operation: str
    rates: _Rates = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    version: str = ""
    began: str = ""


def read_csv(block: Block) -> Iterator[Result]:
    """Read elbencho's CSV, with a row per phase. Use the rates over the time of the slowest thread ("last")."""
    rows = list(csv_rows(block, "MiB/s [last]", "entries/s [last]"))
    yield from (row for row in rows if isinstance(row, Unread))
    yield from _runs(_of_row(row) for row in rows if not isinstance(row, Unread))


def read_json(documents: Sequence[Document]) -> Iterator[Result]:
    """Read elbencho's JSON, which has an object for each phase. The object includes the configuration of the run."""
    phases = []
    for document in documents:
        if isinstance(document.value, str):
            yield document.unread(f"not valid JSON ({document.value})")
            continue
        config, last = document.value.get("config", {}), document.value.get("last_done", {})
        row = {column: str(config.get(name, "")) for column, (name, _) in _SETTINGS.items()}
        row |= {key: str(config.get(key, "")) for key in ("command", "version")}
        row |= {"operation": document.value["phase_type"], "ISO date": str(document.value.get("iso_start_date", ""))}
        for part, side in (("", last), ("rwmix read ", last.get("rwmix_read", {}))):
            row[f"{part}MiB/s [last]"] = str((number(str(side.get("bytes/s", ""))) or 0.0) / MIB)
            row |= {f"{part}{column} [last]": str(side.get(key, "")) for column, key in _RATES.items()}
        phases.append(_of_row(row))
    yield from _runs(phases)


def _of_row(row: Mapping[str, str]) -> _Phase:
    rates = {
        f"{part}{kind}": number(row.get(f"{column}{unit} [last]", ""))
        for part, column in (("", ""), ("read ", "rwmix read "))
        for kind, unit in (("mib", "MiB/s"), ("entries", "entries/s"), ("iops", "IOPS"))
    }
    settings = {key: row.get(column, "") for column, (_, key) in _SETTINGS.items()}
    command, version, began = (row.get(key, "").strip() for key in ("command", "version", "ISO date"))
    return _Phase(row["operation"], rates, settings, command, version, began)


def read_text(block: Block) -> Iterator[Result]:
    """Read the tables of a run: one per operation, or more if several services of elbencho share the output."""
    command, began = block.search(r"^ *COMMAND LINE: (.*)$"), block.search(r"^ *ISO DATE: (.*)$")
    services = len(re.findall(r"(?i)service now listening", block.text))
    phases, unread, left_out = list[_Phase](), list[Unread](), 0
    _, tables = block.parts(_BLOCK.match)
    for operation, group in itertools.groupby(tables, key=lambda table: table.search(_BLOCK.pattern)):
        same = list(group)
        rows = [list(_rows(table)) for table in same]
        rates = _of_coordinator(rows, services)
        why = "the table of {} contains rows of other tables" if len(same) == 1 else _OF_SERVICES
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
    """Yield (kind, value) of a table's rows. Kind: a rate, a total, "ms" (elapsed time) or "end" (the line "---")."""
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
            unit = "mib" if match[1] in _MIB else "iops" if match[1] == "IOPS" else "entries"
            part = "total " if match.re is _TOTAL else "read " if match[2] == "read" else ""
            yield part + unit, value * _MIB.get(match[1], 1.0) if value else None


def _of_coordinator(tables: Sequence[Sequence[tuple[str, float | None]]], services: int) -> _Rates | None:
    """Return the coordinator's rates, or None if it is unclear which table is the coordinator's.

    ``tables``: rows of each table. The coordinator's total is the sum over all services.
    """
    # With --dirstats, elbencho prints rates of files and then rates of directories. Keep the rates of files.
    rates = [dict(reversed(table)) for table in tables]
    is_mixed = any(
        kind != "end" for table in tables for kind, _ in itertools.dropwhile(lambda row: row[0] != "end", table)
    )
    if len({tuple(kind for kind, _ in table if kind != "end") for table in tables}) > 1 or is_mixed:
        return None
    if len(tables) == 1:
        return rates[0]
    for unit in ("mib", "entries"):
        totals = [value for table in tables for kind, value in table if kind == f"total {unit}" and value]
        most = max(totals, default=0.0)
        is_sum = len(totals) == len(tables) and math.isclose(sum(totals), 2 * most, rel_tol=0.01)
        if is_sum and (len(tables) > 2 or services == 1):
            return next((one for one in reversed(rates) if one.get(f"total {unit}") == most), None)
    return None


def _runs(phases: Iterable[_Phase]) -> Iterator[Foreign]:
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
    settings = settings_of(phase.settings, {key: key for _, key in _SETTINGS.values()})
    mixed = any(rate for kind, rate in phase.rates.items() if kind.startswith("read "))
    for part, side in (("", "-write" if mixed else ""), ("read ", "-read")):
        name = f"{slug(phase.operation)}{side}"
        mib_per_s, entries_per_s, iops = (phase.rates.get(f"{part}{kind}") for kind in ("mib", "entries", "iops"))
        mib_per_s = _exact(mib_per_s, iops, phase)
        if mib_per_s is not None:
            yield ForeignFigure(name, "bytes_per_s", (mib_per_s * MIB,), settings)
        if entries_per_s is not None:
            has_bytes = "" if mib_per_s is None else "-entries"
            yield ForeignFigure(f"{name}{has_bytes}", "operations_per_s", (entries_per_s,), settings)
        if iops is not None:
            yield ForeignFigure(f"{name}-operations", "operations_per_s", (iops,), settings)


def _exact(mib_per_s: float | None, iops: float | None, phase: _Phase) -> float | None:
    """Return IOPS x block size in MiB/s, or the less exact printed MiB/s if the two values disagree."""
    printed = mib_per_s or 0.0
    typed = _BLOCK_SIZE.search(phase.command.replace('"', ""))
    size = phase.settings.get("block_bytes") or (typed[1] if typed else "")
    if iops is None or printed >= _COARSE_MIB or printed % 1 or not size:
        return mib_per_s
    with suppress(BadInputError):
        block_mib = parse_bytes(size) / MIB
        # elbencho truncates MiB/s and IOPS to whole numbers, so the values may differ by this much.
        if -block_mib < iops * block_mib - printed < 1:
            return iops * block_mib
    return mib_per_s


TEXT = Printed(
    "elbencho text",
    opens=re.compile(r" *(?:ISO DATE: |COMMAND LINE: |Service now listening|OPERATION\s+RESULT TYPE|=+ =+ +=+ +=+ *$)"),
    table=re.compile(r" *[A-Z]\S*\s+Elapsed (?:ms|time)\s+:"),
    read=read_text,
)

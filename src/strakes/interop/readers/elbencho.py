"""elbencho: result CSV (--csvfile), JSON lines (--jsonfile), result text (--resfile) and live CSV (--livecsv)."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from strakes.errors import BadInputError
from strakes.findings.portrait import Setting
from strakes.interop.foreign import Foreign, ForeignFigure, gathered, number, slug, time_of
from strakes.units import MIB

# Names of a setting in the CSV, in the JSON, and here.
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

# Of the text: a block's first line, and its rates; files, directories, objects and buckets are all entries.
_BLOCK = re.compile(r"^([A-Z]\S*)\s+Elapsed ")
_RATE = re.compile(r"^(?:Throughput )?(MiB|MB|[A-Z][a-z]+)/s(?: (write|read))?$")
_MIB = {"MiB": 1.0, "MB": 1e6 / MIB}

# Parts of a phase in which some read and some write; a plain one has the first only.
_PARTS = ("", "read")


def is_csv(text: str) -> bool:
    """Return whether the text is a result CSV (--csvfile)."""
    return text.lstrip().startswith("ISO date,") and "operation," in text.split("\n", 1)[0]


def read_csv(text: str) -> Foreign:
    """Read the CSV: one row for each phase of each run. The rates are those until the last thread finished."""
    header, *lines = text.strip().splitlines()
    columns = next(csv.reader([header]))
    figures: list[ForeignFigure] = []
    rows = []
    for index, line in enumerate(lines, start=2):
        if line == header:
            continue
        # The last column is the command with quotes of its own, which are not escaped.
        cells = line.split(",", len(columns) - 1)
        if len(cells) < len(columns) - 1:
            raise BadInputError("a row has fewer columns than the header", where=f"line {index}")
        row = dict(zip(columns, cells, strict=False))
        rows.append(row)
        settings = _settings({key: row.get(column, "") for column, _, key in _SETTINGS})
        rates = {
            part: {
                "mib": number(row.get(f"{column}MiB/s [last]") or ""),
                "entries": number(row.get(f"{column}entries/s [last]") or ""),
            }
            for part, column in zip(_PARTS, ("", "rwmix read "), strict=True)
        }
        figures += _figures(row["operation"], rates, settings)
    first = rows[0] if rows else {}
    return _foreign(figures, first.get("version", ""), first.get("ISO date", ""), first.get("command", ""))


def is_json(text: str) -> bool:
    """Return whether the text is a file of JSON lines (--jsonfile)."""
    return text.lstrip().startswith("{") and '"phase_type"' in text


def read_json(text: str) -> Foreign:
    """Read the JSON: one object for each phase, one after the other."""
    figures: list[ForeignFigure] = []
    objects = list(_objects(text))
    for entry in objects:
        config, last = entry.get("config", {}), entry.get("last_done", {})
        settings = _settings({key: str(config.get(name, "")) for _, name, key in _SETTINGS})
        rates: dict[str, dict[str, float | None]] = {}
        for part, side in zip(_PARTS, (last, last.get("rwmix_read", {})), strict=True):
            rate = number(str(side.get("bytes/s", "")))
            rates[part] = {"mib": rate / MIB if rate else None, "entries": number(str(side.get("entries/s", "")))}
        figures += _figures(entry["phase_type"], rates, settings)
    config = objects[0].get("config", {}) if objects else {}
    began = str(objects[0].get("iso_start_date", "")) if objects else ""
    return _foreign(figures, str(config.get("version", "")), began, str(config.get("command", "")))


def is_text(text: str) -> bool:
    """Return whether the text is a result text (--resfile)."""
    return bool(re.search(r"^OPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE", text, re.MULTILINE))


def read_text(text: str) -> Foreign:
    """Read the tables of all runs in the text. Runs with different command lines are different measurements."""
    figures: list[ForeignFigure] = []
    commands = re.findall(r"^COMMAND LINE: (.*)$", text, re.MULTILINE)
    began = re.search(r"^ISO DATE: (.*)$", text, re.MULTILINE)
    tables = re.split(r"^OPERATION\s+RESULT TYPE\s.*$", text, flags=re.MULTILINE)[1:]
    for index, table in enumerate(tables):
        same = len(commands) == len(tables) and len(set(commands)) == 1
        settings: dict[str, Setting] = {} if same or len(tables) == 1 else {"table": index + 1}
        for name, rates in _blocks(table):
            figures += _figures(name, rates, settings)
    return _foreign(figures, "", began[1] if began else "", commands[0] if commands else "")


def _blocks(table: str) -> Iterator[tuple[str, dict[str, dict[str, float | None]]]]:
    """Yield each operation of a table, with the rates of its parts."""
    name = ""
    rates: dict[str, dict[str, float | None]] = {}
    for line in table.splitlines():
        if opened := _BLOCK.match(line):
            if name:
                yield name, rates
            name, rates = opened[1], {}
        label, _, values = line.partition(" :")
        if name and (match := _RATE.match(label.strip())) and values.split():
            part = rates.setdefault(match[2] if match[2] == "read" else "", {})
            value = number(values.split()[-1])
            # With --dirstats the directories that the files are in are counted, too, below the files.
            kind = "mib" if match[1] in _MIB else "entries"
            part.setdefault(kind, value * _MIB.get(match[1], 1.0) if value else None)
    if name:
        yield name, rates


def is_live_csv(text: str) -> bool:
    """Return whether the text is a live CSV (--livecsv)."""
    return bool(re.match(r"\s*(ISO Date,)?Label,Phase,RuntimeMS,Rank,", text))


def read_live_csv(text: str) -> Foreign:
    """Read the log of all runs: what each phase had done at its last line, divided by the time until then."""
    header, *lines = text.strip().splitlines()
    figures: list[ForeignFigure] = []
    rates: dict[str, dict[str, float | None]] = {}
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
        rates["read" if row["MixType"] == "Read" else ""] = {
            "mib": done / MIB / until * 1000 if done else None,
            "entries": entries / until * 1000 if entries else None,
        }
    figures += _figures(phase, rates, {})
    note = "from a live log: the part of each phase after its last line is missing"
    return Foreign("elbencho", gathered(figures), when=time_of(began), notes=(note,))


def _figures(
    operation: str, rates: Mapping[str, Mapping[str, float | None]], settings: Mapping[str, Setting]
) -> list[ForeignFigure]:
    """Return the figures of one operation. Where some ranks read while others write, the names say which."""
    name = slug(operation)
    written, read = (rates.get(part, {}) for part in _PARTS)
    if not any(read.values()):
        return _pair(name, written.get("mib"), written.get("entries"), settings)
    return [
        *_pair(f"{name}-write", written.get("mib"), written.get("entries"), settings),
        *_pair(f"{name}-read", read.get("mib"), read.get("entries"), settings),
    ]


def _pair(
    name: str, mib_per_s: float | None, entries_per_s: float | None, settings: Mapping[str, Setting]
) -> list[ForeignFigure]:
    figures = []
    if mib_per_s is not None:
        figures.append(ForeignFigure(name, "bytes_per_s", (mib_per_s * MIB,), settings))
    if entries_per_s is not None:
        figures.append(
            ForeignFigure(
                f"{name}-entries" if mib_per_s is not None else name, "operations_per_s", (entries_per_s,), settings
            )
        )
    return figures


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


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    place = 0
    while place < len(text.rstrip()):
        place += len(text[place:]) - len(text[place:].lstrip())
        document, place = decoder.raw_decode(text, place)
        yield document


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

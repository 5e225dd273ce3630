"""elbencho: result CSV (--csvfile), JSON lines (--jsonfile), result text (--resfile) and live CSV (--livecsv)."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from strakes.errors import BadInputError
from strakes.interop.foreign import Figure, Foreign, gathered, number, slug, time_of
from strakes.portrait.model import Setting
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

_TEXT_RATES = {"Files/s": "entries", "Dirs/s": "entries", "Throughput MiB/s": "mib"}


def is_csv(text: str) -> bool:
    return text.lstrip().startswith("ISO date,") and "operation," in text.split("\n", 1)[0]


def read_csv(text: str) -> Foreign:
    """One row for each phase; repeated runs append theirs. The rate until the last thread finished is taken."""
    header, *lines = text.strip().splitlines()
    columns = next(csv.reader([header]))
    figures: list[Figure] = []
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
        name = slug(row["operation"])
        figures += _pair(name, number(row.get("MiB/s [last]", "")), number(row.get("entries/s [last]", "")), settings)
    first = rows[0] if rows else {}
    return _foreign(figures, first.get("version", ""), first.get("ISO date", ""), first.get("command", ""))


def is_json(text: str) -> bool:
    return text.lstrip().startswith("{") and '"phase_type"' in text


def read_json(text: str) -> Foreign:
    """One object for each phase, one after the other."""
    figures: list[Figure] = []
    objects = list(_objects(text))
    for one in objects:
        config, last = one.get("config", {}), one.get("last_done", {})
        settings = _settings({key: str(config.get(name, "")) for _, name, key in _SETTINGS})
        rate = number(str(last.get("bytes/s", "")))
        figures += _pair(slug(one["phase_type"]), rate / MIB if rate else None, number(str(last.get("entries/s", ""))), settings)
    config = objects[0].get("config", {}) if objects else {}
    began = str(objects[0].get("iso_start_date", "")) if objects else ""
    return _foreign(figures, str(config.get("version", "")), began, str(config.get("command", "")))


def is_text(text: str) -> bool:
    return bool(re.search(r"^OPERATION\s+RESULT TYPE\s+FIRST DONE\s+LAST DONE", text, re.MULTILINE))


def read_text(text: str) -> Foreign:
    """The table: an operation opens its block, its rates follow."""
    rates: dict[str, dict[str, float | None]] = {}
    name = ""
    command = re.search(r"^COMMAND LINE: (.*)$", text, re.MULTILINE)
    began = re.search(r"^ISO DATE: (.*)$", text, re.MULTILINE)
    for line in text.splitlines():
        label, _, values = line.partition(" :")
        if opened := re.match(r"([A-Z]+)\s+(.*)", label):
            name, label = slug(opened[1]), opened[2]
        if label.strip() in _TEXT_RATES and values.split():
            rates.setdefault(name, {})[_TEXT_RATES[label.strip()]] = number(values.split()[-1])
    figures = [one for name, found in rates.items() for one in _pair(name, found.get("mib"), found.get("entries"), {})]
    return _foreign(figures, "", began[1] if began else "", command[1] if command else "")


def is_live_csv(text: str) -> bool:
    return text.lstrip().startswith("ISO Date,Label,Phase,RuntimeMS,Rank,")


def read_live_csv(text: str) -> Foreign:
    """The live log: what was done until the last line of each phase, over the time until then."""
    last: dict[str, Mapping[str, str]] = {}
    began = ""
    for row in csv.DictReader(text.strip().splitlines()):
        began = began or row["ISO Date"]
        if row["Rank"] == "Total":
            last[row["Phase"]] = row
    figures: list[Figure] = []
    for phase, done_last in last.items():
        seconds = (number(done_last["RuntimeMS"]) or 0) / 1000
        if seconds:
            done, entries = number(done_last["DoneBytes"]), number(done_last["Entries"])
            figures += _pair(slug(phase), done / MIB / seconds if done else None, entries / seconds if entries else None, {})
    note = "from a live log: what each phase did after its last line is missing"
    return Foreign("elbencho", gathered(figures), when=time_of(began), notes=(note,))


def _pair(name: str, mib_per_s: float | None, entries_per_s: float | None, settings: Mapping[str, Setting]) -> list[Figure]:
    figures = []
    if mib_per_s is not None:
        figures.append(Figure(name, "bytes_per_s", (mib_per_s * MIB,), settings))
    if entries_per_s is not None:
        figures.append(Figure(f"{name}-entries" if mib_per_s is not None else name, "operations_per_s", (entries_per_s,), settings))
    return figures


def _settings(found: Mapping[str, str]) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    for key, value in found.items():
        if key in ("direct", "random") and value:
            settings[key] = value in ("1", "true")
        elif value.isdigit():
            settings[key] = int(value)
        elif value:
            settings[key] = value
    return settings


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder()
    place = 0
    while place < len(text.rstrip()):
        place += len(text[place:]) - len(text[place:].lstrip())
        one, place = decoder.raw_decode(text, place)
        yield one


def _foreign(figures: list[Figure], version: str, began: str, command: str) -> Foreign:
    words = re.findall(r'"([^"]*)"', command)
    return Foreign(
        tool="elbencho",
        figures=gathered(figures),
        version=version,
        when=time_of(began),
        command=" ".join(words),
        path=words[-1] if words else "",
    )

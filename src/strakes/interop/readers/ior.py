"""IOR: the text it prints (2.10 to 4.1), its JSON summary, broken or not, its CSV summary and its per-rank CSV."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from strakes.errors import BadInputError
from strakes.findings.portrait import Setting
from strakes.interop.foreign import Foreign, ForeignFigure, gathered, number, time_of
from strakes.units import MIB, counted, parse_bytes

# IOR's words for what strakes calls a setting.
_SETTINGS = {
    "api": "api",
    "access": "layout",
    "tasks": "ranks",
    "clients": "ranks",
    "numtasks": "ranks",
    "participating tasks": "ranks",
    "nodes": "nodes",
    "segments": "segments",
    "segmentcount": "segments",
    "xfersize": "transfer_bytes",
    "transfersize": "transfer_bytes",
    "blocksize": "block_bytes",
    "ordering inter file": "ordering",
    "type": "type",
}
# Options and results of each test.
_Tests = list[tuple[Mapping[str, Any], list[Any]]]
_PAIR = re.compile(r"^\s*([A-Za-z][A-Za-z0-9 /_]*?)\s*[:=]\s*(.*?)\s*$")
_ROW = re.compile(r"^\s*(write|read)\s+(\S+)(?:\s+\S+){5,}\s*$")
_OPENS_TEST = ("Options:", "Summary:")
_MAX = re.compile(r"^\s*Max (Write|Read):\s+(\S+) MiB/sec")
_MAX_ONLY = "the file holds only the fastest repetition (Max Write, Max Read)"


def is_text(text: str) -> bool:
    """Return whether the text is what IOR prints."""
    return not is_json(text) and bool(
        re.search(r"^[ \t]*(IOR-\d|access\s+bw\(MiB/s\)|Max (Write|Read):.*MiB/sec)", text, re.MULTILINE)
    )


def read_text(text: str) -> Foreign:
    """Read what IOR prints. The output of a script has several tests, each with its own options before it."""
    figures: list[ForeignFigure] = []
    fastest: list[ForeignFigure] = []
    settings: dict[str, Setting] = {}
    facts: dict[str, str] = {}
    unusable = 0
    header_seen = in_table = False
    for line in text.splitlines():
        words = line.split()
        if line.strip() in _OPENS_TEST:
            # Old versions print the header of the table once for all tests.
            settings, in_table = {}, header_seen
        elif words[:2] == ["access", "bw(MiB/s)"]:
            header_seen = in_table = True
        elif words[:1] == ["Operation"] or line.strip() == "Summary of all tests:":
            in_table = False
        elif in_table and (row := _ROW.match(line)):
            value = number(row[2])
            unusable += value is None
            if value is not None:
                figures.append(ForeignFigure(row[1], "bytes_per_s", (value * MIB,), dict(settings)))
        elif most := _MAX.match(line):
            value = number(most[2])
            if value is not None:
                fastest.append(ForeignFigure(most[1].lower(), "bytes_per_s", (value * MIB,), dict(settings)))
        elif pair := _PAIR.match(line):
            facts.setdefault(pair[1].strip().lower(), pair[2])
            settings.update(_setting(pair[1], pair[2]))
    notes = [_left_out(unusable)] if unusable else []
    if not figures and fastest:
        figures, notes = fastest, [*notes, _MAX_ONLY]
    version = re.search(r"IOR-(\S+?):", text)
    return _foreign(figures, facts, version[1] if version else "", notes)


def _left_out(unusable: int) -> str:
    return f"{counted(unusable, 'repetition')} left out, without usable bandwidth (nan, inf or 0)"


def is_json(text: str) -> bool:
    """Return whether the text is IOR's JSON summary, broken or not."""
    return "{" in text and '"access"' in text and bool(re.search(r'"bwM[iI]B"', text))


def read_json(text: str) -> Foreign:
    """Read the JSON summary.

    If it is not valid JSON (other lines in it, lost brackets, nan), read its results one by one.
    """
    facts = {
        key: match[1]
        for key in ("Began", "Command line", "Machine", "Version")
        if (match := re.search(rf'"{key}"\s*:\s*"(.*?)"\s*,', text))
    }
    lowered = {key.lower(): value for key, value in facts.items()}
    try:
        document = json.loads(text)
        tests = [(test.get("Options") or test.get("Parameters") or {}, test["Results"]) for test in document["tests"]]
        figures, unusable = _from_tests(tests)
        notes: list[str] = []
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        figures, unusable = _from_tests(_broken_tests(text))
        notes = [f"the JSON is damaged ({error}); its results were read one by one"]
    if unusable:
        notes.append(_left_out(unusable))
    path = re.search(r'"(?:test filename|testFileName)"\s*:\s*"(.*?)"', text)
    return _foreign(figures, {**lowered, **({"path": path[1]} if path else {})}, facts.get("Version", ""), notes)


def _from_tests(tests: _Tests) -> tuple[list[ForeignFigure], int]:
    figures, unusable = [], 0
    for options, results in tests:
        settings: dict[str, Setting] = {}
        for key, value in options.items():
            settings.update(_setting(key, str(value)))
        # IOR 3.2 nests the results of a test once more.
        flat = [result for entry in results for result in (entry if isinstance(entry, list) else [entry])]
        for result in flat:
            if result.get("access") not in ("write", "read"):
                continue
            value = number(str(result.get("bwMiB", result.get("bwMIB", ""))))
            unusable += value is None
            if value is not None:
                figures.append(ForeignFigure(result["access"], "bytes_per_s", (value * MIB,), settings))
    return figures, unusable


def _broken_tests(text: str) -> _Tests:
    """Return the tests whose results are complete objects: options and results of each."""
    tests: _Tests = []
    for part in re.split(r'"TestID"\s*:\s*\d+\s*,\s*"StartTime"', text):
        options = re.search(r'"Options"\s*:\s*\{([^{}]*)\}', part) or re.search(
            r'"Parameters"\s*:\s*\{([^{}]*)\}', part
        )
        results = [_loose_pairs(match[0]) for match in re.finditer(r'\{[^{}]*"access"\s*:[^{}]*\}', part)]
        if results:
            tests.append((_loose_pairs(options[1]) if options else {}, results))
    return tests


def _loose_pairs(text: str) -> dict[str, str]:
    return {key: value.strip('"') for key, value in re.findall(r'"([^"]+)"\s*:\s*("[^"]*"|[^\s,}]+)', text)}


def is_csv(text: str) -> bool:
    """Return whether the text is IOR's CSV summary."""
    return text.lstrip().startswith("access,bw(MiB/s),")


def read_csv(text: str) -> Foreign:
    """Read the CSV summary: one row for each repetition."""
    figures = []
    for row in _rows(text):
        value = number(row["bw(MiB/s)"])
        if row["access"] in ("write", "read") and value is not None:
            settings = {
                **_sized(row, "block(KiB)", "block_bytes"),
                **_sized(row, "xfer(KiB)", "transfer_bytes"),
                **_setting("numtasks", row.get("numTasks") or ""),
            }
            figures.append(ForeignFigure(row["access"], "bytes_per_s", (value * MIB,), settings))
    return Foreign("ior", gathered(figures))


@dataclass
class _Repetition:
    access: str
    ranks: set[str] = field(default_factory=set)
    bytes: float = 0.0
    seconds: float = 0.0


def is_rank_csv(text: str) -> bool:
    """Return whether the text is the CSV with details per rank."""
    return text.lstrip().startswith("access,rank,runtime-with-openclose,")


def read_rank_csv(text: str) -> Foreign:
    """Read details per rank (saveRankPerformanceDetailsCSV): the rate of a repetition is all bytes over the slowest
    rank's time.
    """
    repetitions: list[_Repetition] = []
    for row in _rows(text):
        seconds, rate = number(row["runtime"]), number(row["throughput"])
        if seconds is None or rate is None:
            continue
        if not repetitions or repetitions[-1].access != row["access"] or row["rank"] in repetitions[-1].ranks:
            repetitions.append(_Repetition(row["access"]))
        last = repetitions[-1]
        last.ranks.add(row["rank"])
        last.bytes += seconds * rate
        last.seconds = max(last.seconds, float(row["runtime-with-openclose"]))
    figures = [
        ForeignFigure(test.access, "bytes_per_s", (test.bytes / test.seconds,), {"ranks": len(test.ranks)})
        for test in repetitions
    ]
    note = (
        "computed from the ranks' own times without their start times, which the file lacks, so the rate is an "
        "upper bound"
    )
    return Foreign("ior", gathered(figures), notes=(note,))


def _rows(text: str) -> Iterator[dict[str, str]]:
    reader = csv.DictReader(text.strip().splitlines())
    for row in reader:
        if None in row or None in row.values():
            raise BadInputError(
                "a row and the header have different numbers of columns", where=f"line {reader.line_num}"
            )
        yield row


def _sized(row: Mapping[str, str], column: str, key: str) -> dict[str, Setting]:
    value = number(row.get(column) or "")
    return {} if value is None else {key: round(value * 1024)}


def _setting(key: str, value: str) -> dict[str, Setting]:
    name = _SETTINGS.get(key.strip().lower())
    if name is None or not value:
        return {}
    if name.endswith("_bytes"):
        try:
            return {name: parse_bytes(value.replace("bytes", "").strip())}
        except BadInputError:
            return {}
    whole = re.match(r"\d+", value)
    if name in ("ranks", "nodes", "segments"):
        return {name: int(whole[0])} if whole and len(whole[0]) < 19 else {}
    return {name: value}


def _foreign(figures: list[ForeignFigure], facts: Mapping[str, str], version: str, notes: list[str]) -> Foreign:
    machine = facts.get("machine", "").split()
    return Foreign(
        tool="ior",
        figures=gathered(figures),
        version=version,
        when=time_of(facts.get("began") or facts.get("run began") or ""),
        command=facts.get("command line") or facts.get("command line used") or "",
        path=facts.get("path") or facts.get("test filename") or "",
        host=machine[1] if len(machine) > 1 else "",
        notes=tuple(notes),
    )

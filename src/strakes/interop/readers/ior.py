"""IOR: the text it prints (2.10 to 4.1), its JSON summary, broken or not, its CSV summary and its per-rank CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from strakes.errors import BadInputError
from strakes.findings.portrait import Setting
from strakes.interop.foreign import Foreign, ForeignFigure, gathered, number, time_of
from strakes.interop.readers.blocks import (
    UPPER_BOUND,
    Block,
    Printed,
    Result,
    Unread,
    csv_rows,
    json_documents,
    repetitions,
)
from strakes.units import MIB, counted, parse_bytes

# IOR's words for the settings of strakes.
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
_PAIR = re.compile(r"^\s*([A-Za-z][A-Za-z0-9 /_]*?)\s*[:=]\s*(.*?)\s*$")
_ROW = re.compile(r"^\s*(write|read)\s+(\S+)(?:\s+\S+){5,}\s*$")
_BEGINS_ROW = re.compile(r"^\s*(?:write|read)\s+[\d.]")
_HEADER = re.compile(r"[ \t]*access\s+bw\(MiB/s\)")
_MAX = re.compile(r"^\s*Max (Write|Read):\s+(\S+) MiB/sec")
_MAX_ONLY = "the file holds only the fastest repetition (Max Write, Max Read)"
_TEST_ID, _OPTIONS = re.compile(r"\s*(?:TestID\s*:|Test \d+ started)"), re.compile(r"\s*(?:Options|Summary):\s*$")


class _TestBeginning:
    """Detect the first line of a test: its id, or its options if no id precedes them."""

    def __init__(self) -> None:
        self._options_seen = self._any_seen = False

    def __call__(self, line: str) -> bool:
        is_id, is_options = bool(_TEST_ID.match(line)), bool(_OPTIONS.match(line))
        begins = is_id or (is_options and (self._options_seen or not self._any_seen))
        self._options_seen = is_options or (self._options_seen and not is_id)
        self._any_seen |= is_id or is_options
        return begins


def read_text(block: Block) -> Iterator[Result]:
    """Read each test of a run of IOR; a script of IOR (-f) has several."""
    version = block.search(r"IOR-(\S+?):")
    head, tests = block.parts(_TestBeginning())
    # Old versions print the header of the table once for all tests.
    has_header = any(_HEADER.match(line) for line in head.lines)
    for test in tests or [block]:
        has_header = has_header or any(_HEADER.match(line) for line in test.lines)
        yield from _read_test(
            test, _pairs(head.lines) | _pairs(test.lines), version, in_table=has_header and bool(tests)
        )


def _pairs(lines: Sequence[str]) -> dict[str, str]:
    facts: dict[str, str] = {}
    for line in lines:
        if pair := _PAIR.match(line):
            facts.setdefault(pair[1].strip().lower(), pair[2])
    return facts


def _read_test(test: Block, facts: Mapping[str, str], version: str, *, in_table: bool) -> Iterator[Result]:
    rates: list[tuple[str, float | None]] = []
    fastest: list[tuple[str, float | None]] = []
    for line in test.lines:
        if _HEADER.match(line):
            in_table = True
        elif line.split()[:1] == ["Operation"] or line.strip() == "Summary of all tests:":
            in_table = False
        elif in_table and (row := _ROW.match(line)):
            rates.append((row[1], number(row[2])))
        elif in_table and _BEGINS_ROW.match(line):
            yield test.line_unread(line, "the row is cut off")
        elif most := _MAX.match(line):
            fastest.append((most[1].lower(), number(most[2])))
    settings: dict[str, Setting] = {}
    for key, value in facts.items():
        settings.update(_setting(key, value))
    if any(rate for _, rate in rates):
        yield from _test(rates, settings, facts, version)
    elif any(rate for _, rate in fastest):
        yield from _test(fastest, settings, facts, version, _MAX_ONLY)
    else:
        yield test.unread("the test has no results")


def _test(
    rates: Sequence[tuple[str, float | None]],
    settings: Mapping[str, Setting],
    facts: Mapping[str, str],
    version: str,
    *notes: str,
) -> Iterator[Foreign]:
    """Yield the test with its repetitions in MiB/s, unless none has a usable rate."""
    figures = [
        ForeignFigure(access, "bytes_per_s", (rate * MIB,), settings) for access, rate in rates if rate is not None
    ]
    if figures:
        unusable = len(rates) - len(figures)
        left_out = f"{counted(unusable, 'repetition')} left out, without usable bandwidth (nan, inf or 0)"
        machine = facts.get("machine", "").split()
        yield Foreign(
            tool="ior",
            figures=gathered(figures),
            version=version,
            when=time_of(facts.get("starttime") or facts.get("began") or facts.get("run began") or ""),
            command=facts.get("command line") or facts.get("command line used") or "",
            path=_path(facts),
            host=machine[1] if len(machine) > 1 else "",
            notes=(*notes, *([left_out] if unusable else [])),
        )


def _path(facts: Mapping[str, str]) -> str:
    """Return the test file. If its name is relative, return the directory instead, if IOR printed it."""
    name, directory = facts.get("test filename") or facts.get("testfilename") or "", facts.get("path", "")
    return name if name.startswith("/") or not directory else directory


def is_json(text: str) -> bool:
    """Return whether the text is IOR's JSON summary, broken or not."""
    return "{" in text and '"access"' in text and bool(re.search(r'"bwM[iI]B"', text))


def read_json(text: str) -> Iterator[Result]:
    """Read the tests of JSON summaries.

    If one is not valid JSON (other lines in it, lost brackets, nan), read its results one by one.
    """
    for document in json_documents(text):
        try:
            if isinstance(document, Unread):
                raise ValueError(document.why)
            facts = {key.lower(): str(value) for key, value in document.items() if isinstance(value, str)}
            for test in document["tests"]:
                options = test.get("Options") or test.get("Parameters") or {}
                yield from _json_test(options, test["Results"], facts | _pairs_of(test))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            note = f"the JSON is damaged ({error}); its results were read one by one"
            facts = {
                key.lower(): match[1]
                for key in ("Began", "Command line", "Machine", "Version")
                if (match := re.search(rf'"{key}"\s*:\s*"(.*?)"\s*,', text))
            }
            for loose, results in _broken_tests(text):
                yield from _json_test(loose, results, facts, note)
            return


def _pairs_of(test: Mapping[str, Any]) -> dict[str, str]:
    return {key.lower(): value for key, value in test.items() if isinstance(value, str)}


def _json_test(
    options: Mapping[str, Any], results: Sequence[Any], facts: Mapping[str, str], *notes: str
) -> Iterator[Foreign]:
    settings: dict[str, Setting] = {}
    for key, value in options.items():
        settings.update(_setting(key, str(value)))
    # IOR 3.2 nests the results of a test once more.
    flat = [result for entry in results for result in (entry if isinstance(entry, list) else [entry])]
    rates = [
        (str(result["access"]), number(str(result.get("bwMiB", result.get("bwMIB", "")))))
        for result in flat
        if result.get("access") in ("write", "read")
    ]
    named = {
        key.lower(): str(value) for key, value in options.items() if key.lower() in ("test filename", "testfilename")
    }
    yield from _test(rates, settings, {**facts, **named}, facts.get("version", ""), *notes)


def _broken_tests(text: str) -> list[tuple[Mapping[str, Any], list[Any]]]:
    """Return the tests whose results are complete objects: options and results of each."""
    tests: list[tuple[Mapping[str, Any], list[Any]]] = []
    for part in re.split(r'"TestID"\s*:\s*\d+\s*,\s*"StartTime"', text):
        options = re.search(r'"(?:Options|Parameters)"\s*:\s*\{([^{}]*)\}', part)
        results: list[Any] = [_loose_pairs(match[0]) for match in re.finditer(r'\{[^{}]*"access"\s*:[^{}]*\}', part)]
        if results:
            tests.append((_loose_pairs(options[1]) if options else {}, results))
    return tests


def _loose_pairs(text: str) -> dict[str, str]:
    return {key: value.strip('"') for key, value in re.findall(r'"([^"]+)"\s*:\s*("[^"]*"|[^\s,}]+)', text)}


def is_csv(text: str) -> bool:
    """Return whether the text is IOR's CSV summary."""
    return text.lstrip().startswith("access,bw(MiB/s),")


def read_csv(text: str) -> Iterator[Result]:
    """Read the CSV summary: one row for each repetition; the repetitions of each test count from 0."""
    tests: list[tuple[dict[str, Setting], list[tuple[str, float | None]]]] = []
    seen: set[tuple[str, str]] = set()
    for row in csv_rows(text):
        if row["access"] not in ("write", "read"):
            continue
        settings = {
            **_sized(row, "block(KiB)", "block_bytes"),
            **_sized(row, "xfer(KiB)", "transfer_bytes"),
            **_setting("numtasks", row.get("numTasks") or ""),
        }
        repetition = (row["access"], row.get("iter") or str(len(seen)))
        if not tests or tests[-1][0] != settings or repetition in seen:
            tests.append((settings, []))
            seen = set()
        seen.add(repetition)
        tests[-1][1].append((row["access"], number(row["bw(MiB/s)"])))
    for settings, rates in tests:
        yield from _test(rates, settings, {}, "")


def is_rank_csv(text: str) -> bool:
    """Return whether the text is the CSV with details per rank."""
    return text.lstrip().startswith("access,rank,runtime-with-openclose,")


def read_rank_csv(text: str) -> Iterator[Result]:
    """Read details per rank (saveRankPerformanceDetailsCSV): all bytes over the slowest rank's time."""
    figures = []
    for ranks in repetitions(csv_rows(text), "access"):
        moved = [(number(row["runtime"]) or 0.0) * (number(row["throughput"]) or 0.0) for row in ranks]
        seconds = max(number(row["runtime-with-openclose"]) or 0.0 for row in ranks)
        if any(moved) and seconds:
            settings: dict[str, Setting] = {"ranks": sum(map(bool, moved))}
            figures.append(ForeignFigure(ranks[0]["access"], "bytes_per_s", (sum(moved) / seconds,), settings))
    yield Foreign("ior", gathered(figures), notes=(UPPER_BOUND,))


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


TEXT = Printed(
    "IOR text",
    opens=re.compile(r"[ \t]*IOR-\d\S*: "),
    table=re.compile(rf"{_HEADER.pattern}|{_MAX.pattern}"),
    ends=re.compile(r"[ \t]*(?:Run f|F)inished\s*: "),
    read=read_text,
)

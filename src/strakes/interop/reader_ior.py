"""IOR: printed text (2.10 to 4.1), JSON summary (even if invalid) and CSV summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from strakes.base.units import MIB, counted
from strakes.interop.command_options import table_of
from strakes.interop.foreign import Foreign, ForeignFigure, gathered, number, settings_of, time_of
from strakes.interop.reader_blocks import MIXED, REPEATED, Block, Document, Printed, Result, Unread, csv_rows

# Name of a setting in IOR -> its name in strakes.
_SETTINGS: Mapping[str, str] = table_of("readers")["ior"]
_PAIR = re.compile(r"^\s*([A-Za-z][A-Za-z0-9 /_]*?)\s*[:=]\s*(.*?)\s*$")
# Some launchers print the rank before each row.
_RANK = r"^\s*(?:\d+:\s*)?"
_ROW = re.compile(rf"{_RANK}(write|read)\s+(\S+)(?:\s+\S+){{5,}}\s*$")
# In a complete row of IOR, 7 to 10 numbers follow the operation.
_FULL_ROW = re.compile(rf"{_RANK}(?:write|read)(?:\s+[\d.]+){{7,10}}\s*$")
_BEGINS_ROW = re.compile(rf"{_RANK}(?:write|read)\s+[\d.]")
_HEADER = re.compile(r"[ \t]*access\s+bw\(MiB/s\)")
_SUMMARY = re.compile(r"\s*(?:Operation\b|Summary of all tests:)")
_MAX = re.compile(rf"{_RANK}Max (Write|Read):\s+(\S+) MiB/sec")
_MAX_ONLY = "the file holds only the fastest repetition (Max Write, Max Read)"
# Row of IOR's summary: operation, maximum, minimum, mean, and at least ten more columns.
_MEAN = re.compile(rf"{_RANK}(write|read)(?:\s+\S+){{2}}\s+(\S+)(?:\s+\S+){{10,}}\s*$")
_CUT_OFF = "the summary at the end of IOR's output is missing, so operations and repetitions may be missing"
_MEAN_ONLY = "the file holds only the mean of the repetitions (Summary of all tests)"
_TEST_ID, _OPTIONS = re.compile(r"\s*(?:TestID\s*:|Test \d+ started)"), re.compile(r"\s*(?:Options|Summary):\s*$")
_TEST = re.compile(r'(?="TestID"\s*:\s*\d+\s*,\s*"StartTime")')
_RESULT = re.compile(r'\{[^{}]*"access"\s*:[^{}]*\}')
_JSON_OPTIONS, _JSON_PARAMETERS = (
    re.compile(rf'"{name}"\s*:\s*\{{([^{{}}]*)\}}') for name in ("Options", "Parameters")
)
_JSON_PAIR = re.compile(r'"([^"]+)"\s*:\s*(?:"([^"]*)"|([^\s"{}\[\],]+))')


def read_text(block: Block) -> Iterator[Result]:
    """Read each test of an IOR run. A run of a script (option -f) can have several tests."""
    first_lines = (known for known in (_TEST_ID, _OPTIONS) if any(map(known.match, block.lines)))
    head, tests = block.parts(next(first_lines, _HEADER).match)
    if any(map(_FULL_ROW.match, head.lines)):
        tests.insert(0, head)
    # Old versions of IOR print the table header only once for all tests.
    has_header = any(map(_HEADER.match, head.lines)) or bool(_FULL_ROW.match(block.lines[0]))
    common, version = head.pairs(_PAIR), block.search(r"IOR-(\S+?):")
    for test in tests or [block]:
        has_header = has_header or any(map(_HEADER.match, test.lines))
        pairs = {**common, **test.pairs(_PAIR), "version": version}
        facts = {key.lower(): text for key, text in pairs.items()}
        yield from _read_test(test, facts, in_table=has_header and bool(tests))


def _read_test(test: Block, facts: Mapping[str, str], *, in_table: bool) -> Iterator[Result]:
    rows, means, fastest = (list[tuple[str, str]]() for _ in range(3))
    columns, summary, seen = list[str](), list[dict[str, str]](), set[str]()
    header, cells = list[str](), list[dict[str, str]]()
    for index, line in enumerate(test.lines):
        if _HEADER.match(line):
            in_table, header = True, line.split()
        elif _SUMMARY.match(line):
            in_table, columns = False, [] if " (MiB)" in line else line.lower().split()
        elif in_table and (row := _ROW.match(line)):
            if line in seen:
                yield test.line_unread(index, REPEATED)
            else:
                rows.append((row[1], row[2]))
                cells.append(dict(zip(header, line[row.start(1) :].split(), strict=False)))
            seen.add(line)
        elif in_table and _BEGINS_ROW.match(line):
            yield test.line_unread(index, "the row is cut off")
        elif mean := _MEAN.match(line):
            means.append((mean[1], mean[2]))
            summary.append(dict(zip(columns, line[mean.start(1) :].split(), strict=False)))
        elif most := _MAX.match(line):
            fastest.append((most[1].lower(), most[2]))
    if why := _mixed(cells, summary, facts):
        yield test.unread(why)
        return
    if "ranks" not in settings_of(facts, _SETTINGS) and summary and "#tasks" in summary[0]:
        facts = {**summary[0], **facts}
    is_whole = any(key.startswith("command line") for key in facts)
    ended = not is_whole or bool(fastest or means) or any(map(_SUMMARY.match, test.lines))
    found = _test(rows, facts, *([] if ended else [_CUT_OFF]))
    for rates, note in ((means, _MEAN_ONLY), (fastest, _MAX_ONLY)):
        # If the user did not copy the rows, only IOR's summary has rates.
        known = {operation for operation, rate in rows if number(rate)}
        lacking = [(operation, rate) for operation, rate in rates if operation not in known and number(rate)]
        found += [one for each in _apart(lacking) for one in _test(each, facts, note)]
        rows += lacking
    yield from found or [test.unread("the test has no results")]


def _mixed(rows: Sequence[Mapping[str, str]], summary: Sequence[Mapping[str, str]], facts: Mapping[str, str]) -> str:
    sizes = {(row.get("block(KiB)"), row.get("xfer(KiB)")) for row in rows}
    iterations = [(row["access"], row["iter"]) for row in rows if "iter" in row]
    if len(sizes) > 1 or len(set(iterations)) < len(iterations):
        return MIXED
    ranks, tasks = settings_of(facts, _SETTINGS).get("ranks"), {row["#tasks"] for row in summary if "#tasks" in row}
    if not tasks or str(ranks) in tasks or (ranks is None and len(tasks) == 1):
        return ""
    return f"parts of two tests are mixed: the heading has {ranks} tasks, the summary {' and '.join(sorted(tasks))}"


def _apart(rates: Sequence[tuple[str, str]]) -> Iterator[Sequence[tuple[str, str]]]:
    test: dict[str, str] = {}
    for operation, rate in rates:
        if operation in test:
            yield list(test.items())
            test = {}
        test[operation] = rate
    yield list(test.items())


def _test(rates: Sequence[tuple[str, str]], facts: Mapping[str, str], *notes: str) -> list[Result]:
    settings = settings_of(facts, _SETTINGS)
    figures = [
        ForeignFigure(access, "bytes_per_s", (rate * MIB,), settings)
        for access, text in rates
        if (rate := number(text)) is not None
    ]
    unusable = len(rates) - len(figures)
    left_out = f"{counted(unusable, 'repetition')} left out, without usable bandwidth (nan, inf or 0)"
    machine = facts.get("machine", "").split()
    file = facts.get("test filename") or facts.get("testfilename") or ""
    test = Foreign(
        tool="ior",
        figures=gathered(figures),
        version=facts.get("version", ""),
        when=time_of(facts.get("starttime") or facts.get("began") or facts.get("run began") or ""),
        command=facts.get("command line") or facts.get("command line used") or "",
        path=file if file.startswith("/") else facts.get("path") or file,
        host=machine[1] if len(machine) > 1 else "",
        notes=(*notes, *([left_out] if unusable else [])),
    )
    return [test] if figures else []


def read_json(documents: Sequence[Document]) -> Iterator[Result]:
    """Read each result in JSON summaries by patterns, because several versions of IOR write invalid JSON."""
    for document in documents:
        fault = document.value if isinstance(document.value, str) else ""
        notes = [f"the JSON is damaged ({fault}); its results were read one by one"] if fault else []
        head, *tests = _TEST.split(document.text)
        for test in tests or [head]:
            options = _JSON_OPTIONS.search(test) or _JSON_PARAMETERS.search(test)
            facts = {**_json_pairs(head.partition('"tests"')[0]), **_json_pairs(test.partition("{")[0])}
            facts |= _json_pairs(options[1] if options else "")
            results = map(_json_pairs, _RESULT.findall(test))
            rates = [
                (access, one.get("bwmib", "")) for one in results if (access := one.get("access")) in ("write", "read")
            ]
            yield from _test(rates, facts, *notes)


def _json_pairs(text: str) -> dict[str, str]:
    return {key.lower(): string or word for key, string, word in _JSON_PAIR.findall(text)}


def read_csv(block: Block) -> Iterator[Result]:
    """Read IOR's CSV summary, with a row for each repetition. A repeated iteration number begins a new test."""
    tests: list[tuple[dict[str, str], list[tuple[str, str]]]] = []
    seen: set[tuple[str, str]] = set()
    for row in csv_rows(block, "bw(MiB/s)"):
        if isinstance(row, Unread):
            yield row
        elif row["access"] in ("write", "read"):
            facts = {
                "blocksize": f"{row.get('block(KiB)')} KiB",
                "xfersize": f"{row.get('xfer(KiB)')} KiB",
                "numtasks": row.get("numTasks", ""),
            }
            repetition = (row["access"], row.get("iter") or str(len(seen)))
            if not tests or tests[-1][0] != facts or repetition in seen:
                tests.append((facts, []))
                seen = set()
            seen.add(repetition)
            tests[-1][1].append((row["access"], row["bw(MiB/s)"]))
    for facts, rates in tests:
        yield from _test(rates, facts)


TEXT = Printed(
    "IOR text",
    opens=re.compile(r"[ \t]*IOR-\d\S*: "),
    table=re.compile(
        rf"{_HEADER.pattern}|{_FULL_ROW.pattern}|{_MAX.pattern}|[ \t]*Operation +Max ?\(MiB\)"
        r"|[ \t]*(?:api {5,}=|test filename +[:=]) "
    ),
    ends=re.compile(r"[ \t]*(?:Run f|F)inished\s*: "),
    read=read_text,
)

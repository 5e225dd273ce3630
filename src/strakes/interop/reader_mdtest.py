"""mdtest: printed summary (versions 1.8 to 4.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.interop.foreign import COMMAS, DECIMAL_COMMA, Foreign, ForeignFigure, number, slug, time_of
from strakes.interop.reader_blocks import MIXED, Block, Printed, Result, Unread
from strakes.model.portrait import Setting

_TABLE = re.compile(r"[ \t]*SUMMARY\b(?!.*\btime\b).*\(of (\d+) iterations\)")
_COUNT = r"\(of (\d+) iterations\)"
_TIMES = re.compile(r"[ \t]*SUMMARY time\b")
_ROW = re.compile(r"[ \t]*((?:Directory|File|Tree) [a-z]+)(?:\s*:)?\s++([-+.\dni].*)")
_DAMAGED = re.compile(r"(?:\d\.\d+\s+\d+){2}\.\d")  # The numbers in a row with an unreadable name.
_VALUES = re.compile(r"[-+.,\dainf]+(?:\s+[-+.,\dainf]+)*\s*")
_OLD_TREE = re.compile(r"[ \t]*tree (creation|removal) rate\s*:\s*(\S+)")
_CUT_OFF = "the last line of mdtest's output is missing, so operations may be missing"
_ITEMS = re.compile(r"[ \t]*(\d+) tasks, (\d+) (?:files/directories|files|directories)")


def read_text(block: Block) -> Iterator[Result]:
    """Read each summary table of a run. mdtest -f prints a table for each number of tasks."""
    launched = re.search(r"(?m)^[ `]*mdtest-(\S+) was launched with (\d+) total task\(s\) on (\d+) node", block.text)
    command = block.search(r"^[ \t]*Command line used:\s*(.*)$")
    cut_off = [_CUT_OFF] if launched and not block.search(r"^[ \t]*(-- finished at )") else []
    settings: dict[str, Setting] = {"ranks": int(launched[2]), "nodes": int(launched[3])} if launched else {}
    when, path = time_of(block.search(r"started at (\d+/\d+/\d+ \d+:\d+:\d+)")), _paths(block.text, command)
    before, tables = block.parts(_TABLE.match)
    if not tables:
        times = "mdtest -Z prints times without rates; run it with -P"
        yield block.unread(times if any(map(_TIMES.match, block.lines)) else "no table of rates")
    if len({table.search(_COUNT) for table in tables}) > 1:
        yield block.unread(MIXED)
        return
    for table in tables:
        if items := next((found for line in reversed(before.lines) if (found := _ITEMS.match(line))), None):
            settings |= {"ranks": int(items[1]), "items": int(items[2])}
        rows = [*_rows(table), *_trees(before, "creation"), *_trees(table, "removal")]
        before = table
        yield from (row for row in rows if isinstance(row, Unread))
        known = {row for row in rows if not isinstance(row, Unread)}
        rates = {row[0]: row[1] for row in rows if not isinstance(row, Unread)}
        if not rates or len(known) > len(rates):
            yield table.unread(MIXED if rates else "mdtest measured nothing, or its columns are not known")
            continue
        count = int(table.search(_COUNT))
        commas = [COMMAS] if any(DECIMAL_COMMA.fullmatch(word) for line in table.lines for word in line.split()) else []
        note = f"each figure is mdtest's mean of {count} iterations; mdtest does not print each iteration"
        yield Foreign(
            tool="mdtest",
            figures=tuple(
                ForeignFigure(slug(name), "operations_per_s", (rate,), dict(settings)) for name, rate in rates.items()
            ),
            version=launched[1] if launched else "",
            when=when,
            command=command,
            path=path,
            notes=(*([note] if count > 1 else []), *cut_off, *commas),
        )


def _rows(table: Block) -> Iterator[tuple[str, float] | Unread]:
    # The columns are Max, Min, Mean and Std Dev. Newer versions of mdtest repeat these columns over iterations.
    columns: list[str] = []
    for index, line in enumerate(table.lines):
        if _TIMES.match(line):
            return
        if line.split()[:1] == ["Operation"]:
            columns = re.findall(r"Max|Min|Mean|Std Dev", line)
        elif row := _ROW.match(line):
            values = row[2].split()
            mean = len(columns) - 1 - columns[::-1].index("Mean") if "Mean" in columns else 2
            is_full = len(values) == max(len(columns), 4) or (len(columns) == 7 and len(values) == 8)
            if not is_full or not _VALUES.fullmatch(row[2]):
                yield table.line_unread(index, "the columns do not match the header")
            elif rate := number(values[mean], has_decimals=True):
                yield row[1], rate
        elif columns and _DAMAGED.search(line):
            yield table.line_unread(index, "the operation is not known")


def _trees(block: Block, kind: str) -> Iterator[tuple[str, float]]:
    for found in map(_OLD_TREE.match, block.lines):
        if found and found[1] == kind and (rate := number(found[2], has_decimals=True)):
            yield f"Tree {kind}", rate


def _paths(text: str, command: str) -> str:
    asked = re.search(r"""(?:^|\s)['"]?-d['"]?[ =]*['"]?([^\s'"]+)""", command)
    paths = dict.fromkeys(re.findall(r"^[ \t]*Path\s*:\s*(\S+)", text, re.MULTILINE))
    return asked[1] if asked and ("@" in asked[1] or len(paths) < 2) else "@".join(paths)


TEXT = Printed(
    "mdtest text",
    opens=re.compile(r"[ \t]*`*(?:-- started at |mdtest-\S+ was launched)"),
    table=_TABLE,
    ends=re.compile(r"[ \t]*-- finished at "),
    read=read_text,
)

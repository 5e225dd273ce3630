"""mdtest: the summary it prints (1.8 to 4.1), its per-rank CSV, and the per-operation CSV that it shares with IOR."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from strakes.findings.portrait import Setting
from strakes.interop.foreign import Foreign, ForeignFigure, gathered, number, slug, time_of
from strakes.interop.readers.blocks import UPPER_BOUND, Block, Printed, Result, csv_rows, joint_rate, repetitions

_TABLE = re.compile(r"[ \t]*SUMMARY\b(?!.*\btime\b).*\(of (\d+) iterations\)")
_TIMES = re.compile(r"[ \t]*SUMMARY time\b")
_ROW = re.compile(r"[ \t]*((?:Directory|File|Tree) [a-z]+)\s*:?\s+([-+.\dainf]+(?:\s+[-+.\dainf]+)*)\s*$")
_OLD_TREE = re.compile(r"[ \t]*tree (creation|removal) rate\s*:\s*(\S+)")
_ITEMS = re.compile(r"[ \t]*(\d+) tasks, (\d+) (?:files/directories|files|directories)")


def read_text(block: Block) -> Iterator[Result]:
    """Read each table of means of a run; mdtest -f prints one for each number of tasks."""
    launched = re.search(r"mdtest-(\S+) was launched with (\d+) total task\(s\) on (\d+) node", block.text)
    command = block.search(r"^[ \t]*Command line used:\s*(.*)$")
    settings: dict[str, Setting] = {"ranks": int(launched[2]), "nodes": int(launched[3])} if launched else {}
    head, tables = block.parts(_TABLE.match)
    if not tables:
        only_times = any(_TIMES.match(line) for line in block.lines)
        yield block.unread(
            "mdtest -Z prints times without rates; run it with -P" if only_times else "no table of rates"
        )
    before = head
    for table in tables:
        if items := next((found for line in reversed(before.lines) if (found := _ITEMS.match(line))), None):
            settings |= {"ranks": int(items[1]), "items": int(items[2])}
        rates: dict[str, float] = {}
        yield from _table(table, rates)
        for kind, lines in (("creation", before.lines), ("removal", table.lines)):
            trees = (found for line in lines if (found := _OLD_TREE.match(line)) and found[1] == kind)
            for tree in trees:
                if rate := number(tree[2]):
                    rates.setdefault(f"Tree {kind}", rate)
        before = table
        if not rates:
            yield table.unread("mdtest measured nothing, or its columns are not known")
            continue
        count = int(table.search(r"\(of (\d+) iterations\)"))
        note = f"each figure is mdtest's mean of {count} iterations; mdtest does not print each iteration"
        yield Foreign(
            tool="mdtest",
            figures=tuple(
                ForeignFigure(slug(name), "operations_per_s", (rate,), dict(settings)) for name, rate in rates.items()
            ),
            version=launched[1] if launched else "",
            when=time_of(block.search(r"started at (\d+/\d+/\d+ \d+:\d+:\d+)")),
            command=command,
            path=_paths(block.text, command),
            notes=(note,) if count > 1 else (),
        )


def _table(table: Block, rates: dict[str, float]) -> Iterator[Result]:
    """Add the mean rate of each operation that was run; yield the lines with other columns than the header."""
    # Max, Min, Mean, Std Dev; newer versions print them for ranks, then for iterations.
    columns: list[str] = []
    for line in table.lines:
        if _TIMES.match(line):
            return
        if line.split()[:1] == ["Operation"]:
            columns = re.findall(r"Max|Min|Mean|Std Dev", line)
        elif row := _ROW.match(line):
            values = row[2].split()
            mean = len(columns) - 1 - columns[::-1].index("Mean") if "Mean" in columns else 2
            if len(values) != max(len(columns), 4) and not (len(columns) == 7 and len(values) == 8):
                yield table.line_unread(line, "it has other columns than the header")
            elif rate := number(values[mean]):
                rates.setdefault(row[1], rate)


def _paths(text: str, command: str) -> str:
    """Return the directories, as mdtest writes several ("a@b"): some versions print only one."""
    asked = re.search(r"""(?:^|\s)['"]?-d['"]?[ =]*['"]?([^\s'"]+)""", command)
    paths = dict.fromkeys(re.findall(r"^[ \t]*Path\s*:\s*(\S+)", text, re.MULTILINE))
    return asked[1] if asked and ("@" in asked[1] or len(paths) < 2) else "@".join(paths)


def is_rank_csv(text: str) -> bool:
    """Return whether the text is the CSV with details per rank."""
    return text.lstrip().startswith("rank,items,rate-")


def read_rank_csv(text: str) -> Iterator[Result]:
    """Read details per rank (--saveRankPerformanceDetails): all items over the slowest rank's time."""
    rows = csv.DictReader(text.strip().splitlines())
    iterations = repetitions(row for row in rows if row["rank"] != "all")
    names = [name.removeprefix("rate-") for name in rows.fieldnames or () if name.startswith("rate-")]
    figures = [
        ForeignFigure(slug(name), "operations_per_s", (rate,), {"ranks": len(ranks)})
        for ranks in iterations
        for name in names
        if (
            rate := joint_rate(
                *([number(row.get(f"{kind}-{name}") or "") for row in ranks] for kind in ("rate", "time"))
            )
        )
    ]
    yield Foreign("mdtest", gathered(figures), notes=(UPPER_BOUND,))


def is_operations_csv(text: str) -> bool:
    """Return whether the text is the CSV with details per call."""
    return text.lstrip().startswith("time,runtime,tp\n")


def read_operations_csv(text: str) -> Iterator[Result]:
    """Read the calls of one rank (savePerOpDataCSV): bytes or metadata calls over the time from first to last."""
    rows = [(float(row["time"]), float(row["runtime"]), number(row["tp"])) for row in csv_rows(text)]
    seconds = max(begun + took for begun, took, _ in rows) - min(begun for begun, _, _ in rows) if rows else 0.0
    if seconds <= 0:
        return
    # The throughput is 1 / time for a metadata call and bytes / time for a transfer.
    amounts = sorted(took * throughput for _, took, throughput in rows if throughput is not None)
    amount = amounts[len(amounts) // 2] if amounts else 1.0
    tool, figure = "mdtest", ForeignFigure("operations", "operations_per_s", (len(rows) / seconds,), {"ranks": 1})
    if not 0.99 < amount < 1.01:
        settings: dict[str, Setting] = {"ranks": 1, "transfer_bytes": round(amount)}
        tool, figure = "ior", ForeignFigure("transfers", "bytes_per_s", (len(rows) * amount / seconds,), settings)
    yield Foreign(tool, (figure,), notes=("only the calls of one rank",))


TEXT = Printed(
    "mdtest text",
    opens=re.compile(r"[ \t]*`*(?:-- started at |mdtest-\S+ was launched)"),
    table=_TABLE,
    ends=re.compile(r"[ \t]*-- finished at "),
    read=read_text,
)

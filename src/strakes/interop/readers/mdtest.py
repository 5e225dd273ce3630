"""mdtest: the summary it prints (1.8 to 4.1), its per-rank CSV, and the per-operation CSV that it shares with IOR."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping

from strakes.findings.portrait import Setting
from strakes.interop.foreign import Foreign, ForeignFigure, gathered, number, slug, time_of

_OPERATION = re.compile(r"^\s*((?:Directory|File|Tree) [a-z]+)\s*:?\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*$")
_LAUNCHED = re.compile(r"mdtest-(\S+) was launched with (\d+) total task\(s\) on (\d+) node")
_ITERATIONS = re.compile(r"SUMMARY.*\(of (\d+) iterations\)")
_OLD_TREE = re.compile(r"^tree (creation|removal) rate\s*:\s*(\S+)", re.MULTILINE)


def is_text(text: str) -> bool:
    """Return whether the text is what mdtest prints."""
    return bool(re.search(r"^[ \t]*mdtest-\S+ was launched", text, re.MULTILINE)) or bool(
        re.search(r"SUMMARY.*iterations\)[\s\S]*File (creation|stat)", text)
    )


def read_text(text: str) -> Foreign:
    """Read the means that mdtest prints; its output does not have the single iterations."""
    launched = _LAUNCHED.search(text)
    iterations = _ITERATIONS.search(text)
    command = re.search(r"^Command line used:\s*(.*)$", text, re.MULTILINE)
    printed = command[1].strip() if command else ""
    started = re.search(r"started at (\d+/\d+/\d+ \d+:\d+:\d+)", text)
    settings: dict[str, Setting] = {}
    if launched:
        settings = {"ranks": int(launched[2]), "nodes": int(launched[3])}
    if items := re.search(r"^(\d+) tasks, (\d+) (files/directories|files|directories)", text, re.MULTILINE):
        settings["items"] = int(items[2])
    figures = [ForeignFigure(slug(name), "operations_per_s", (mean,), settings) for name, mean in _means(text)]
    count = int(iterations[1]) if iterations else 1
    note = (
        (f"each figure is mdtest's mean of {count} iterations; mdtest does not print each iteration",)
        if count > 1
        else ()
    )
    return Foreign(
        tool="mdtest",
        figures=tuple(figures),
        version=launched[1] if launched else "",
        when=time_of(started[1]) if started else None,
        command=printed,
        path=_paths(text, printed),
        notes=note,
    )


def _paths(text: str, command: str) -> str:
    """Return the directories, as mdtest writes several ("a@b"): some versions print only one."""
    paths = re.findall(r"^Path\s*:\s*(\S+)", text, re.MULTILINE)
    asked = re.search(r"(?:^|\s)'?-d'?[ =]*'?([^\s']+)", command)
    if asked and "@" in asked[1]:
        return asked[1]
    return "@".join(dict.fromkeys(paths))


def _means(text: str) -> list[tuple[str, float]]:
    """Return operations and their mean rates, without the times (-P) and without operations that were not run (0)."""
    rates_of: dict[str, float] = {}
    rates = re.split(r"^SUMMARY time", text, flags=re.MULTILINE)[0]
    for line in rates.splitlines():
        match = _OPERATION.match(line)
        mean = number(match[4]) if match else None
        if match and mean is not None:
            rates_of.setdefault(match[1], mean)
    for name, rate in _OLD_TREE.findall(rates):
        value = number(rate)
        if value is not None:
            rates_of.setdefault(f"Tree {name}", value)
    return list(rates_of.items())


def is_rank_csv(text: str) -> bool:
    """Return whether the text is the CSV with details per rank."""
    return text.lstrip().startswith("rank,items,rate-")


def read_rank_csv(text: str) -> Foreign:
    """Read details per rank (--saveRankPerformanceDetails): the rate of an iteration is all items over the slowest
    rank's time.
    """
    iterations: list[dict[str, Mapping[str, str]]] = []
    for row in csv.DictReader(text.strip().splitlines()):
        if row["rank"] == "all":
            continue
        if not iterations or row["rank"] in iterations[-1]:
            iterations.append({})
        iterations[-1][row["rank"]] = row
    names = (
        [column.removeprefix("rate-") for column in next(iter(iterations[0].values())) if column.startswith("rate-")]
        if iterations
        else []
    )
    figures = [
        ForeignFigure(slug(name), "operations_per_s", (rate,), {"ranks": len(ranks)})
        for ranks in iterations
        for name in names
        if (rate := _joint_rate(ranks, name)) is not None
    ]
    note = (
        "computed from the ranks' own times without their start times, which the file lacks, so the rates are "
        "upper bounds"
    )
    return Foreign("mdtest", gathered(figures), notes=(note,))


def _joint_rate(ranks: Mapping[str, Mapping[str, str]], name: str) -> float | None:
    pairs = [(number(row.get(f"rate-{name}") or ""), number(row.get(f"time-{name}") or "")) for row in ranks.values()]
    whole = [(rate, seconds) for rate, seconds in pairs if rate is not None and seconds is not None]
    if len(whole) < len(pairs):
        return None
    return sum(rate * seconds for rate, seconds in whole) / max(seconds for _, seconds in whole)


def is_operations_csv(text: str) -> bool:
    """Return whether the text is the CSV with details per call."""
    return text.lstrip().startswith("time,runtime,tp\n")


def read_operations_csv(text: str) -> Foreign:
    """Read the calls of one rank (savePerOpDataCSV): its bytes, or its metadata calls, over the time from first to
    last.
    """
    rows = [
        (float(row["time"]), float(row["runtime"]), number(row["tp"]))
        for row in csv.DictReader(text.strip().splitlines())
    ]
    seconds = max(begun + took for begun, took, _ in rows) - min(begun for begun, _, _ in rows) if rows else 0.0
    note = "only the calls of one rank"
    if seconds <= 0:
        return Foreign("ior", ())
    # Of a metadata call it writes 1 / time as throughput; of a transfer its bytes / time.
    amounts = sorted(took * throughput for _, took, throughput in rows if throughput is not None)
    amount = amounts[len(amounts) // 2] if amounts else 1.0
    if 0.99 < amount < 1.01:
        return Foreign(
            "mdtest",
            (ForeignFigure("operations", "operations_per_s", (len(rows) / seconds,), {"ranks": 1}),),
            notes=(note,),
        )
    settings: dict[str, Setting] = {"ranks": 1, "transfer_bytes": round(amount)}
    return Foreign(
        "ior", (ForeignFigure("transfers", "bytes_per_s", (len(rows) * amount / seconds,), settings),), notes=(note,)
    )

"""Histograms of requests.

``osd-*.*.brw_stats`` on servers say how the disk of a target was used; clients' ``*.*.rpc_stats`` look alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from strakes.targets.lustre.output import not_understood
from strakes.targets.lustre.stats import parse_time
from strakes.units import GIB, KIB, MIB

PARAMETER = "osd-*.*.brw_stats"
DISK_SIZES = "disk I/O size"

_TOOL = "lctl get_param (histograms)"
_HEADING = re.compile(r"^(\S.*?)\s{2,}(?:rpcs|ios|maps)\s+%%? cum %%?(\s+\|\s+(?:rpcs|ios|maps)\s+%%? cum %%?)?$")
_ROW = re.compile(r"^(\d+)([KMG]?):\s+(\d+)\s+\d+\s+\d+(?:\s+\|\s+(\d+)\s+\d+\s+\d+)?\s*$")
_UNITS = {"": 1, "K": KIB, "M": MIB, "G": GIB}


@dataclass(frozen=True)
class Bucket:
    """How often a value up to ``value`` (and above the bucket before) was seen."""

    value: int
    reads: int
    writes: int


@dataclass(frozen=True)
class Histograms:
    """Title -> buckets; a table of changes only ("modify") has them as writes, and that word behind its title."""

    start_s: float | None
    tables: Mapping[str, tuple[Bucket, ...]]


def parse_histograms(text: str) -> Histograms:
    """Read it. Raises NotUnderstoodError."""
    start: float | None = None
    tables: dict[str, list[Bucket]] = {}
    columns = 0
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            columns = 2 if heading[2] else 1
            title = heading[1] if heading[2] else f"{heading[1]} (modify)"
            if title in tables:
                raise not_understood(_TOOL, line)
            tables[title] = []
        elif row := _ROW.match(line):
            if columns != (1 if row[4] is None else 2):
                raise not_understood(_TOOL, line)
            reads, writes = (int(row[3]), int(row[4])) if row[4] is not None else (0, int(row[3]))
            tables[next(reversed(tables))].append(Bucket(int(row[1]) * _UNITS[row[2]], reads, writes))
        elif (time := parse_time(line)) and time[0] == "start_time":
            start = time[1]
    if not tables:
        raise not_understood(_TOOL, text)
    return Histograms(start, {title: tuple(buckets) for title, buckets in tables.items()})


def common(histograms: Histograms) -> dict[str, float]:
    """Return what the disk was asked for: fewer and larger requests than the clients', or more and smaller ones."""
    buckets = histograms.tables.get(DISK_SIZES, ())
    return {
        "data.disk_reads": float(sum(bucket.reads for bucket in buckets)),
        "data.disk_writes": float(sum(bucket.writes for bucket in buckets)),
    }

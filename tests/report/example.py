"""A portrait for tests of reports: the six studies of a first survey with plausible values, and values hard to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from report.example_cells import CACHE, CONFIDENCE, DATA, OPERATIONS, PATTERNS, RANKS, TRANSFERS, example_cells
from strakes.base.units import GIB, KIB, MIB
from strakes.model.answers import Answer, Comparison
from strakes.model.portrait import (
    CellEstimate,
    Figure,
    Finding,
    Headline,
    IntervalOf,
    Point,
    Portrait,
    Reference,
    RunWarning,
    Series,
    SkippedCell,
)
from strakes.stats.grades import Grade

HOSTILE_PATH = """/mnt/it's "scratch" & <b>more</b></script><script>alert(1)</script>"""
S1_MACHINE = "on another machine (96 OSTs, Lustre 2.10)"


def example_portrait() -> Portrait:
    """Return a portrait whose studies have figures, findings and warnings; equal at every call."""
    cells = example_cells()
    return Portrait(
        run={
            "id": "2026-11-21-0625-9f3c",
            "kind": "survey",
            "name": "survey",
            "target": HOSTILE_PATH,
            "options": {"budget_s": 120.0, "confidence": CONFIDENCE},
            "created": "2026-11-21T06:25:31+00:00",
            "status": "complete",
            "command": f"strakes survey '{HOSTILE_PATH}' --budget 2m",
            "version": "0.1.0",
        },
        target={
            "path": HOSTILE_PATH,
            "file_system": "xfs",
            "device": "/dev/loop0",
            "mount_point": "/mnt",
            "mount_options": ["rw", "noatime", "inode64"],
            "total_bytes": 928 * GIB,
            "free_bytes": 411 * GIB,
            "total_inodes": 486_539_264,
            "block_bytes": 4096,
            "direct_io": True,
            "remote": False,
        },
        environment={
            "host": "storage-test-1",
            "kernel": "6.1.0-28-amd64",
            "distribution": "Debian GNU/Linux 12 (bookworm)",
            "cpu": {"model": "Xeon <Gold> 6338", "count": 8},
            "memory_bytes": 24 * GIB,
            "clock": "tsc",
            "load_average": [0.31, 0.4, 0.38],
            "notes": "",
        },
        scope="one client measured: up to 32 processes on one node; one local device; buffered and O_DIRECT",
        headlines=(
            Headline("write, 1 MiB calls, 4 processes", "transfer-size-1048576:write"),
            Headline("read past the cache, 1 MiB calls, 4 processes", "transfer-size-1048576:direct-read"),
            Headline("best write over processes", "processes-8:write"),
            Headline("file create, 4 processes", "metadata-4:file-create"),
            Headline("file stat, 4 processes", "metadata-4:file-stat"),
            Headline("open and close one file, 32 processes", "open-close-32:open"),
            Headline("read one shared file in strides", "patterns-SFSA strided:read"),
        ),
        cells=tuple(cells.values()),
        findings=_findings(),
        answers=_answers(),
        figures=_figures(),
        warnings=_warnings(cells),
        skipped=(
            SkippedCell("data-per-process", {"data_bytes": 2 * GIB, "ranks": 4}, "the budget did not allow it"),
            SkippedCell("data-per-process", {"data_bytes": 4 * GIB, "ranks": 4}, "the budget did not allow it"),
            SkippedCell("processes-per-node", {"ranks": 64}, "more processes than 4 for each of 8 processors"),
            SkippedCell(
                "access-patterns", {"pattern": "SFWA", "direct": True}, "O_DIRECT is refused on a shared file here"
            ),
        ),
        reproduce=(
            f"strakes survey '{HOSTILE_PATH}' --budget 2m --confidence 0.9",
            "strakes report 2026-11-21-0625-9f3c",
        ),
    )


def _series(name: str, levels: tuple[int, ...], key: str) -> Series:
    return Series(name, tuple(Point(level, key.format(level)) for level in levels))


def _figures() -> tuple[Figure, ...]:
    return (
        Figure(
            "transfer-size",
            "Bytes per call",
            "How many bytes should one read() or write() move?",
            "transfer size",
            "B",
            "log",
            "rate of all processes",
            "B/s",
            (
                _series("write", TRANSFERS, "transfer-size-{}:write"),
                _series("read", TRANSFERS, "transfer-size-{}:read"),
                _series("read past the cache (O_DIRECT)", TRANSFERS, "transfer-size-{}:direct-read"),
            ),
            (
                Reference(
                    "S1",
                    f"S1 recommends 64 KiB to 8 MiB; reads peak near 8 MiB and drop behind it, {S1_MACHINE}.",
                    64 * KIB,
                    8 * MIB,
                ),
            ),
        ),
        Figure(
            "data-per-process",
            "Data per process",
            "From how much data per process on do writes saturate, and where do reads leave the cache?",
            "data per process",
            "B",
            "log",
            "rate of all processes",
            "B/s",
            (_series("write", DATA, "data-{}:write"), _series("read", DATA, "data-{}:read")),
            (
                Reference(
                    "S1",
                    f"S1 recommends 64 MiB to 1 GiB; reads of less than 1 GiB came from the page cache, {S1_MACHINE}.",
                    64 * MIB,
                    GIB,
                ),
            ),
        ),
        Figure(
            "processes-per-node",
            "Processes on one node",
            "How many processes fill what this node can move?",
            "processes",
            "",
            "log",
            "rate of all processes",
            "B/s",
            (
                _series("write", RANKS, "processes-{}:write"),
                _series("read past the cache", RANKS, "processes-{}:read past the cache"),
            ),
            (
                Reference(
                    "S1", f"S1: the node's link is full from 8 processes on; 8 to 32 are fine, {S1_MACHINE}.", 8, 32
                ),
            ),
        ),
        Figure(
            "open-close",
            "Opening and closing in parallel",
            "What does it cost when all processes open and close one file at once?",
            "processes",
            "",
            "log",
            "time of one call",
            "s",
            (_series("open", RANKS, "open-close-{}:open"), _series("close", RANKS, "open-close-{}:close")),
            (Reference("S1", f"grows fast above 1,024 processes, {S1_MACHINE}.", 1024, None),),
        ),
        Figure(
            "metadata-ops",
            "Metadata operations",
            "How many files and directories a second?",
            "operation",
            "",
            "category",
            "rate of all processes",
            "op/s",
            tuple(
                Series(
                    "1 process" if ranks == 1 else f"{ranks} processes",
                    tuple(
                        Point(name, f"metadata-{ranks}:{name.replace(' ', '-').replace('directory', 'dir')}")
                        for name in OPERATIONS
                    ),
                )
                for ranks in (1, 4)
            ),
            (
                Reference(
                    "S2",
                    "solid-state metadata devices beat disks by 60 to 70 % in the mean of these six, and in all but "
                    "directory removal.",
                ),
            ),
        ),
        Figure(
            "access-patterns",
            "Access patterns",
            "Which way of sharing files among processes is quick here?",
            "pattern",
            "",
            "category",
            "rate of all processes",
            "B/s",
            tuple(
                Series(
                    operation,
                    tuple(
                        Point(name, f"patterns-{name}:{operation}")
                        for name, rates in PATTERNS.items()
                        if rates[index] is not None
                    ),
                )
                for index, operation in enumerate(("write", "read"))
            ),
            (
                Reference(
                    "S5",
                    "reads about 20 % faster than writes; non-strided SFSA reads about 20 % faster than MFWA, on four "
                    "servers in 2009.",
                ),
            ),
        ),
    )


def _findings() -> tuple[Finding, ...]:
    def ratio(low: float, high: float, of: str) -> IntervalOf:
        return IntervalOf(low, high, CONFIDENCE, of, "times")

    return (
        Finding(
            "transfer-saturation",
            "transfer-size",
            "Writes reach 95 % of their best from 1 MiB per call on.",
            "measured",
            ("transfer-size-1048576:write", "transfer-size-16777216:write"),
            ratio(0.957, 1.031, "ratio of 1 MiB to 16 MiB"),
            tone="good",
        ),
        Finding(
            "cache-knee",
            "data-per-process",
            "Where reads leave the page cache.",
            "unknown",
            (),
            needs="more data than the 24 GiB of memory: about 40 GiB on the target and 3 minutes more.",
        ),
        Finding(
            "write-saturation",
            "data-per-process",
            "Writes saturate at 64 MiB per process.",
            "inconclusive",
            ("data-67108864:write", "data-1073741824:write"),
            ratio(0.89, 1.12, "ratio of 64 MiB to 1 GiB"),
            "about 12 more runs of two cells.",
        ),
        Finding(
            "node-bottleneck",
            "processes-per-node",
            "More than 8 processes on this node do not write faster.",
            "holds",
            ("processes-8:write", "processes-32:write"),
            ratio(0.81, 0.93, "ratio of 32 to 8 processes"),
        ),
        Finding(
            "open-linear",
            "open-close",
            "Opening one shared file costs each process the same at any number of processes.",
            "does-not",
            ("open-close-1:open", "open-close-32:open"),
            ratio(11.8, 21.4, "ratio of 32 processes to 1"),
            tone="bad",
        ),
        Finding(
            "metadata-scale",
            "metadata-ops",
            "Four processes create 3.1 times as many files a second as one.",
            "measured",
            ("metadata-1:file-create", "metadata-4:file-create"),
            ratio(2.88, 3.27, "ratio of 4 processes to 1"),
        ),
        Finding(
            "strided",
            "access-patterns",
            "Strided writes to a shared file are as quick as contiguous ones.",
            "does-not",
            ("patterns-SFSA strided:write", "patterns-SFSA non-strided:write"),
            ratio(0.24, 0.29, "ratio of strided to non-strided"),
        ),
    )


def _answers() -> tuple[Answer, ...]:
    def answer(
        name: str, title: str, grade: Grade, chosen: tuple[str, str], *others: Comparison, **rest: Any
    ) -> Answer:
        against = max(others, key=lambda one: one.ratio)
        return Answer(
            name, "overview", title, grade, *chosen, replace(against, grade=grade), others, CONFIDENCE, 12, **rest
        )

    return (
        answer(
            "request-size-write",
            "request size, writes",
            "sure",
            ("1 MiB", "transfer-size-1048576:write"),
            Comparison("4 KiB", "transfer-size-4096:write", 2.94, 2.71, 3.18, "likely"),
            Comparison("16 MiB", "transfer-size-16777216:write", 1.01, 0.97, 1.05, "undecided"),
        ),
        answer(
            "processes-write",
            "processes per node, writes",
            "likely",
            ("8", "processes-8:write"),
            Comparison("32", "processes-32:write", 1.15, 1.07, 1.23, "likely"),
        ),
        answer(
            "strides-write",
            "shared file, writes",
            "alike",
            ("contiguous", "patterns-SFSA non-strided:write"),
            Comparison("strided", "patterns-SFSA strided:write", 1.01, 0.97, 1.06, "alike"),
            within=1.1,
            alike="strides cost nothing",
        ),
        answer(
            "files-write",
            "files, writes",
            "undecided",
            ("one per process", "processes-4:write"),
            Comparison("one shared file", "processes-1:write", 1.1, 0.8, 1.6, "undecided"),
        ),
    )


def _warnings(cells: Mapping[str, CellEstimate]) -> tuple[RunWarning, ...]:
    cached = tuple(cell.id for cell in cells.values() if CACHE in cell.warnings)
    return (
        RunWarning(
            CACHE,
            "Reads were served from the page cache of this client: 98 % of the pages were resident before the read "
            "began.",
            "Compare with the O_DIRECT series, or read more than the memory holds.",
            cached,
        ),
        RunWarning(
            "impossible-rate",
            "Non-strided reads of 276,566 MiB/s are above what the memory of this machine can move (about 41,000 "
            "MiB/s).",
            "Do not use this figure; report it as a bug with the run's directory.",
            ("patterns-SFSA non-strided:read",),
        ),
        RunWarning(
            "few-runs",
            "Read of one shared file ran once: no interval.",
            "Give it more time: --budget 5m.",
            ("patterns-SFWA:read",),
        ),
        RunWarning(
            "few-runs",
            "Writes of 1 GiB per process ran 3 times: no interval.",
            "Give it more time: --budget 5m.",
            (f"data-{GIB}:write", f"data-{GIB}:read"),
        ),
        RunWarning(
            "background-load",
            "Other programs used 0.9 of 8 processors while this ran.",
            "Repeat on a quiet machine, or read the intervals as they are: they hold the disturbance.",
        ),
    )

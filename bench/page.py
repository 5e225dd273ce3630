"""The page docs/performance.md: tables of ratios, descriptions of workloads, machine and versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.bars import CONFIDENCE, MARGIN, Comparison
from bench.contenders import FLOOR
from bench.instructions import name_of, table
from bench.memory import Footprint
from bench.pattern import BUFFER_BYTES, WANTED_BYTES_PER_S, Speed
from bench.schedule import ALLOWED_S, RATE_PER_S, Lag
from bench.work import Work
from strakes.base.units import MIB, format_bytes

_VERDICTS = ("met", "missed", "at its bar", "too noisy")
_TITLE = "# How fast strakes itself is\n"
_PREAMBLE = """\
## How it is measured

This page is made by `./dev bench`; do not edit it. *Instructions* is the number that the engine executes in user space
for one operation when it calls the C library. Callgrind counts them (the slope over the number of operations, one rank,
transfers of 4 KiB), so they do not depend on other load of the machine. All other columns are rates. *Floor* is a
minimal C program that makes the same system calls directly, without the C library. The columns after it have the
engine's rate divided by the rates of the floor, of the same C program with calls through the C library, and of peers.
All are measured in one run: in each block every program does each work once, in a new random order, and only rates of
the same block are divided by each other.

The bars were fixed before anything was measured. Against the C library loop, where the kernel's copying or a device
hides what a program does, and in pools of small files, the engine counts as equal if it is at most {margin:.0%} slower
(the margin of equivalence). In operations on names it may be 10 % slower than the floor, since no peer makes its
system calls directly. Elsewhere it has to be faster than every peer (1), and 1.25 times as fast where files are only
looked up or opened.

A ratio is the median over blocks with a distribution-free interval. The results are looked at after {looks} blocks.
Each look uses a {share} of the allowed error of {error:.0%}, so that several looks do not make an interval wrong more
often (Bonferroni). *Met*: at one of the looks the whole interval is at or above the bar. *Missed*: all of it is below.
After {most} blocks the bar can still be inside the interval: then the verdict is *at its bar* if neither end is more
than {margin:.0%} away from it, else *too noisy*. A work is no longer measured once all its bars have a verdict.

The lead over mdtest in empty files and directories is mostly not a merit of the program: these works name files by a
directory descriptor and one name, as an application with `openat` can, and mdtest names them by their full path, which
the kernel walks in every call. `strakes run mdtest` makes mdtest's own calls, full paths included, and is as fast as
mdtest (seven pairs on tmpfs: stat 1.02, 0.99 to 1.05; read 1.02, 1.01 to 1.04). `python -m bench.command_lines`
compares the two like with like. The rest of a ratio is what an application gains from descriptors on tmpfs.

A whole `strakes run ior -b 1m` on tmpfs takes about 0.27 s of processor time, five to six times the 0.05 s of
`ior -b 1m`. A factor of 3 is not reached in Python: the interpreter, its library and click take 0.04 s to start, the
modules 0.09 s (half of it for 130 dataclasses), six to eight visits and their results 0.03 s, four processes in which
calls on a file system cannot block the command 0.04 s, the engine 0.02 s (half of it to open libcephfs, where that is
installed), and the end of both Python processes 0.05 s. These were measured on a machine with other load, with modules
that have byte code, as installed ones have. With `PYTHONDONTWRITEBYTECODE` a checkout compiles them in each run, which
takes another 0.1 to 0.2 s. `python -m bench.command_lines --whole` repeats the comparison.

The peers are those found on PATH. They are not part of strakes: most distributions have packages of fio and Postmark;
IOR (with mdtest) and elbencho are built from source. `--mpiexec` names the launcher of the MPI that IOR is built with.
"""
_FRACTIONS = {1: "all", 2: "half", 3: "third"}


@dataclass(frozen=True)
class Page:
    """The content of docs/performance.md."""

    works: Mapping[Work, str]  # workload -> reason for its choice
    instructions: Mapping[str, float]
    comparisons: Mapping[str, Mapping[tuple[Work, str], Comparison]]
    stamped: Mapping[tuple[Work, str], Comparison]
    footprints: Sequence[Footprint]
    lags: Sequence[Lag]
    speeds: Sequence[Speed]
    machine: Mapping[str, str]
    absent: Sequence[str]
    looks: Sequence[int]

    def all_asked(self) -> list[Comparison]:
        """Return the comparisons that have a bar (required ratio)."""
        return [
            comparison
            for peer in self.comparisons.values()
            for comparison in peer.values()
            if comparison.bar is not None
        ]


def render(page: Page) -> str:
    details = (
        (
            "Why these works",
            _table(("work", "reason for its choice"), ((_where(w), why) for w, why in page.works.items())),
        ),
        ("Every bar", _bars_section(page)),
        ("Instructions for each operation", table(page.instructions)),
        ("Cost of stamping and verifying data", _stamped_section(page)),
        ("Speed of generating and verifying data", _pattern_section(page.speeds)),
        ("The engine's memory", _memory_section(page.footprints)),
        (f"How late a probe with {RATE_PER_S:,} operations a second begins each of them", _schedule_section(page.lags)),
        ("Cost against ranks", Path(__file__).with_name("ranks.md").read_text()),
        ("The compared works and their differences", Path(__file__).with_name("compared.md").read_text()),
        ("Machine and versions", _table(("", ""), page.machine.items())),
    )
    preamble = _PREAMBLE.format(
        margin=MARGIN,
        looks=", ".join(map(str, page.looks)),
        share=_FRACTIONS[len(page.looks)],
        error=1 - CONFIDENCE,
        most=page.looks[-1],
    )
    return "\n".join([_summary(page), preamble, *(_folded(*each) for each in details)])


def _folded(title: str, text: str) -> str:
    return f'<details markdown="1">\n<summary>{title}</summary>\n\n{text}\n</details>\n'


def _summary(page: Page) -> str:
    floor = page.comparisons[FLOOR]
    rows = []
    for work, operation in _keys(page):
        count = page.instructions.get(name_of(work, operation))
        rate = floor.get((work, operation))
        cells = [_where(work), operation, "–" if count is None else f"{count:,.0f}", _rate(rate) if rate else "–"]
        rows.append(cells + [_cell(of_peer.get((work, operation))) for of_peer in page.comparisons.values()])
    asked = page.all_asked()
    counts = ", ".join(f"{sum(each.verdict == verdict for each in asked)} {verdict}" for verdict in _VERDICTS)
    lines = [
        _TITLE,
        (
            f"**{len(asked)} bars: {counts}.** The table shows the engine's rate divided by that of each other "
            "program, with its interval. A verdict is printed only where a bar is not met."
        ),
        "",
        _table(("work", "operation", "instructions", "floor", *(f"/ {peer}" for peer in page.comparisons)), rows),
    ]
    lines += [f"- {name} was not found on this machine and was not compared." for name in page.absent]
    if not page.instructions:
        lines.append("- valgrind was not found on this machine: no instructions were counted.")
    return "\n".join(lines) + "\n"


def _keys(page: Page) -> list[tuple[Work, str]]:
    done = {key for comparisons in page.comparisons.values() for key in comparisons}
    return [(work, operation) for work in page.works for operation in work.operations if (work, operation) in done]


def _bars_section(page: Page) -> str:
    rows = [
        [
            _where(each.work),
            each.operation,
            each.peer,
            f"{each.bar:g}",
            _ratio(each),
            str(each.ratio.runs),
            each.verdict,
        ]
        for each in page.all_asked()
    ]
    return _table(("work", "operation", "compared with", "bar", "ratio", "blocks", "verdict"), rows)


def _stamped_section(page: Page) -> str:
    rows = [[_where(work), operation, _ratio(each)] for (work, operation), each in page.stamped.items()]
    return "\n".join(
        [_table(("", "operation", "stamped / plain"), rows), Path(__file__).with_name("stamped.md").read_text()]
    )


def _pattern_section(speeds: Sequence[Speed]) -> str:
    rows = [[speed.what, f"{speed.bytes_per_s / 1e9:.1f} GB/s", speed.verdict] for speed in speeds]
    wanted = f"rate on one core (at least {WANTED_BYTES_PER_S / 1e9:g} GB/s)"
    return _table((f"in a buffer of {format_bytes(BUFFER_BYTES)}", wanted, ""), rows)


def _memory_section(footprints: Sequence[Footprint]) -> str:
    rows = [
        [footprint.what, format_bytes(footprint.peak_bytes), format_bytes(footprint.allowed_bytes), footprint.verdict]
        for footprint in footprints
    ]
    return _table(("plan", "peak resident", "allowed: 64 MiB + 2 transfers per rank", ""), rows)


def _schedule_section(lags: Sequence[Lag]) -> str:
    rows = [[lag.what, f"{lag.median_s * 1e6:.1f} µs", f"{lag.late_s * 1e6:.0f} µs", lag.verdict] for lag in lags]
    header = ("probe", "median", f"p99.9 (at most {ALLOWED_S * 1e3:g} ms)", "")
    return _table(header, rows)


def _where(work: Work) -> str:
    return f"{work.label}, {work.place}, {work.ranks} {'rank' if work.ranks == 1 else 'ranks'}"


def _rate(comparison: Comparison) -> str:
    if comparison.work.kind == "data":
        return f"{comparison.peer_rate * comparison.work.transfer_bytes / MIB:,.0f} MiB/s"
    return f"{comparison.peer_rate:,.0f} /s"


def _ratio(comparison: Comparison) -> str:
    interval = comparison.ratio.interval
    return f"{comparison.ratio.median:.2f}" + (f" ({interval.low:.2f}–{interval.high:.2f})" if interval else "")


def _cell(comparison: Comparison | None) -> str:
    if comparison is None:
        return "–"
    return _ratio(comparison) + (f" **{comparison.verdict}**" if comparison.verdict not in ("met", "") else "")


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(header)
    lines = [names, ["---"] * len(names), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"

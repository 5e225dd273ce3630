"""The page: tables of ratios, what each compares, and on what it was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.bars import CONFIDENCE, Comparison
from bench.memory import Footprint
from bench.pattern import BUFFER_BYTES, WANTED_BYTES_PER_S, Speed
from bench.schedule import ALLOWED_S, RATE_PER_S, Lag
from bench.work import OPERATIONS, Kind, Work
from strakes.units import MIB, format_bytes

_TITLES: dict[Kind, str] = {
    "files": "Empty files",
    "directories": "Directories",
    "small": "Small files",
    "pool": "Pools of small files",
    "data": "Data",
}
_VERDICTS = ("met", "open", "missed")
_TITLE = "# How fast strakes itself is\n"
_PREAMBLE = """\
## How it is measured

Made by `./dev bench`; do not edit. The cost of the engine is its rate divided by that of a minimal C loop that makes
the same system calls, in place (the floor) and through the C library, and divided by the rates of its peers. All are
measured in one run, in interleaved blocks in random order.

Every ratio is the median over {blocks} blocks with its distribution-free {confidence:.0%} interval. *Met*: the whole
interval is at or above the bar; *missed*: all of it is below; *open*: the bar is inside the interval.

The bars: against the C library loop 0.95 on tmpfs and 0.97 elsewhere (equal within a margin of 3 %, since no
measurement can show that two are equal); against the floor 0.9 in metadata and 0.95 in transfers of 4 KiB. Against a
peer the bar is 1, and 1.25 where files are only looked up or opened, wherever the C library loop itself is more than
8 % ahead of that peer; elsewhere, where there is nothing to gain, it is 0.97.
"""


@dataclass(frozen=True)
class Page:
    """Everything the page says."""

    comparisons: Mapping[str, Mapping[tuple[Work, str], Comparison]]  # by peer
    stamped: Mapping[tuple[Work, str], Comparison]
    footprints: Sequence[Footprint]
    lags: Sequence[Lag]
    speeds: Sequence[Speed]
    machine: Mapping[str, str]
    absent: Sequence[str]
    blocks: int

    def all_asked(self) -> list[Comparison]:
        """Return the comparisons that have a bar."""
        return [
            comparison
            for peer in self.comparisons.values()
            for comparison in peer.values()
            if comparison.bar is not None
        ]


def render(page: Page) -> str:
    """Return the page in Markdown."""
    details = (
        *((_TITLES[kind], _section(page, kind)) for kind in OPERATIONS),
        ("Bars that are open", _bars(page, "open")),
        ("What stamping and verifying cost", _stamped_section(page)),
        ("How fast data are made and verified", _pattern_section(page.speeds)),
        ("The engine's memory", _memory_section(page.footprints)),
        (f"How late a probe of {RATE_PER_S:,} operations a second begins them", _schedule_section(page.lags)),
        ("Cost against ranks", Path(__file__).with_name("ranks.md").read_text()),
        ("What is compared, and what differs in the work", Path(__file__).with_name("compared.md").read_text()),
        ("Machine and versions", _table(("", ""), page.machine.items())),
    )
    return "\n".join(
        [
            _summary(page),
            _PREAMBLE.format(blocks=page.blocks, confidence=CONFIDENCE),
            *(_folded(*each) for each in details),
        ]
    )


def _folded(title: str, text: str) -> str:
    return f'<details markdown="1">\n<summary>{title}</summary>\n\n{text}\n</details>\n'


def _summary(page: Page) -> str:
    """Return what fits into one screen: the middle ratio to each peer by kind of work, and what is missed."""
    asked = page.all_asked()
    rows = []
    for kind in OPERATIONS:
        cells = [_TITLES[kind]]
        for comparisons in page.comparisons.values():
            of_kind = [comparison for (work, _), comparison in comparisons.items() if work.kind == kind]
            cells.append(_middle(of_kind))
        rows.append(cells)
    counts = ", ".join(f"{sum(each.verdict == verdict for each in asked)} {verdict}" for verdict in _VERDICTS)
    lines = [
        _TITLE,
        _table(("rate of the engine divided by that of", *page.comparisons), rows),
        (
            f"**{len(asked)} bars: {counts}.** Open: noise leaves the bar inside the interval. Instructions of the "
            "engine in user space for each operation, the same whatever else runs, are in "
            "[instructions.md](instructions.md). Missed:"
        ),
        "",
        _bars(page, "missed"),
    ]
    lines += [f"- {name} was not found on this machine: nothing is said about it." for name in page.absent]
    return "\n".join(lines) + "\n"


def _middle(comparisons: Sequence[Comparison]) -> str:
    """Return the median of the ratios, their range, and how many of the bars are met."""
    if not comparisons:
        return "–"
    ratios = [comparison.ratio.median for comparison in comparisons]
    verdicts = [comparison.verdict for comparison in comparisons if comparison.bar is not None]
    met = f"; {verdicts.count('met')} of {len(verdicts)} met" if verdicts else ""
    return f"{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f}){met}"


def _bars(page: Page, verdict: str) -> str:
    lines = [
        f"- {_where(each.work)}, {each.operation}: {_ratio(each)} of {each.peer}"
        for each in page.all_asked()
        if each.verdict == verdict
    ]
    return "\n".join(lines or ["- none"]) + "\n"


def _section(page: Page, kind: Kind) -> str:
    floor = page.comparisons["floor"]
    done = {key for comparison in page.comparisons.values() for key in comparison if key[0].kind == kind}
    peers = [
        peer
        for peer, comparison in page.comparisons.items()
        if peer != "floor" and any(work.kind == kind for work, _ in comparison)
    ]
    rows = []
    for work, operation in sorted(done, key=lambda key: _position(*key)):
        comparison = floor.get((work, operation))
        others = (page.comparisons[peer].get((work, operation)) for peer in peers)
        rows.append(
            [_where(work), operation, _rate(comparison) if comparison else "–", _cell(comparison), *map(_cell, others)]
        )
    header = ["", "operation", "floor", "engine / floor", *(f"engine / {peer}" for peer in peers)]
    return _table(header, rows)


def _stamped_section(page: Page) -> str:
    rows = [
        [_where(work), operation, _ratio(comparison)]
        for (work, operation), comparison in sorted(page.stamped.items(), key=lambda item: _position(*item[0]))
    ]
    return _table(("", "operation", "stamped / plain"), rows)


def _pattern_section(speeds: Sequence[Speed]) -> str:
    rows = [[speed.what, f"{speed.bytes_per_s / 1e9:.1f} GB/s", speed.verdict] for speed in speeds]
    wanted = f"a second of one core (at least {WANTED_BYTES_PER_S / 1e9:g} GB/s)"
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


def _position(work: Work, operation: str) -> tuple[object, ...]:
    return (work.transfer_bytes, work.direct, work.place, work.ranks, work.operations.index(operation))


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
    bar = f", {comparison.verdict} (≥ {comparison.bar:g})" if comparison.verdict else ""
    return _ratio(comparison) + bar


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(header)
    lines = [names, ["---"] * len(names), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"

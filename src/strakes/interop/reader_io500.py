"""IO500: ``result.txt`` (ini) and ``result_summary.txt`` of the C version, and the output of older scripts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from strakes.base.units import GIB
from strakes.interop.command_options import table_of
from strakes.interop.foreign import COMMAS, DECIMAL_COMMA, Foreign, ForeignFigure, number, slug, time_of
from strakes.interop.reader_blocks import Block, Printed, Result
from strakes.model.portrait import Setting

# Result of a phase. It begins with "[RESULT]", or with blank brackets if the phase has no score.
_RESULT = re.compile(
    r"[ \t]*\[(?:RESULT(-invalid)?\s*| {6})\]\s+(?:(?:BW|IOPS)\s+(?:phase \d+\s+)?)?"
    r"(\S+)\s+(\S+)\s+(G[Ii]?B/s|k[Ii][Oo][Pp][Ss])\s*:\s*time(.*)$"
)
_BEGINS_RESULT = re.compile(r"[ \t]*\[(?:RESULT\b| {6}\] +\S+ +\d)")
# Format of 2017: "3/ior-easy-read BW:476671.16 MB/s time: 637s", "1/md-easy-create IOPs:28320.444 time:313s".
_FIRST = re.compile(r"[ \t]*\d+/(\S+) (?:BW:(\S+) MB/s|IOPs:(\S+)) +time:()(.*)")
_SCORE = re.compile(r"[ \t]*\[SCORE[^\]]*\]\s*(.*)$")
_FIRST_SCORE = re.compile(r"[ \t]*IO-500 (?:(?:bw|md) )?score:.*$")
_SECTION = re.compile(r"\s*\[([A-Za-z0-9-]+)\]\s*$")
_KEY = re.compile(r"\s*([A-Za-z_-]+)\s*=\s*(.*?)\s*$")
# Older IO500 scripts (until 2019) print "GB/s" but mean GiB/s, as a comparison with the output of IOR shows.
_FACTORS = {"gib/s": float(GIB), "gb/s": float(GIB), "kiops": 1e3, "mb/s": 1e6, "iops": 1.0}
_INVALID = re.compile(r"\bINVALID\b|-invalid\]|\binvalid run\b")


def read_text(block: Block) -> Iterator[Result]:
    """Read the results and the score of IO500. A log repeats all results at its end; the first ones count."""
    rates: dict[str, tuple[float, str]] = {}
    stated, invalid, commas, first_score = [], [], False, []
    for index, line in enumerate(block.lines):
        row = _row(line)
        if row is None:
            if (score := _SCORE.match(line)) and "TOTAL" in score[1]:
                stated.append(f"IO500 states: {' '.join(score[1].split())}")
            elif _FIRST_SCORE.match(line):
                first_score.append(" ".join(line.split()))
            elif _BEGINS_RESULT.match(line):
                yield block.line_unread(index, "the row is cut off, or its unit is not known")
            continue
        name, value, unit, rest = row
        commas = commas or bool(DECIMAL_COMMA.fullmatch(value))
        if re.search("invalid", rest, re.IGNORECASE) and name not in invalid:
            invalid.append(name)
        if (rate := number(value, has_decimals=True)) is not None and name != "timestamp":
            found = (rate * _FACTORS[unit], unit)
            if rates.setdefault(name, found) != found:
                yield block.line_unread(index, f"the value differs from the first result of {name}")
    if first_score:
        stated.append(f"IO500 states: {'; '.join(first_score)}")
    if not rates:
        yield block.unread("IO500 measured nothing")
        return
    began = re.search(r"^date=(\d{4})\.(\d\d)\.(\d\d)-(\d\d)\.(\d\d)\.(\d\d)$", block.text, re.MULTILINE)
    yield Foreign(
        "io500",
        tuple(_figure(name, rate, is_bandwidth=unit.endswith("b/s")) for name, (rate, unit) in rates.items()),
        version=block.search(r"IO500 version (\S+)"),
        when=time_of("{}-{}-{} {}:{}:{}".format(*began.groups())) if began else None,
        path=block.search(r"^io500_workdir=(\S+)$"),
        stated=tuple(dict.fromkeys(stated)),
        notes=(*_validity(block.text, invalid), *([COMMAS] if commas else []), *_missing(rates, stated)),
    )


def _row(line: str) -> tuple[str, str, str, str] | None:
    if match := _RESULT.match(line):
        return slug(match[2]), match[3], match[4].lower(), f"{match[1] or ''}{match[5]}"
    if match := _FIRST.match(line):
        return slug(match[1]), match[2] or match[3], "mb/s" if match[2] else "iops", match[5]
    return None


def _validity(text: str, phases: Sequence[str] = ()) -> tuple[str, ...]:
    named = f": {', '.join(phases)}" if phases else ""
    return (f"IO500 marks this run as INVALID{named}",) if _INVALID.search(text) else ()


def _missing(names: Collection[str], stated: Sequence[str]) -> tuple[str, ...]:
    missing = [phase for phase in table_of("io500")["phases"] if phase not in names]
    phases = f", and no result of {', '.join(missing)}" if missing else ""
    why = "the run did not finish, or only a part of it was copied"
    return () if stated else (f"the file has no score{phases}: {why}",)


def _figure(name: str, value: float, *, is_bandwidth: bool, ranks: str = "") -> ForeignFigure:
    settings: dict[str, Setting] = {"ranks": int(ranks)} if re.fullmatch(r"[0-9]{1,9}", ranks) else {}
    return ForeignFigure(name, "bytes_per_s" if is_bandwidth else "operations_per_s", (value,), settings)


def read_ini(block: Block) -> Iterator[Result]:
    """Read result.txt of IO500's C version. Each section has the score of a phase in GiB/s or kIOPS."""
    head, parts = block.parts(_SECTION.match)
    sections: dict[str, dict[str, str]] = {}
    for part in parts:
        sections.setdefault(part.search(_SECTION.pattern), part.pairs(_KEY))
    run = {**head.pairs(_KEY), **sections.get("run", {})}
    ranks = run.get("procs", "")
    figures = [
        _figure(slug(name), value * (GIB if is_bandwidth else 1e3), is_bandwidth=is_bandwidth, ranks=ranks)
        for name, keys in sections.items()
        for is_bandwidth in [name.startswith("ior-")]
        if name != "SCORE" and (value := number(keys.get("score", ""))) is not None
    ]
    score = sections.get("SCORE", {})
    rates = f"bandwidth {score.get('BW', '?')} GiB/s, metadata {score.get('MD', '?')} kIOPS"
    stated = (f"IO500 states: score {score['SCORE']}, {rates}",) if "SCORE" in score else ()
    first = next((keys["t_start"] for keys in sections.values() if "t_start" in keys), "")
    yield Foreign(
        "io500",
        tuple(figures),
        version=run.get("version", ""),
        when=time_of(block.search(r"; START (\S+ \S+)") or first),
        path=block.search(r"\s-o (\S+?)/+ior-easy"),
        stated=stated,
        notes=(*_validity(block.text), *_missing([figure.name for figure in figures], stated)),
    )


TEXT = Printed(
    "IO500 summary",
    # Older IO500 scripts first print a system name.
    opens=re.compile(r"[ \t]*IO500 version |System:\s+\S+\s*$"),
    table=re.compile(rf"(?:{_RESULT.pattern})|(?:{_FIRST.pattern})"),
    ends=_SCORE,
    read=read_text,
)

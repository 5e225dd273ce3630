"""IO500: ``result.txt`` (ini) and ``result_summary.txt`` of the C version, and the summary of the older scripts."""

from __future__ import annotations

import re

from strakes.interop.foreign import Figure, Foreign, number, slug, time_of
from strakes.units import GIB

_RESULT = re.compile(
    r"^\s*\[RESULT(?:-invalid)?\s*\]\s+(?:(?:BW|IOPS)\s+(?:phase \d+\s+)?)?(\S+)\s+(\S+)\s+(G[Ii]?B/s|k[Ii][Oo][Pp][Ss])\s*:\s*time(.*)$"
)
_SCORE = re.compile(r"^\s*\[SCORE[^\]]*\]\s*(.*)$")
_SECTION = re.compile(r"^\s*\[([A-Za-z0-9-]+)\]\s*$")
_KEY = re.compile(r"^\s*([A-Za-z_-]+)\s*=\s*(.*?)\s*$")
_FACTORS = {"gib/s": float(GIB), "gb/s": 1e9, "kiops": 1e3}
_INVALID = "IO500 marks this run or some of its phases INVALID"


def is_summary(text: str) -> bool:
    return any(_RESULT.match(line) for line in text.splitlines())


def read_summary(text: str) -> Foreign:
    """Lines of results, and the score as IO500 states it."""
    figures, stated = [], []
    for line in text.splitlines():
        if found := _RESULT.match(line):
            value = number(found[2])
            unit = found[3].lower()
            if value is not None and slug(found[1]) != "timestamp":
                metric = "operations_per_s" if unit == "kiops" else "bytes_per_s"
                figures.append(
                    Figure(slug(found[1]), "operations_per_s" if metric == "operations_per_s" else "bytes_per_s", (value * _FACTORS[unit],))
                )
        elif (score := _SCORE.match(line)) and "TOTAL" in score[1]:
            stated.append(f"IO500 states: {' '.join(score[1].split())}")
    version = re.search(r"IO500 version (\S+)", text)
    invalid = (_INVALID,) if "INVALID" in text else ()
    return Foreign("io500", tuple(figures), version=version[1] if version else "", stated=tuple(stated), notes=invalid)


def is_ini(text: str) -> bool:
    return bool(re.search(r"^\s*\[(ior|mdtest)-(easy|hard)-(write|read|stat)\]\s*$", text, re.MULTILINE)) and bool(
        re.search(r"^\s*score\s*=", text, re.MULTILINE)
    )


def read_ini(text: str) -> Foreign:
    """The ini file: a section for each phase with its score in GiB/s or kIOPS."""
    sections: dict[str, dict[str, str]] = {"": {}}
    section = ""
    for line in text.splitlines():
        if opened := _SECTION.match(line):
            section = opened[1]
            sections.setdefault(section, {})
        elif pair := _KEY.match(line):
            sections[section].setdefault(pair[1], pair[2])
    figures = []
    for name, keys in sections.items():
        value = number(keys.get("score", ""))
        if name and value is not None and "SCORE" not in name:
            bandwidth = name.startswith("ior-")
            factor = GIB if bandwidth else 1e3
            figures.append(Figure(name, "bytes_per_s" if bandwidth else "operations_per_s", (value * factor,)))
    score = sections.get("SCORE", {})
    stated: tuple[str, ...] = ()
    if "SCORE" in score:
        stated = (f"IO500 states: score {score['SCORE']}, bandwidth {score.get('BW', '?')} GiB/s, metadata {score.get('MD', '?')} kIOPS",)
    began = re.search(r"; START (\S+ \S+)", text)
    first = next((keys["t_start"] for keys in sections.values() if "t_start" in keys), "")
    path = re.search(r"\s-o (\S+?)/+ior-easy", text)
    return Foreign(
        "io500",
        tuple(figures),
        version=sections[""].get("version", ""),
        when=time_of(began[1] if began else first),
        path=path[1] if path else "",
        stated=stated,
        notes=(_INVALID,) if "INVALID" in text else (),
    )

"""IO500: ``result.txt`` (ini) and ``result_summary.txt`` of the C version, and what the older scripts wrote, back to
the first list.
"""

from __future__ import annotations

import re

from strakes.interop.foreign import Foreign, ForeignFigure, number, slug, time_of
from strakes.units import GIB

_RESULT = re.compile(
    r"^\s*\[RESULT(?:-invalid)?\s*\]\s+(?:(?:BW|IOPS)\s+(?:phase \d+\s+)?)?"
    r"(\S+)\s+(\S+)\s+(G[Ii]?B/s|k[Ii][Oo][Pp][Ss])\s*:\s*time(.*)$"
)
# Of 2017: "3/ior-easy-read BW:476671.16 MB/s time: 637s", "1/md-easy-create IOPs:28320.444 time:313s".
_FIRST = re.compile(r"^\d+/(\S+) (?:BW:(\S+) MB/s|IOPs:(\S+)) +time:")
_FIRST_SCORE = re.compile(r"^IO-500 (?:(?:bw|md) )?score:.*$", re.MULTILINE)
_SCORE = re.compile(r"^\s*\[SCORE[^\]]*\]\s*(.*)$")
_SECTION = re.compile(r"^\s*\[([A-Za-z0-9-]+)\]\s*$")
_KEY = re.compile(r"^\s*([A-Za-z_-]+)\s*=\s*(.*?)\s*$")
# The scripts called GB/s what they had made of IOR's MiB/s by dividing by 1024 (as every list until 2019 shows beside
# IOR's own output).
_FACTORS = {"gib/s": float(GIB), "gb/s": float(GIB), "kiops": 1e3}
_INVALID = "IO500 marks this run or some of its phases INVALID"


def is_summary(text: str) -> bool:
    """Return whether the text is a summary or the log of a run."""
    return any(_RESULT.match(line) or _FIRST.match(line) for line in text.splitlines())


def read_summary(text: str) -> Foreign:
    """Read the lines of results and the score. The log of a run has each result twice: when it came, and at the end."""
    figures, stated = [], []
    for line in dict.fromkeys(line.strip() for line in text.splitlines()):
        if match := _RESULT.match(line):
            value, unit = number(match[2]), match[3].lower()
            if value is not None and slug(match[1]) != "timestamp":
                figures.append(_figure(slug(match[1]), unit != "kiops", value * _FACTORS[unit]))
        elif match := _FIRST.match(line):
            value = number(match[2] or match[3])
            if value is not None:
                figures.append(_figure(slug(match[1]), bool(match[2]), value * (1e6 if match[2] else 1)))
        elif (score := _SCORE.match(line)) and "TOTAL" in score[1]:
            stated.append(f"IO500 states: {' '.join(score[1].split())}")
    if scores := _FIRST_SCORE.findall(text):
        stated.append(f"IO500 states: {'; '.join(' '.join(score.split()) for score in scores)}")
    version = re.search(r"IO500 version (\S+)", text)
    began = re.search(r"^date=(\d{4})\.(\d\d)\.(\d\d)-(\d\d)\.(\d\d)\.(\d\d)$", text, re.MULTILINE)
    path = re.search(r"^io500_workdir=(\S+)$", text, re.MULTILINE)
    return Foreign(
        "io500",
        tuple(figures),
        version=version[1] if version else "",
        when=time_of("{}-{}-{} {}:{}:{}".format(*began.groups())) if began else None,
        path=path[1] if path else "",
        stated=tuple(stated),
        notes=(_INVALID,) if "INVALID" in text else (),
    )


def _figure(name: str, is_bandwidth: bool, value: float) -> ForeignFigure:
    return ForeignFigure(name, "bytes_per_s" if is_bandwidth else "operations_per_s", (value,))


def is_ini(text: str) -> bool:
    """Return whether the text is the result.txt of the C version."""
    return bool(re.search(r"^[ \t]*\[(ior|mdtest)-(easy|hard)-(write|read|stat)\]\s*$", text, re.MULTILINE)) and bool(
        re.search(r"^[ \t]*score\s*=", text, re.MULTILINE)
    )


def read_ini(text: str) -> Foreign:
    """Read the ini file: a section for each phase, with its score in GiB/s or kIOPS."""
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
            figures.append(_figure(name, bandwidth, value * factor))
    score = sections.get("SCORE", {})
    stated: tuple[str, ...] = ()
    if "SCORE" in score:
        rates = f"bandwidth {score.get('BW', '?')} GiB/s, metadata {score.get('MD', '?')} kIOPS"
        stated = (f"IO500 states: score {score['SCORE']}, {rates}",)
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

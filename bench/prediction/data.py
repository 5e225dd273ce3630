"""Published measurements of systems at several sizes: IO500 submissions, tables and single series."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from strakes.predict.levels import MeasuredLevel, Scale

_TABLES = Path(__file__).with_name("tables.csv")
PHASES = (
    *("ior_easy_write", "ior_easy_read", "ior_hard_write", "ior_hard_read", "mdtest_easy_write", "mdtest_hard_write"),
    *("mdtest_easy_stat", "mdtest_hard_stat", "mdtest_hard_read", "mdtest_easy_delete", "mdtest_hard_delete"),
)
# In IO500 lists before this year, rates of file creation differ between sources.
_FIRST_YEAR_OF_CREATES = 2020
# Maximum number of years between submissions of a system. Older ones used other hardware or software.
_MOST_YEARS_APART = 1
# Minimum ratio of the largest to the smallest size.
_LEAST_RATIO = 1.5


@dataclass(frozen=True)
class Measured:
    """One figure of a system at several scales, smallest first.

    ``owner``: group of systems, such as a site, that a fit uses or leaves out together. ``weight``: weight in the
    likelihood, lower for figures that share values. ``is_time``: a time instead of a rate.
    """

    owner: str
    system: str
    name: str
    kind: str
    scales: tuple[Scale, ...]
    log_values: tuple[float, ...]
    source: str
    weight: float = 1.0
    is_time: bool = False

    def levels(self, places: Sequence[int]) -> list[MeasuredLevel]:
        """Return the log values at the scales with the indices ``places``, each as the result of a single run."""
        return [MeasuredLevel(self.scales[place], self.log_values[place], 0.0) for place in places]


@dataclass(frozen=True)
class Task:
    """A task: forecast a figure at the scale with index ``asked`` from the scales with indices ``known``."""

    figure: Measured
    known: tuple[int, ...]
    asked: int


@dataclass(frozen=True)
class _Submission:
    owner: str
    system: str
    version: str
    year: int
    scale: Scale
    rates: Mapping[str, float]


def io500(data: Path) -> list[Measured]:
    """Return the median figures by size, for IO500 systems that submitted several sizes of the same version."""
    systems: dict[tuple[str, str, str], list[_Submission]] = defaultdict(list)
    for each in (*_submissions(data / "io500" / "submissions.json"), *_releases(data / "io500")):
        systems[each.owner, each.system, each.version].append(each)
    figures = []
    for (owner, system, version), entries in sorted(systems.items()):
        for group in _of_one_time(entries):
            for phase in PHASES:
                values: dict[Scale, list[float]] = defaultdict(list)
                for entry in group:
                    if phase in entry.rates:
                        values[entry.scale].append(math.log(entry.rates[phase]))
                if len(values) > 1:
                    scales = tuple(sorted(values, key=lambda scale: (scale.clients, scale.ranks)))
                    logs = tuple(median(values[scale]) for scale in scales)
                    figures.append(Measured(owner, f"{system} {version}", phase, phase, scales, logs, "IO500"))
    return figures


def _submissions(path: Path) -> Iterator[_Submission]:
    for entry in json.loads(path.read_text(encoding="utf-8")):
        if all(str(entry[name]).isdigit() for name in ("year", "nodes", "tasks")):
            year, tasks = int(entry["year"]), int(entry["tasks"])
            owner, system = _plain(entry["inst"]), _plain(f"{entry['sys']} {entry['fs']}")
            version = _version_of(system, year, tasks, entry["sub"])
            if version is not None:
                rates = {name: float(value) for name, value in entry["ph"].items() if value and _counts(name, year)}
                yield _Submission(owner, system, version, year, Scale(int(entry["nodes"]), tasks), rates)


def _version_of(system: str, year: int, tasks: int, submission: str) -> str | None:
    """Return a version that tells systems of one name apart, or None to leave the submission out."""
    if submission == "submission-62":
        return None  # a BeeGFS system with the name of a Lustre system
    if "sharedscratch" in system:
        return "b" if tasks in (320, 1040, 1248) else "old" if tasks == 760 else "a"
    return str(year) if "wolf" in system or "janelia compute" in system else ""


def _releases(directory: Path) -> Iterator[_Submission]:
    """Yield submissions of 2017 to 2019 by systems with fewer than two sizes in ``submissions.json``."""
    kept = ("dm11", "qflash", "vast", "jasmin/lotus", "tigershark", "data accelerator")
    path = directory / "releases-2017-2019.csv"
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        system, version = _plain(row["information_system"]), row["information_filesystem_version"]
        if (
            system not in kept
            or version.startswith("2.13")
            or (system, row["information_client_total_procs"]) == ("dm11", "760")
        ):
            continue
        version = version[:1] if system in ("vast", "tigershark") else version.split(" ")[0]
        rates = {name: float(row[name]) for name in PHASES if _counts(name, 2019) and _is_rate(row[name])}
        scale = Scale(int(row["information_client_nodes"]), int(row["information_client_total_procs"]))
        owner = _plain(row["information_institution"]).replace("campus. hhmi", "campus, hhmi")
        yield _Submission(owner, system, version, 2019, scale, rates)


def _counts(phase: str, year: int) -> bool:
    return phase in PHASES and (
        year >= _FIRST_YEAR_OF_CREATES or not phase.startswith("mdtest") or "write" not in phase
    )


def _is_rate(text: str) -> bool:
    return text.replace(".", "", 1).isdigit() and float(text) > 0


def _of_one_time(entries: Sequence[_Submission]) -> list[list[_Submission]]:
    groups: list[list[_Submission]] = []
    for entry in sorted(entries, key=lambda entry: entry.year):
        if groups and entry.year - groups[-1][0].year <= _MOST_YEARS_APART:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def tables() -> list[Measured]:
    """Return the rows and columns of the published tables (bench/prediction/tables.csv) as figures.

    All figures of a system together weigh at most as much as an IO500 system.
    """
    lines: dict[tuple[str, ...], list[tuple[Scale, float]]] = defaultdict(list)
    for row in csv.DictReader(_TABLES.read_text(encoding="utf-8").splitlines()):
        clients, each = int(row["clients"]), int(row["processes_each"])
        point = Scale(clients, clients * each), math.log(float(row["value"]))
        for line in (f"{each} processes each", f"{clients} clients"):
            lines[row["owner"], row["system"], row["figure"], row["kind"], line].append(point)
    lines = {name: sorted(points, key=lambda point: point[0].ranks) for name, points in lines.items() if points[1:]}
    count = Counter((owner, system) for owner, system, *_ in lines)
    return [
        Measured(
            owner,
            system,
            f"{figure}, {line}",
            kind,
            tuple(scale for scale, _ in points),
            tuple(value for _, value in points),
            "CubeFS" if owner == "cubefs" else "other tables",
            weight=min(1.0, len(PHASES) / count[owner, system]),
        )
        for (owner, system, figure, kind, line), points in lines.items()
    ]


def series(path: Path) -> list[Measured]:
    """Return the published series. Times for a fixed amount of work are converted to rates."""
    points: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        points[row["series"], row["unit"], row["x_name"]].append((float(row["x"]), float(row["value"])))
    figures = []
    for (name, unit, along), values in points.items():
        sign = -1 if along == "mds" else 1
        scales = tuple(_along(along, round(x)) for x, _ in sorted(values))
        logs = tuple(sign * math.log(value) for _, value in sorted(values))
        figures.append(Measured(name, name, name, name, scales, logs, "series", is_time=unit == "s"))
    return figures


def _along(name: str, number: int) -> Scale:
    if name == "mds":
        return Scale(8, 8, mdts=number)
    if name == "files":
        return Scale(files=number)
    return Scale(16, number) if name == "processes" else Scale(number, number)


def tasks_of(figure: Measured) -> list[Task]:
    """Return tasks: forecast the largest size from one, two and three smaller sizes (a series: from all of them)."""
    nodes = [scale.clients if figure.source == "IO500" else scale.ranks for scale in figure.scales]
    # Of sizes with equal numbers of nodes, use the one with the fewest ranks.
    places = [place for place, number in enumerate(nodes) if number not in nodes[:place]]
    if figure.source == "series":
        return [Task(figure, tuple(range(len(figure.scales) - 1)), len(figure.scales) - 1)]
    if nodes[places[-1]] < _LEAST_RATIO * nodes[places[0]]:
        return []
    return [Task(figure, tuple(places[:known]), places[-1]) for known in range(1, min(4, len(places)))]


def _plain(name: str) -> str:
    return " ".join(str(name).lower().split())

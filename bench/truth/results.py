"""Verdicts on surveys, kept one a line so that a later call goes on where an earlier one ended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from bench.truth.judge import Verdict
from strakes.findings.record import from_record

# What decides what a survey says; a verdict on other code is none on this one.
_JUDGED = ("statistics", "findings", "analysis", "survey", "studies", "measure")


@cache
def code() -> str:
    """Return a fingerprint of the code that the verdicts are on."""
    here = Path(__file__).resolve()
    rooms = [here.parents[2] / "src/strakes" / room for room in _JUDGED]
    files = sorted(file for room in (*rooms, here.parent) for file in room.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


@dataclass(frozen=True)
class Case:
    """A planted truth and a noise, by name, so that processes can share the work, and how long the survey takes."""

    truth: str
    noise: str
    budget_s: float = 120.0


Survey = Callable[[Case, int], Verdict]


class Results:
    """Verdicts by case and seed; with a file, those of earlier calls with the same code, too."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._verdicts: dict[Case, dict[int, Verdict]] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._take(json.loads(line))

    def _take(self, row: Mapping[str, object]) -> None:
        if row["code"] == code():
            case = Case(str(row["truth"]), str(row["noise"]), float(str(row["budget_s"])))
            self._verdicts.setdefault(case, {})[int(str(row["seed"]))] = from_record(Verdict, row["verdict"])

    def verdicts(self, case: Case, seeds: Collection[int] | None = None) -> list[Verdict]:
        """Return those of a case, by seed; only of these seeds where they are given."""
        of_case = self._verdicts.get(case, {})
        return [of_case[seed] for seed in sorted(of_case) if seeds is None or seed in seeds]

    def make(self, wanted: Iterable[tuple[Case, int]], processes: int, survey: Survey) -> None:
        """Make the surveys (case, seed) that are not there yet, in that order."""
        missing = [(case, seed) for case, seed in wanted if seed not in self._verdicts.get(case, {})]
        for (case, seed), verdict in zip(missing, _each(missing, processes, survey), strict=True):
            row = {"code": code(), **asdict(case), "seed": seed, "verdict": asdict(verdict)}
            self._take(row)
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(f"{json.dumps(row)}\n")


def _each(missing: Sequence[tuple[Case, int]], processes: int, survey: Survey) -> Iterator[Verdict]:
    if processes == 1:
        yield from (survey(case, seed) for case, seed in missing)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(survey, *zip(*missing, strict=True)) if missing else ()

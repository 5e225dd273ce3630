"""Forecasts under a hash, so that nobody changes them later, and how good each turned out."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from strakes.errors import BadInputError
from strakes.predict.figure_levels import FigureLevels
from strakes.predict.scale import Scale
from strakes.store.files import read_json, write_json

_DIRECTORY = "forecasts"


@dataclass(frozen=True)
class Score:
    """One figure of a sealed forecast beside what was measured later, in the figure's unit.

    ``low``, ``high``: the interval for a measurement.
    """

    figure: str
    unit: str
    forecast: float
    low: float
    high: float
    measured: float

    @property
    def factor(self) -> float:
        """How many times too large or too small, at least 1."""
        return math.exp(abs(math.log(self.forecast / self.measured)))

    @property
    def covered(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.low <= self.measured <= self.high


def digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document without its own seal, in hexadecimal.

    >>> digest({"a": 1, "seal": "x"}) == digest({"a": 1})
    True
    """
    bare = {key: value for key, value in document.items() if key != "seal"}
    return hashlib.sha256(json.dumps(bare, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()).hexdigest()


def seal(document: Mapping[str, Any], store: Path) -> str:
    """Keep a forecast under its hash. Returns its id, with which it is scored."""
    value = digest(document)
    forecast_id = f"{str(document['created'])[:10].replace('-', '')}-{value[:12]}"
    directory = store / _DIRECTORY
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{forecast_id}.json"
    if not path.exists():
        write_json(path, {**document, "seal": value})
    return forecast_id


def open_sealed(name: str, store: Path) -> dict[str, Any]:
    """Return a sealed forecast by its id, a beginning of it, or its file. Raises BadInputError for a broken seal."""
    given = Path(name)
    matches = [given] if given.is_file() else sorted((store / _DIRECTORY).glob(f"{_plain(name)}*.json"))
    if len(matches) != 1:
        what = "no sealed forecast has this id" if not matches else "several sealed forecasts begin like this"
        raise BadInputError(what, where=name, remedy="Give the id that strakes predict --seal printed.")
    document = read_json(matches[0])
    if document.get("seal") != digest(document):
        raise BadInputError(
            "the seal of the forecast is broken",
            where=str(matches[0]),
            why="its contents were changed after it was sealed",
            remedy="Use the file as it was sealed; a changed forecast cannot be scored.",
        )
    return document


def score(document: Mapping[str, Any], figures: Sequence[FigureLevels]) -> list[Score]:
    """Return the figures of a sealed forecast that were measured at that scale. Raises BadInputError where none was."""
    measured = {
        (figure.name, figure.unit, level.scale): math.exp(level.log_value)
        for figure in figures
        for level in figure.levels
    }
    scores = []
    for entry in document["figures"]:
        key = entry["figure"], entry["unit"], Scale(**entry["scale"])
        if entry["forecast"] is not None and key in measured:
            forecast = entry["forecast"]
            # Before model 5 the one interval was that for a measurement.
            low, high = forecast.get("measurement") or (forecast["low"], forecast["high"])
            scores.append(Score(key[0], key[1], forecast["median"], low, high, measured[key]))
    if not scores:
        asked = sorted({_spoken(entry["scale"]) for entry in document["figures"] if entry["forecast"] is not None})
        raise BadInputError(
            "the run did not measure any figure of the forecast at the scale asked for",
            why="asked for: " + ("; ".join(asked) or "nothing, every figure was UNKNOWN"),
            remedy="Measure the same study with that many clients, ranks and targets, and score that run.",
        )
    return scores


def keep_scores(document: Mapping[str, Any], run: str, scores: Sequence[Score], store: Path) -> None:
    """Keep how good a sealed forecast was, once for each run."""
    path = store / _DIRECTORY / f"{document['seal'][:12]}.{_plain(run)}.score.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(
        path,
        {
            "seal": document["seal"],
            "run": run,
            "scores": [{"figure": each.figure, "factor": each.factor, "covered": each.covered} for each in scores],
        },
    )


def record_so_far(store: Path) -> tuple[int, float, float] | None:
    """Return how many figures were scored, their median factor of error, and the share inside the 80 % interval."""
    scores = [
        entry
        for path in sorted((store / _DIRECTORY).glob("*.score.json"))
        for entry in read_json(path).get("scores", [])
    ]
    if not scores:
        return None
    return (
        len(scores),
        median(entry["factor"] for entry in scores),
        sum(entry["covered"] for entry in scores) / len(scores),
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name if letter.isalnum() or letter in "-_")


def _spoken(scale: Mapping[str, Any]) -> str:
    counts = ((name, scale[name]) for name in ("clients", "ranks", "mdts", "osts", "files"))
    return ", ".join(f"{count:,} {name}" for name, count in counts if count)

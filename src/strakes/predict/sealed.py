"""Forecasts stored under their hash (sealed), and their scores after the large system was measured."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.files import make_directory, read_kept, read_regular
from strakes.predict.inputs import MeasuredFileSystem, file_system_of
from strakes.predict.levels import FigureLevels, Scale
from strakes.runs.run import Run
from strakes.runs.store_files import store_error, write_json

_DIRECTORY = "forecasts"
_MOST_BYTES = 1 << 28
_MALFORMED = (AttributeError, KeyError, TypeError, ValueError, RecursionError)
_COPY = "Use the unchanged file under its original name."


@dataclass(frozen=True)
class Score:
    """One figure of a sealed forecast and its later measurement (median of ``runs`` runs), in the figure's unit."""

    figure: str
    unit: str
    forecast: float
    low: float
    high: float
    measured: float
    runs: int = 1

    @property
    def factor(self) -> float:
        """Return how many times too large or too small the forecast was, at least 1."""
        return math.exp(abs(math.log(self.forecast / self.measured)))

    @property
    def covered(self) -> bool:
        """Return whether the interval of the forecast contains the measurement."""
        return self.low <= self.measured <= self.high


def digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document without its key ``seal``, in hexadecimal.

    >>> digest({"a": 1, "seal": "x"}) == digest({"a": 1})
    True
    """
    bare = {key: value for key, value in document.items() if key != "seal"}
    return hashlib.sha256(json.dumps(bare, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()).hexdigest()


def seal(document: Mapping[str, Any], store: Path) -> str:
    """Store a forecast under its hash. Return its id, by which it is scored later.

    Raises BadInputError if every figure is UNKNOWN, EnvironmentLacksError if the store cannot be written.
    """
    if all(figure["forecast"] is None for figure in document["figures"]):
        raise BadInputError(
            "a forecast cannot be sealed if every figure is UNKNOWN",
            remedy="Measure what the forecast says is missing, or ask for a smaller size.",
        )
    value = digest(document)
    path = store / _DIRECTORY / f"{_id_of(document, value)}.json"
    try:
        make_directory(path.parent)
        write_json(path, {**document, "seal": value})
    except OSError as error:
        raise store_error(error, path) from error
    return path.stem


def open_sealed(name: str, store: Path) -> dict[str, Any]:
    """Return a sealed forecast by id, beginning of an id, or file. Raises BadInputError if it was changed."""
    given, plain = Path(name), "".join(letter for letter in name if letter.isalnum() or letter == "-")
    matches = sorted((store / _DIRECTORY).glob(f"{plain}*.json")) if plain else []
    matches = [given] if name and given.is_file() else matches
    if len(matches) != 1:
        what = "the ids of several sealed forecasts begin with this" if matches else "no sealed forecast has this id"
        raise BadInputError(what, where=repr(name), remedy="Give the id that strakes predict --seal printed.")
    path = matches[0]
    # A symbolic link is allowed only if the user named the file.
    read = read_regular if path == given else read_kept
    try:
        document: dict[str, Any] = json.loads(read(path, _MOST_BYTES))
        sealed = digest(document)
        is_intact = document["seal"] == sealed and path.stem == _id_of(document, sealed)
    except OSError as error:
        raise BadInputError("the file cannot be read", where=str(path), why=error.strerror or str(error)) from error
    except _MALFORMED as error:
        raise BadInputError("this is not a sealed forecast", where=str(path), why=repr(error), remedy=_COPY) from error
    if not is_intact:
        why = "its contents or its name do not match the hash"
        raise BadInputError("the forecast was changed after it was sealed", where=str(path), why=why, remedy=_COPY)
    return document


def require_later(document: Mapping[str, Any], run: Run) -> None:
    """Raise BadInputError if a run cannot score a forecast.

    That is an input of the forecast, an unfinished or earlier run, or a run on another file system.
    """
    if run.id in {entry["id"] for entry in document["runs"]}:
        raise BadInputError(
            "this run is an input of the forecast",
            where=run.id,
            remedy="Measure the large system, and score that run.",
        )
    if run.is_being_written():
        raise BadInputError("this run is still in progress", where=run.id, remedy="Score the run when it has ended.")
    if _moment(run.manifest["created"]) < _moment(document["created"]):
        raise BadInputError(
            "this run began before the forecast was sealed",
            where=run.id,
            why=f"it began at {run.manifest['created'][:19]}, the forecast was sealed at {document['created'][:19]}",
            remedy="Measure the large system again, and score that run.",
        )
    here = file_system_of(run)
    for other in (MeasuredFileSystem(**entry["file_system"]) for entry in document["runs"]):
        if not other.is_same_as(here):
            raise BadInputError(
                "this run measured another file system than the forecast is for",
                where=run.id,
                why=f"it measured {here.text}, and the forecast was made from {other.text}",
                remedy="Score a run of the same file system.",
            )


def score(document: Mapping[str, Any], figures: Sequence[FigureLevels]) -> list[Score]:
    """Return a score for each figure measured at the scale of its forecast. Raises BadInputError without any."""
    measured = {(figure.name, figure.unit, level.scale): level for figure in figures for level in figure.levels}
    known = [entry for entry in document["figures"] if entry["forecast"] is not None]
    scores = []
    for entry in known:
        forecast, key = entry["forecast"], (entry["figure"], entry["unit"], Scale(**entry["scale"]))
        if (level := measured.get(key)) is not None:
            ends = forecast["median"], forecast["low"], forecast["high"]
            scores.append(Score(*key[:2], *ends, math.exp(level.log_value), level.runs))
    if not scores:
        asked = sorted({Scale(**entry["scale"]).text for entry in known})
        raise BadInputError(
            "the run did not measure any figure of the forecast at the size of the forecast",
            why="forecast for: " + ("; ".join(asked) or "nothing, every figure was UNKNOWN"),
            remedy="Measure the same study with that many clients, ranks and targets, and score that run.",
        )
    return scores


def _id_of(document: Mapping[str, Any], value: str) -> str:
    return f"{str(document['created'])[:10].replace('-', '')}-{value[:12]}"


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

"""Forecasts under a hash, so that nobody changes them unnoticed, and how good each turned out."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from strakes.errors import BadInputError, EnvironmentLacksError
from strakes.files import make_directory, read_at_most
from strakes.predict.figure_levels import FigureLevels
from strakes.predict.file_system import MeasuredFileSystem, contents_of, file_system_of
from strakes.predict.scale import Scale
from strakes.store import Run, Store
from strakes.store.files import store_error, write_json

_DIRECTORY = "forecasts"
_SCORE = ".score.json"
_MOST_BYTES = 1 << 28
_ODD = (KeyError, TypeError, ValueError, AttributeError, OverflowError, StopIteration)


@dataclass(frozen=True)
class Score:
    """One figure of a sealed forecast beside what was measured later, in the figure's unit.

    ``low``, ``high``: the interval for a measurement. ``runs``: how often that size was measured.
    """

    figure: str
    unit: str
    forecast: float
    low: float
    high: float
    measured: float
    runs: int = 1

    @property
    def factor(self) -> float:
        """How many times too large or too small, at least 1."""
        return math.exp(abs(math.log(self.forecast / self.measured)))

    @property
    def covered(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True)
class Record:
    """How good the sealed forecasts of a store were; of one question only the first that was sealed counts.

    ``left_out``: files of scores without their forecast, or damaged.
    """

    scores: tuple[Score, ...] = ()
    left_out: tuple[str, ...] = ()


def digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document without its own seal, in hexadecimal.

    >>> digest({"a": 1, "seal": "x"}) == digest({"a": 1})
    True
    """
    bare = {key: value for key, value in document.items() if key != "seal"}
    return hashlib.sha256(json.dumps(bare, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()).hexdigest()


def seal(document: Mapping[str, Any], store: Path) -> str:
    """Keep a forecast under its hash. Returns its id, with which it is scored.

    Raises BadInputError where all of it is UNKNOWN, EnvironmentLacksError where the store cannot be written.
    """
    if all(figure["forecast"] is None for figure in document["figures"]):
        raise BadInputError(
            "there is nothing to seal: every figure is UNKNOWN",
            remedy="Measure what the forecast says is missing, or ask for a smaller size.",
        )
    value = digest(document)
    forecast_id = _id_of(document, value)
    path = store / _DIRECTORY / f"{forecast_id}.json"
    if not path.exists():
        _write(path, {**document, "seal": value})
    return forecast_id


def open_sealed(name: str, store: Path) -> dict[str, Any]:
    """Return a sealed forecast by its id, a beginning of it, or its file.

    Raises BadInputError for a broken seal, also where the hash is not that of the file's name.
    """
    given = Path(name)
    remedy = "Give the id that strakes predict --seal printed."
    matches = [given] if name and given.is_file() else _forecasts(store, _plain(name)) if _plain(name) else []
    if len(matches) != 1:
        what = "no sealed forecast has this id" if not matches else "several sealed forecasts begin like this"
        raise BadInputError(what, where=repr(name), remedy=remedy)
    return _read_sealed(matches[0])


def _forecasts(store: Path, beginning: str = "") -> list[Path]:
    found = (store / _DIRECTORY).glob(f"{beginning}*.json")
    return sorted(path for path in found if not path.name.endswith(_SCORE))


def _read_sealed(path: Path) -> dict[str, Any]:
    document = _read_strictly(path)
    try:
        value, sealed = document.get("seal"), digest(document)
        name = _id_of(document, sealed)
        _check(document)
    except _ODD as error:
        raise BadInputError(
            "this is not a sealed forecast", where=str(path), why=f"it lacks what each has ({error!r})", remedy=_COPY
        ) from error
    if value != sealed:
        raise BadInputError(
            "the seal of the forecast is broken",
            where=str(path),
            why="its contents were changed after it was sealed",
            remedy=_COPY,
        )
    if path.stem != name:
        raise BadInputError(
            "the forecast is not the one that its name promises",
            where=str(path),
            why=f"its contents have the id {name}",
            remedy=_COPY,
        )
    return document


_COPY = "Use the file as it was sealed, under its own name; a changed forecast cannot be scored."


def _read_strictly(path: Path) -> dict[str, Any]:
    """Return a document in which every key stands once and every number is one. Raises BadInputError."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            raise ValueError("a key stands twice in it")
        return dict(pairs)

    def refuse(word: str) -> float:
        raise ValueError(f"{word} is not a number")

    try:
        document = json.loads(
            read_at_most(path, _MOST_BYTES), object_pairs_hook=once, parse_constant=refuse, parse_float=_finite
        )
        if not isinstance(document, dict):
            raise ValueError("it does not contain a JSON object")
    except OSError as error:
        raise BadInputError("the file cannot be read", where=str(path), why=error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise BadInputError("the file is damaged", where=str(path), why=str(error), remedy=_COPY) from error
    return document


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number


def _check(document: Mapping[str, Any]) -> None:
    """Look at all that scoring reads. Raises an error of ``_ODD`` where something is missing."""
    _moment(document["created"])
    _question(document)
    for run in document["runs"]:
        str(run["id"]), MeasuredFileSystem(**run.get("file_system", {}))
    for entry in document["figures"]:
        str(entry["figure"]), str(entry["unit"]), Scale(**entry["scale"])
        if entry["forecast"] is not None:
            low, high = _ends(entry["forecast"])
            if not 0 < low <= high or not float(entry["forecast"]["median"]) > 0:
                raise ValueError("a forecast that is not above zero")


def _ends(forecast: Mapping[str, Any]) -> tuple[float, float]:
    # Before model 5 the one interval was that for a measurement.
    low, high = forecast.get("measurement") or (forecast["low"], forecast["high"])
    return float(low), float(high)


def require_later(document: Mapping[str, Any], run: Run, store: Store) -> list[str]:
    """Refuse a run that cannot judge a forecast: one of its inputs, one that began before it, another file system's.

    Returns what is to be said of the inputs: those that were changed since, or are not there. Raises BadInputError.
    """
    id_of_forecast = _id_of(document, document["seal"])
    if run.id in {entry["id"] for entry in document["runs"]}:
        raise BadInputError(
            "this run is one of those that the forecast was made from",
            where=run.id,
            remedy="Measure the large system, and score that run.",
        )
    if run.is_being_written():
        raise BadInputError("this run is still in progress", where=run.id, remedy="Score it when it has ended.")
    if _moment(run.manifest["created"]) < _moment(document["created"]):
        raise BadInputError(
            "this run began before the forecast was sealed",
            where=run.id,
            why=f"it began at {run.manifest['created'][:19]}, and {id_of_forecast} was sealed at "
            f"{document['created'][:19]}",
            remedy="Measure the large system again, and score that run.",
        )
    here = file_system_of(run)
    inputs = [_file_system_of_input(entry, store) for entry in document["runs"]]
    if other := next((each for each in inputs if each is not None and not each.is_same_as(here)), None):
        raise BadInputError(
            "this run measured another file system than the forecast is for",
            where=run.id,
            why=f"it measured {here.text}, and the forecast was made from {other.text}",
            remedy="Score a run of the same file system.",
        )
    return [said for entry in document["runs"] if (said := _say_input(entry, store))]


def _file_system_of_input(entry: Mapping[str, Any], store: Store) -> MeasuredFileSystem | None:
    """Return what an input measured; None where neither the forecast, as before model 6, nor the store tells."""
    if "file_system" in entry:
        return MeasuredFileSystem(**entry["file_system"])
    try:
        return file_system_of(store.open(entry["id"]))
    except BadInputError:
        return None


def _say_input(entry: Mapping[str, Any], store: Store) -> str:
    try:
        run = store.open(entry["id"])
        now = contents_of(run)
    except (BadInputError, OSError):
        return f"The input run {entry['id']} is not in this store: whether it was changed cannot be checked."
    if run.id != entry["id"] or "contents" not in entry:
        return f"Whether the input run {entry['id']} was changed cannot be checked."
    return "" if now == entry["contents"] else f"The input run {run.id} was changed after the forecast was sealed."


def score(document: Mapping[str, Any], figures: Sequence[FigureLevels]) -> list[Score]:
    """Return the figures of a sealed forecast that were measured at that scale. Raises BadInputError where none was."""
    measured = {(figure.name, figure.unit, level.scale): level for figure in figures for level in figure.levels}
    scores = []
    for entry in document["figures"]:
        key = entry["figure"], entry["unit"], Scale(**entry["scale"])
        if entry["forecast"] is not None and key in measured:
            level = measured[key]
            scores.append(
                Score(
                    *key[:2],
                    entry["forecast"]["median"],
                    *_ends(entry["forecast"]),
                    math.exp(level.log_value),
                    level.runs,
                )
            )
    if not scores:
        asked = sorted({Scale(**entry["scale"]).text for entry in document["figures"] if entry["forecast"] is not None})
        raise BadInputError(
            "the run did not measure any figure of the forecast at the size that it is for",
            why="asked for: " + ("; ".join(asked) or "nothing, every figure was UNKNOWN"),
            remedy="Measure the same study with that many clients, ranks and targets, and score that run.",
        )
    return scores


def keep_scores(document: Mapping[str, Any], run: str, scores: Sequence[Score], store: Path) -> None:
    """Keep what was measured of a sealed forecast, once for each run."""
    forecast_id = _id_of(document, document["seal"])
    told = [{key: getattr(each, key) for key in ("figure", "unit", "measured", "runs")} for each in scores]
    path = store / _DIRECTORY / f"{forecast_id}.{_plain(run)}{_SCORE}"
    _write(path, {"forecast": forecast_id, "seal": document["seal"], "run": run, "scores": told})


def record_so_far(store: Path) -> Record:
    """Return how good the sealed forecasts of a store were, by what was measured and what the forecasts say."""
    documents: dict[str, dict[str, Any]] = {}
    for path in _forecasts(store):
        try:
            documents[path.stem] = _read_sealed(path)
        except BadInputError:
            continue
    first: dict[str, str] = {}
    for name, document in sorted(documents.items(), key=lambda item: _moment(item[1]["created"])):
        first.setdefault(_question(document), name)
    scores: dict[tuple[str, str, str], Score] = {}
    left_out = []
    # By the times of the runs: of several that measured a figure the first counts.
    for path in sorted((store / _DIRECTORY).glob(f"*{_SCORE}")):
        try:
            told = _read_strictly(path)
            document = documents[told["forecast"]]
            if told["seal"] != document["seal"]:
                raise ValueError("another seal")
            own = [_again(document, entry) for entry in told["scores"]]
        except (*_ODD, BadInputError):
            left_out.append(path.name)
            continue
        if first[_question(document)] == told["forecast"]:
            for each in own:
                scores.setdefault((told["forecast"], each.figure, each.unit), each)
    return Record(tuple(scores.values()), tuple(left_out))


def _again(document: Mapping[str, Any], told: Mapping[str, Any]) -> Score:
    """Return a score that was kept, judged by the sealed forecast."""
    entry = next(
        each for each in document["figures"] if (each["figure"], each["unit"]) == (told["figure"], told["unit"])
    )
    measured = float(told["measured"])
    if not measured > 0:
        raise ValueError("not above zero")
    return Score(
        told["figure"],
        told["unit"],
        entry["forecast"]["median"],
        *_ends(entry["forecast"]),
        measured,
        int(told["runs"]),
    )


def _question(document: Mapping[str, Any]) -> str:
    """Return what was asked of what: the same inputs, size and limits are one question, whatever was answered."""
    runs = sorted(str(run.get("contents") or run["digest"]) for run in document["runs"])
    return json.dumps([runs, document["asked"], document["stated"]], sort_keys=True)


def _id_of(document: Mapping[str, Any], value: str) -> str:
    return f"{str(document['created'])[:10].replace('-', '')}-{value[:12]}"


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _write(path: Path, document: Mapping[str, Any]) -> None:
    try:
        make_directory(path.parent)
        write_json(path, document)
    except OSError as error:
        raise store_error(error, path) from error
    except EnvironmentLacksError as error:
        remedy = "Free some space there, or set STRAKES_STORE to a directory elsewhere."
        raise EnvironmentLacksError(error.what, where=error.where, why=error.why, remedy=remedy) from error


def _plain(name: str) -> str:
    return "".join(letter for letter in name if letter.isalnum() or letter in "-_")

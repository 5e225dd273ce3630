"""The measurement to base advice on: the requested one, the user's own, or the site's published one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from strakes.errors import BadInputError
from strakes.store import Run, Store
from strakes.store.published import PublishedRun

VARIABLE = "STRAKES_PORTRAIT"
# Reading one takes about a second.
_MOST_LOOKED_AT = 10
# Below each of the system's data directories.
_PUBLISHED = ("strakes/portrait.json", "strakes/portrait.json.gz")
_SHARED_DATA = "/usr/local/share:/usr/share"


def run_to_advise_from(wanted: str | None, answers: Callable[[Run], bool] | None = None) -> Run:
    """``wanted`` (a run's id or a file), else $STRAKES_PORTRAIT, else the user's newest survey or study, else what the
    site has published.

    With ``answers``: the newest of the user's runs that answers a question, otherwise the newest.

    Raises BadInputError when there is none, with the shortest measurement that would do.
    """
    store = Store()
    if wanted is not None:
        return PublishedRun(Path(wanted)) if os.sep in wanted or Path(wanted).is_file() else store.open(wanted)
    if chosen := os.environ.get(VARIABLE):
        return PublishedRun(Path(chosen).expanduser())
    measured = [
        run for run in store.runs() if run.kind in ("survey", "study") and run.status in ("complete", "partial")
    ]
    if measured:
        return _chosen([store.open(run.id) for run in measured[: -1 - _MOST_LOOKED_AT : -1]], answers)
    for place in published_places():
        if place.exists():
            return PublishedRun(place)
    why = (
        f"there is no finished survey or study, {VARIABLE} is not set, and no system data directory has {_PUBLISHED[0]}"
    )
    remedy = "Run strakes survey DIR --budget 2m first, with DIR on the file system that the application uses."
    raise BadInputError("there are no measurements to base advice on", where=str(store.root), why=why, remedy=remedy)


def _chosen(newest: Sequence[Run], answers: Callable[[Run], bool] | None) -> Run:
    """Return the first run that answers a question, otherwise the first; a damaged one only as a last resort."""
    whole = []
    for run in newest:
        with suppress(BadInputError):
            run.require_whole()
            if answers is None or answers(run):
                return run
            whole.append(run)
    return (whole or newest)[0]


def published_places() -> tuple[Path, ...]:
    """Return where a site's published portrait is looked for, in order (XDG base directories)."""
    directories = (os.environ.get("XDG_DATA_DIRS") or _SHARED_DATA).split(":")
    return tuple(Path(directory) / name for directory in directories if os.path.isabs(directory) for name in _PUBLISHED)

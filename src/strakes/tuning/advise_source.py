"""Select the stored run on which advice is based."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.base.files import in_home
from strakes.runs.published import PublishedRun
from strakes.runs.run import Run
from strakes.runs.store import Store

VARIABLE = "STRAKES_PORTRAIT"
# Maximum number of stored runs to search. Reading one takes about a second.
_MOST_RUNS = 10
_PUBLISHED = ("strakes/portrait.json", "strakes/portrait.json.gz")
_SHARED_DATA = "/usr/local/share:/usr/share"


def run_to_advise_from(wanted: str | None, answers: Callable[[Run], bool]) -> Run:
    """Return the stored run on which advice is based.

    Order of preference: ``wanted`` (an id or a file), the file $STRAKES_PORTRAIT, the user's newest survey or study for
    which ``answers`` is true, the newest survey or study, and a run that the site published. Raises BadInputError if no
    run exists.
    """
    store = Store()
    if wanted is not None:
        return PublishedRun(Path(wanted)) if os.sep in wanted or "." in wanted else store.open(wanted)
    if chosen := os.environ.get(VARIABLE):
        return PublishedRun(in_home(chosen, f"Set {VARIABLE} to the whole path."))
    kinds, ended = ("survey", "study"), ("complete", "partial")
    measured = [run for run in store.runs() if run.kind in kinds and run.status in ended]
    if measured:
        return _chosen([store.open(run.id) for run in measured[: -1 - _MOST_RUNS : -1]], answers)
    for place in published_places():
        if place.exists():
            return PublishedRun(place)
    why = f"no finished survey or study exists, {VARIABLE} is not set, and no system data directory has {_PUBLISHED[0]}"
    remedy = "Run strakes survey DIR --budget 2m first, with DIR on the file system that the application uses."
    raise BadInputError("there are no measurements to base advice on", where=str(store.root), why=why, remedy=remedy)


def _chosen(newest: Sequence[Run], answers: Callable[[Run], bool]) -> Run:
    whole = []
    for run in newest:
        with suppress(BadInputError):
            run.require_whole()
            if answers(run):
                return run
            whole.append(run)
    return (whole or newest)[0]


def published_places() -> tuple[Path, ...]:
    """Return the paths where a site may publish a run for its users, in order of preference (XDG base directories)."""
    directories = (os.environ.get("XDG_DATA_DIRS") or _SHARED_DATA).split(":")
    return tuple(Path(directory) / name for directory in directories if os.path.isabs(directory) for name in _PUBLISHED)

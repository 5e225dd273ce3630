"""Creates, finds and resumes runs."""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from strakes.base.errors import BadInputError, StrakesError
from strakes.base.file_kinds import refuse_other_kind
from strakes.base.files import default_root, make_directory, make_new_directory, open_directory
from strakes.base.units import counted
from strakes.base.version import __version__
from strakes.runs.jobs import Jobs
from strakes.runs.run import Run, RunSummary, summary_of
from strakes.runs.store_files import of_another_user, store_error, write_json
from strakes.runs.writer import RunWriter, utc_now
from strakes.targets.marker import MARKER_NAME
from strakes.targets.removal import remove_tree

_LIST_THEM = "strakes runs lists the runs."


class Store:
    """All runs below one directory; it is made with the first run.

    >>> import tempfile
    >>> from strakes.runs.records import Visit
    >>> with tempfile.TemporaryDirectory() as place:
    ...     store = Store(Path(place) / "store")
    ...     with store.create("study", "transfer-size", Path("/proc"), {"fingerprint": "f"}, {}) as writer:
    ...         writer.append_visit(Visit(1))
    ...         writer.finish("complete")
    ...     store.open("latest").visits, [run.status for run in store.runs()]
    ([Visit(visit=1, ...)], ['complete'])
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or default_root()).absolute()
        self._runs = self.root / "runs"

    def create(
        self,
        kind: str,
        name: str,
        target: Path,
        options: Mapping[str, object],
        environment: Mapping[str, object],
        *,
        measured_at: datetime | None = None,
        elsewhere: bool = False,
    ) -> RunWriter:
        """Begin a new run.

        Raises BadInputError for a store inside a workspace, EnvironmentLacksError if it cannot be written.
        An imported run was measured before (``measured_at``) and perhaps on a target that is not here (``elsewhere``).
        """
        if not elsewhere:
            _require(target)
        self._refuse_workspace()
        path = self._new_directory(name)
        try:
            write_json(path / "environment.json", environment)
            # run.json makes the directory a run, so it is written last.
            write_json(
                path / "run.json",
                {
                    "schema": 1,
                    "id": path.name,
                    "kind": kind,
                    "name": name,
                    "target": str(target) if elsewhere else os.path.abspath(target),
                    "options": dict(options),
                    "created": (measured_at or utc_now()).isoformat(),
                    "status": "running",
                    "command": ["strakes", *sys.argv[1:]],
                    "strakes_version": __version__,
                },
            )
            writer = RunWriter(path)
        except StrakesError:
            _remove(path)
            raise
        Jobs(self.root).take_note(path.name)
        return writer

    def open(self, run: str) -> Run:
        """Return the run with that id or unique prefix of an id, the "latest", or the N-th before it, "latest~N".

        Raises BadInputError.
        """
        return Run(self._find(run).path)

    def resume(self, run: str | None, fingerprint: str) -> RunWriter:
        """Resume ``run``, or if None the newest unfinished run whose options have ``fingerprint``.

        Raises BadInputError if the run is complete, still running or has other options.
        """
        summary = self._find(run) if run else self._newest_unfinished(fingerprint)
        if summary.status == "complete":
            raise BadInputError(
                "this run is complete", where=summary.id, remedy=f"See it with: strakes report {summary.id}"
            )
        if _fingerprint(summary) != fingerprint:
            raise BadInputError(
                "this run was made with other options",
                where=summary.id,
                why=f"it ran: {' '.join(Run(summary.path).manifest.get('command', []))}",
                remedy="Resume it with the same directory and options, or start a new run without --resume.",
            )
        self._refuse_workspace()
        writer = RunWriter(summary.path)
        try:
            writer.mark_running()
        except BaseException:
            writer.close()
            raise
        Jobs(self.root).take_note(writer.id)
        return writer

    def discard(self, writer: RunWriter) -> None:
        """Remove a run without measurements."""
        writer.close()
        _remove(writer.path)

    def runs(self) -> list[RunSummary]:
        """Return all runs, oldest first."""
        try:
            paths = [self._runs / name for name in os.listdir(self._runs) if not name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except PermissionError as error:
            raise of_another_user(error, self._runs) from error
        runs = [summary_of(path) for path in paths if (path / "run.json").exists()]
        return sorted(runs, key=lambda run: (run.created, run.id))

    def _find(self, run: str) -> RunSummary:
        runs = self.runs()
        if os.sep in run or os.path.isfile(run):
            refuse_other_kind(Path(run), "run", "a run of the store")
        if not runs:
            raise BadInputError(
                "the store has no runs yet", where=str(self.root), remedy="Make one: strakes survey DIR"
            )
        if latest := re.fullmatch(r"latest(?:~([0-9]{1,9}))?", run):
            before = int(latest[1] or 0)
            if before < len(runs):
                return runs[-1 - before]
            raise BadInputError(f"no run {run!r} in the store", why=f"the store has {counted(len(runs), 'run')}")
        matches = [summary for summary in runs if summary.id == run] or [
            summary for summary in runs if run and summary.id.startswith(run)
        ]
        if len(matches) == 1:
            return matches[0]
        if matches:
            newest = ", ".join(match.id for match in matches[-4:])
            raise BadInputError(f"{len(matches)} runs begin with {run!r}", why=newest, remedy="Give more of the id.")
        if run and "/" not in run and (self._runs / run / "visits.jsonl").exists():
            raise Run(self._runs / run).damaged("it is missing", "run.json")
        raise BadInputError(f"no run {run!r} in the store", where=str(self.root), remedy=_LIST_THEM)

    def _newest_unfinished(self, fingerprint: str) -> RunSummary:
        alike = [run for run in self.runs() if _fingerprint(run) == fingerprint]
        unfinished = [run for run in alike if run.status not in ("complete", "running")]
        if unfinished:
            return unfinished[-1]
        if not alike:
            remedy = f"Start one without --resume. {_LIST_THEM}"
            raise BadInputError(
                "no run with this directory and these options can be resumed", where=str(self.root), remedy=remedy
            )
        if alike[-1].status == "running":
            raise BadInputError(
                "the run is still in progress",
                where=alike[-1].id,
                remedy="Wait until it ends, or stop it, then resume.",
            )
        raise BadInputError(
            "the last such run is complete", where=alike[-1].id, remedy=f"See it with: strakes report {alike[-1].id}"
        )

    def _new_directory(self, name: str) -> Path:
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower())[:40].strip("-") or "run"
        try:
            make_directory(self._runs)
            while True:
                path = self._runs / f"{utc_now():%Y%m%d-%H%M%S}-{slug}-{secrets.token_hex(2)}"
                try:
                    make_new_directory(path)
                except FileExistsError:
                    continue
                return path
        except OSError as error:
            raise store_error(error, self.root) from error

    def _refuse_workspace(self) -> None:
        """Refuse a store inside a workspace, which is removed when its run ends."""
        place = Path(os.path.realpath(self.root))
        for ancestor in (place, *place.parents):
            if os.path.lexists(ancestor / MARKER_NAME):
                raise BadInputError(
                    "the store is inside a directory of a run",
                    where=str(self.root),
                    why=f"{ancestor} is removed when that run ends",
                    remedy="Set STRAKES_STORE to a directory elsewhere.",
                )


def _remove(run: Path) -> None:
    """Remove the directory of a run without following mounts or links; ignore failures."""
    with suppress(OSError):
        parent = open_directory(run.parent)
        try:
            remove_tree(parent, run.name)
        finally:
            os.close(parent)


def _require(target: Path) -> None:
    try:
        os.stat(target)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise BadInputError("the directory to measure cannot be reached", where=str(target), why=why) from error


def _fingerprint(summary: RunSummary) -> str:
    return (
        "" if summary.status == "damaged" else str(Run(summary.path).manifest.get("options", {}).get("fingerprint", ""))
    )

"""Create, find and resume runs in the store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path

from strakes.base.errors import BadInputError, InterruptedByUser, StoppedForOthersError, StrakesError, did_you_mean
from strakes.base.file_kinds import refuse_other_kind
from strakes.base.files import closing, default_root, make_new_directory, open_directory, own_directory, pinned
from strakes.base.foreign_text import command_line
from strakes.base.units import counted
from strakes.base.version import __version__
from strakes.runs.run import Run, RunSummary, summary_of, told_as_damage
from strakes.runs.store_files import of_another_user, store_errors, write_json
from strakes.runs.writer import RunWriter, utc_now
from strakes.targets.removal import enter, remove_empty

_LIST_THEM = "List the runs: strakes runs"
_FILE = re.compile(r"(run|environment|findings|answers)\.json|(cells|visits|events)\.jsonl|report\.html|\.strakes-\w+")


class Store:
    """The directory with all runs. It is created with the first run."""

    told_as_damage = staticmethod(told_as_damage)

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
        """Create a run and return its writer.

        ``measured_at``: time of an imported measurement. ``elsewhere``: accept the name of a directory on another
        machine. Raises BadInputError if the target is missing, EnvironmentLacksError if the store cannot be written.
        """
        try:
            if not elsewhere:
                os.stat(target)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise BadInputError("the directory to measure cannot be reached", where=str(target), why=why) from error
        slug, path, opened = re.sub(r"[^a-z0-9]+", "-", name.lower())[:40].strip("-") or "run", self._runs, -1
        with store_errors(self.root):
            os.close(open_directory(self._runs, make=0o700))
            while opened < 0:
                path = self._runs / f"{utc_now():%Y%m%d-%H%M%S}-{slug}-{os.urandom(2).hex()}"
                with suppress(FileExistsError):
                    opened = make_new_directory(path)
        with closing(opened), ExitStack() as failed, pinned(path, opened):
            failed.callback(_remove, path, os.fstat(opened))
            write_json(path / "environment.json", environment)
            manifest = {
                "schema": 1,
                "id": path.name,
                "kind": kind,
                "name": name,
                "target": str(target) if elsewhere else os.path.abspath(target),
                "options": dict(options),
                "created": (measured_at or utc_now()).isoformat(),
                "status": "running",
                "command": command_line(),
                "strakes_version": __version__,
            }
            # A directory counts as a run once it has run.json, so write this file last.
            write_json(path / "run.json", manifest)
            writer = RunWriter(path, opened)
            failed.pop_all()
        return writer

    def open(self, run: str) -> Run:
        """Return the run with this id or unique prefix, or "latest", or "latest~N" (the N-th before the latest).

        Raises BadInputError if no run matches, or if several match.
        """
        path = self._runs / run
        # For a complete id, do not list the store, which may have thousands of runs.
        is_id = run not in ("", ".", "..") and os.sep not in run and os.path.exists(path / "run.json")
        return Run(path if is_id else self._find(run).path)

    def resume(self, fingerprint: str) -> RunWriter:
        """Return the writer of the newest unfinished run whose options have the hash ``fingerprint``.

        Raises BadInputError if no run matches, if another process writes it, or if other users could have written it.
        """
        path = self._newest_unfinished(fingerprint).path
        with own_directory(path) as opened, ExitStack() as failed:
            writer = failed.enter_context(RunWriter(path, opened))
            if writer.run.manifest["options"].get("fingerprint") != fingerprint:
                raise writer.run.damaged("another run has taken the name of this run", "run.json")
            writer.mark_running()
            failed.pop_all()
        return writer

    def discard(self, writer: RunWriter) -> None:
        """Remove a run without measurements."""
        writer.close()
        _remove(writer.path, writer.made)

    def runs(self) -> list[RunSummary]:
        """Return all runs that this user can read, oldest first."""
        try:
            paths = [self._runs / name for name in os.listdir(self._runs) if not name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except PermissionError as error:
            raise of_another_user(error, self._runs) from error
        return sorted(filter(None, map(summary_of, paths)), key=lambda run: (run.created, run.id))

    def _find(self, run: str) -> RunSummary:
        runs = self.runs()
        if os.sep in run or ("." in run and os.path.isfile(run)):  # a file name, because ids of runs have no dots
            refuse_other_kind(Path(run), "run", "a run of the store")
        if not runs:
            remedy = "Start a run: strakes survey DIR"
            raise BadInputError("the store has no runs yet", where=str(self.root), remedy=remedy)
        if latest := re.fullmatch(r"latest(?:~([0-9]{1,9}))?", run):
            before = int(latest[1] or 0)
            if before < len(runs):
                return runs[-1 - before]
            why, remedy = f"the store has {counted(len(runs), 'run')}", f"The oldest is latest~{len(runs) - 1}."
            raise BadInputError(f"no run {run!r} in the store", why=why, remedy=remedy)
        matches = [summary for summary in runs if run and summary.id.startswith(run)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            newest = ", ".join(match.id for match in matches[-4:])
            raise BadInputError(f"{len(matches)} run ids begin with {run!r}", why=newest, remedy="Give a longer id.")
        if run and "/" not in run and (self._runs / run / "visits.jsonl").exists():
            raise Run(self._runs / run).damaged("it is missing", "run.json")
        # Suggest only very similar ids, because all ids of one day and kind share 75 % of their characters.
        remedy = did_you_mean(run, ("latest", *(summary.id for summary in runs)), _LIST_THEM, cutoff=0.8)
        raise BadInputError(f"no run {run!r} in the store", where=str(self.root), remedy=remedy)

    def _newest_unfinished(self, fingerprint: str) -> RunSummary:
        readable = [run for run in self.runs() if run.status != "damaged"]
        alike = [run for run in readable if Run(run.path).manifest["options"].get("fingerprint") == fingerprint]
        unfinished = [run for run in alike if run.status not in ("complete", "running")]
        if unfinished:
            return unfinished[-1]
        if not alike:
            what, where = "no run with this directory and these options can be resumed", str(self.root)
            raise BadInputError(what, where=where, remedy=f"Start a run without --resume. {_LIST_THEM}")
        state, remedy = "still in progress", "Wait until that run ends."
        if alike[-1].status == "complete":
            see = f"strakes report {alike[-1].id}"
            state, remedy = "complete", f"Measure again without --resume, or see the results: {see}"
        raise BadInputError(f"the last run with these options is {state}", where=alike[-1].id, remedy=remedy)


@contextmanager
def ended_in_order(store: Store, writer: RunWriter, *, resumable: bool = True) -> Iterator[None]:
    """Store the status "interrupted" or "failed" if the ``with`` block raises. Discard a run without measurements.

    Raises InterruptedByUser for Ctrl-C. Raises BadInputError or PerhapsDamagedError if a resumed run is inconsistent.
    Passes other exceptions on.
    """
    resumed = writer.run.cells or writer.run.visits or writer.run.events
    try:
        with told_as_damage(writer.run) if resumed else nullcontext():
            yield
    except KeyboardInterrupt:
        if all(visit.purpose == "pilot" for visit in Run(writer.path).visits):
            store.discard(writer)
            raise InterruptedByUser("interrupted before the first run was complete: nothing is kept") from None
        writer.finish("interrupted")
        remedy = "To continue, run the same command with --resume."
        if not resumable:
            remedy = "Its files have been removed. To be able to resume, start the run with --keep."
        raise InterruptedByUser(f"interrupted{_kept(writer)}", where=f"run {writer.id}", remedy=remedy) from None
    except StoppedForOthersError as error:
        writer.finish("interrupted")
        error.what, error.where = f"{error.what}{_kept(writer)}", f"run {writer.id}"
        raise
    except BaseException as error:
        visits = Run(writer.path).visits
        measured = any(visit.purpose != "pilot" for visit in visits)
        if measured and isinstance(error, StrakesError) and _kept(writer):
            kept = f"Finished measurements are kept: strakes report {writer.id}"
            error.remedy = f"{error.remedy} {kept}".strip()
        if measured or (visits and not isinstance(error, BadInputError)):
            writer.finish("failed")
        else:
            store.discard(writer)
        raise


def _kept(writer: RunWriter) -> str:
    finished = any(visit.ended_well and visit.purpose != "pilot" for visit in Run(writer.path).visits)
    return "; finished measurements are kept" if finished else ""


def _remove(run: Path, made: os.stat_result) -> None:
    with suppress(OSError), pinned(run.parent) as parent, closing(enter(parent, run.name)) as own:
        # Remove only files of this run. The owner of the store can have replaced the directory or added other files.
        if os.path.samestat(os.fstat(own), made):
            for name in filter(_FILE.fullmatch, os.listdir(own)):
                os.unlink(name, dir_fd=own)
            remove_empty(parent, run.name, own, run.name)

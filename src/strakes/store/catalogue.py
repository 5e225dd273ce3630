"""The catalogue: a cache of all run.json files, so that listing thousands of runs is quick.

Each entry carries the stamp of the run.json it was read from. An entry that is missing, old or of a run that is gone is
mended when the list is asked for, and a catalogue that cannot be read is made again.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from strakes.errors import StrakesError
from strakes.files import read_kept, replace_kept
from strakes.store.files import of_another_user
from strakes.store.run import Run, RunSummary, Status

# 200,000 runs of 300 bytes each; a larger catalogue is not used.
_MOST_BYTES = 64 << 20


class Catalogue:
    """The list of the runs below ``root``."""

    def __init__(self, root: Path) -> None:
        self._runs = root / "runs"
        self._path = root / "catalogue.json"

    def summaries(self) -> list[RunSummary]:
        """List all runs, oldest first; a run whose writer was killed is listed as interrupted."""
        stamps = self._stamps()
        known = self._read()
        entries = {
            run: known[run] if known.get(run, ("",))[0] == stamp else (stamp, _read_summary(self._runs / run))
            for run, stamp in stamps.items()
        }
        if entries != known:
            # A store that cannot be written is listed all the same.
            with suppress(OSError):
                replace_kept(self._path, _to_json(entries))
        summaries = sorted((summary for _, summary in entries.values()), key=lambda one: (one.created, one.id))
        return [_with_present_status(summary) for summary in summaries]

    def _read(self) -> dict[str, tuple[str, RunSummary]]:
        try:
            rows = json.loads(read_kept(self._path, _MOST_BYTES))
            return {run: (stamp, _summary(row, self._runs / run)) for run, (stamp, row) in rows.items()}
        except (OSError, StrakesError, ValueError, TypeError, AttributeError, RecursionError):
            return {}

    def _stamps(self) -> dict[str, str]:
        """Return the id of every run, with the stamp of its run.json."""
        try:
            names = os.listdir(self._runs)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except PermissionError as error:
            raise of_another_user(error, self._runs) from error
        return {name: stamp for name in names if not name.startswith(".") and (stamp := _stamp(self._runs / name))}


def _summary(row: dict[str, object], path: Path) -> RunSummary:
    """Return an entry as it was written. Raises TypeError for any other."""
    texts: dict[str, Any] = {key: str(value) for key, value in row.items()}
    return RunSummary(**texts, path=path)


def _to_json(entries: dict[str, tuple[str, RunSummary]]) -> bytes:
    rows = {
        run: (stamp, {key: value for key, value in asdict(summary).items() if key != "path"})
        for run, (stamp, summary) in entries.items()
    }
    return json.dumps(rows).encode()


def _stamp(run: Path) -> str:
    """Return a text that changes whenever run.json is replaced; empty for a directory without one."""
    try:
        status = (run / "run.json").stat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return f"{status.st_mtime_ns}:{status.st_ino}:{status.st_size}"


def _read_summary(path: Path) -> RunSummary:
    run = Run(path)
    try:
        manifest = run.manifest
    except (StrakesError, OSError):
        return RunSummary(path.name, "", "", "", "", "damaged", _begun(path.name), path)
    try:
        mount = run.environment.get("mount", {})
    except (StrakesError, OSError):
        mount = {}
    return RunSummary(
        id=run.id,
        kind=str(manifest.get("kind", "")),
        name=str(manifest.get("name", "")),
        target=run.directories,
        file_system=str(mount.get("file_system", "")),
        status=cast("Status", str(manifest.get("status", "damaged"))),
        created=str(manifest.get("created", "")),
        path=path,
    )


def _begun(run: str) -> str:
    """Return when a run began, as its id has it; empty where it has not.

    >>> _begun("20261121-031339-survey-1f2a"), _begun("mine")
    ('2026-11-21T03:13:39+00:00', '')
    """
    try:
        return datetime.strptime(run[: len("20261121-031339")], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).isoformat()
    except ValueError:
        return ""


def _with_present_status(summary: RunSummary) -> RunSummary:
    if summary.status == "running" and not Run(summary.path).is_being_written():
        return replace(summary, status="interrupted")
    return summary

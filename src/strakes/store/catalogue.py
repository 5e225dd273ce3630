"""The catalogue: a cache of all run.json files that makes listing thousands of runs fast.

Each entry has the time, inode and size of its run.json. Listing the runs updates missing and outdated entries and
replaces an unreadable catalogue.
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
            # A read-only store can still be listed.
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
    """Parse a catalogue entry. Raises TypeError if it has other fields."""
    texts: dict[str, Any] = {key: str(value) for key, value in row.items()}
    return RunSummary(**texts, path=path)


def _to_json(entries: dict[str, tuple[str, RunSummary]]) -> bytes:
    rows = {
        run: (stamp, {key: value for key, value in asdict(summary).items() if key != "path"})
        for run, (stamp, summary) in entries.items()
    }
    return json.dumps(rows).encode()


def _stamp(run: Path) -> str:
    """Return time, inode and size of run.json, which change when it is replaced; empty if it is missing."""
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
    """Return the start time in a run's id, or an empty text if it has none.

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

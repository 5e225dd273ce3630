"""A run as it is read back from its directory."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from strakes.store.files import read_json, read_json_lines, write_json

FinishedStatus = Literal["complete", "interrupted", "failed", "partial"]
Status = Literal["running", "complete", "interrupted", "failed", "partial", "damaged"]


@dataclass(frozen=True)
class RunSummary:
    """One line of the list of runs. ``created`` is ISO 8601 in UTC; ``status`` damaged: its run.json cannot be read."""

    id: str
    kind: str
    name: str
    target: str
    file_system: str
    status: Status
    created: str
    path: Path


@dataclass(frozen=True)
class Run:
    """One run: its directory, read when asked and then kept (a run that grows is opened again to see more)."""

    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """id, kind, name, target, options, created, status, command, strakes_version."""
        return read_json(self.path / "run.json")

    @cached_property
    def environment(self) -> dict[str, Any]:
        return read_json(self.path / "environment.json")

    @cached_property
    def cells(self) -> list[dict[str, Any]]:
        return read_json_lines(self.path / "cells.jsonl")

    @cached_property
    def visits(self) -> list[dict[str, Any]]:
        return read_json_lines(self.path / "visits.jsonl")

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        return read_json_lines(self.path / "events.jsonl")

    @cached_property
    def findings(self) -> dict[str, Any] | None:
        path = self.path / "findings.json"
        return read_json(path) if path.exists() else None

    def write_findings(self, findings: Mapping[str, object]) -> None:
        """What the run found, also long after it ended; replaces an earlier document."""
        write_json(self.path / "findings.json", findings)

    def is_being_written(self) -> bool:
        """Whether a living process writes it: writers lock the run's visits."""
        try:
            descriptor = os.open(self.path / "visits.jsonl", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks: nobody can tell
            return False
        finally:
            os.close(descriptor)
        return False

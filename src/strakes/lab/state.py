"""The journal of a lab: a line before each step, so that a killed ``up`` can be undone."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from strakes.base.files import open_kept
from strakes.targets.marker import boot_id

JOURNAL = "lab.jsonl"


@dataclass(frozen=True)
class ProcessRecord:
    """A started process; its start time ``started`` (ticks since boot) detects a reused process id."""

    role: str
    pid: int
    started: int


@dataclass(frozen=True)
class LabState:
    """The contents of a journal. ``ready_after_s``: None if the lab was never ready."""

    kind: str
    name: str
    id: str
    boot: str
    created_unix_s: float
    options: Mapping[str, Any]
    processes: tuple[ProcessRecord, ...] = ()
    last_step: str = ""
    ready_after_s: float | None = None
    facts: Mapping[str, Any] | None = None

    @property
    def this_boot(self) -> bool:
        """Return whether its process ids are of this boot."""
        return self.boot == boot_id()


class LabJournal:
    """The open journal of a lab that is being started."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def create(cls, directory: Path, kind: str, name: str, options: Mapping[str, Any]) -> tuple[Self, str]:
        """Create the journal; return it and the new lab's id."""
        path = directory / JOURNAL
        descriptor = open_kept(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        journal = cls(path, descriptor)
        lab_id = uuid.uuid4().hex[:10]
        journal._append(
            {
                "is": "lab",
                "kind": kind,
                "name": name,
                "id": lab_id,
                "boot": boot_id(),
                "created_unix_s": time.time(),
                "options": options,
            }
        )
        os.fsync(descriptor)
        return journal, lab_id

    @classmethod
    def reopen(cls, directory: Path) -> Self:
        path = directory / JOURNAL
        return cls(path, open_kept(path, os.O_WRONLY | os.O_APPEND))

    def step(self, text: str) -> None:
        self._append({"is": "step", "text": text})

    def process(self, record: ProcessRecord) -> None:
        self._append({"is": "process", "role": record.role, "pid": record.pid, "started": record.started})

    def ready(self, after_s: float, facts: Mapping[str, Any]) -> None:
        self._append({"is": "ready", "after_s": round(after_s, 2), "facts": facts})

    def close(self) -> None:
        os.close(self._descriptor)

    def _append(self, record: Mapping[str, Any]) -> None:
        os.write(self._descriptor, json.dumps(record).encode() + b"\n")


def read_state(directory: Path) -> LabState | None:
    """Return the state, or None without a complete line."""
    try:
        lines = (directory / JOURNAL).read_bytes().split(b"\n")
    except (FileNotFoundError, NotADirectoryError):
        return None
    records: list[dict[str, Any]] = []
    # The step of an incomplete last line was not begun. A power cut may leave a line of zeros.
    with suppress(ValueError):
        for line in lines[:-1]:
            records.append(json.loads(line))  # noqa: PERF401 - those before the bad one are kept
    if not records:
        return None
    head, *later = records
    processes = {
        record["role"]: ProcessRecord(record["role"], record["pid"], record["started"])
        for record in later
        if record["is"] == "process"
    }
    steps = [record["text"] for record in records if record["is"] == "step"]
    ready = next((record for record in records if record["is"] == "ready"), None)
    return LabState(
        **{name: value for name, value in head.items() if name != "is"},
        processes=tuple(processes.values()),
        last_step=steps[-1] if steps else "",
        ready_after_s=ready["after_s"] if ready else None,
        facts=ready["facts"] if ready else None,
    )

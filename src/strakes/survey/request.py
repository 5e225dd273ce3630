"""The request for a run: studies, directory, budget and precision."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from strakes.model.record import to_record
from strakes.runs.impact import UNLIMITED, Impact
from strakes.runs.launch import LOCAL, Launch
from strakes.runs.run import Run
from strakes.studies.measure_visit import RunPlan
from strakes.studies.study import Study
from strakes.targets.calls import find_directory
from strakes.targets.command import Servers


@dataclass(frozen=True)
class Request:
    """Request for a survey or for one study.

    ``full``: measure every value of each setting. ``resume``: continue the newest unfinished run with the same
    fingerprint. ``against``: second file system, measured alternately. ``beside``: further directories, to which ranks
    are assigned round-robin. ``like``: run whose plans are reused. ``files``, ``data_per_rank``, ``phase_s``: requested
    files, bytes and seconds of a phase (None: strakes chooses). ``libcephfs``: metadata operations bypass the mount.
    ``visit``: function that runs a trial of a drill. ``neighbour_s``: maximum 99th percentile of other users'
    latencies. ``whole_budget_s``: the user's budget, if this run gets only a part of it.
    """

    kind: str
    name: str
    directory: Path
    studies: tuple[Study, ...]
    budget_s: float
    confidence: float
    relative_half_width: float
    seed: int
    command: str
    full: bool = False
    keep: bool = False
    launch: Launch = LOCAL
    resume: bool = False
    against: Path | None = None
    beside: tuple[Path, ...] = ()
    like: Run | None = None
    files: int | None = None
    data_per_rank: int | None = None
    phase_s: float | None = None
    libcephfs: bool = False
    visit: RunPlan | None = None
    impact: Impact = UNLIMITED
    neighbour_s: float | None = None
    servers: Servers | None = None
    whole_budget_s: float | None = None

    def fingerprint(self, found: Path | None = None) -> str:
        """Return a hash of all settings that must not change when a run is resumed. Budget and seed may change.

        ``found``: the directory with all links resolved, if known.
        """
        same = {
            "kind": self.kind,
            "name": self.name,
            "directory": str(found or find_directory(self.directory)[0]),
            "studies": [study.identity for study in self.studies],
            "confidence": self.confidence,
            "relative_half_width": self.relative_half_width,
            "full": self.full,
            "launch": [self.launch.launcher, self.launch.ranks, list(self.launch.hosts), self.launch.ranks_per_node],
            **self.further(),
            **self.amounts(),
            **({"libcephfs": True} if self.libcephfs else {}),
            **({"impact": impact} if (impact := to_record(self.impact)) else {}),
        }
        return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:16]

    def amounts(self) -> dict[str, object]:
        """Return the requested data, files and phase length by name, without values that are None."""
        asked = {"files": self.files, "data_per_rank": self.data_per_rank, "phase_s": self.phase_s}
        return {name: value for name, value in asked.items() if value}

    def further(self) -> dict[str, object]:
        """Return purpose -> requested directory, for all directories other than ``directory``."""
        against = {"against": str(find_directory(self.against)[0])} if self.against else {}
        beside = [str(find_directory(path)[0]) for path in self.beside]
        return against | ({"beside": beside} if beside else {})

    def options(self, found: Path | None = None) -> dict[str, object]:
        """Return the options to store in the run. ``found``: the directory with all links resolved, if known."""
        return {
            "fingerprint": self.fingerprint(found),
            "studies": [study.name for study in self.studies],
            "budget_s": self.budget_s,
            "confidence": self.confidence,
            "relative_half_width": self.relative_half_width,
            "seed": self.seed,
            "full": self.full,
            "launcher": self.launch.launcher,
            "command": self.command,
            **self.amounts(),
            **self.further(),
            **({"impact": impact} if (impact := to_record(self.impact)) else {}),
            **({"neighbour_s": self.neighbour_s} if self.neighbour_s else {}),
        }


class ProgressDisplay(Protocol):
    """Receiver of progress messages."""

    def update(self, text: str, fraction: float, detail: str) -> None:
        """Show the current measurement, the completed share (0 to 1), and the preliminary results."""

    def resumed(self, spent_s: float) -> None:
        """Add ``spent_s``, the seconds before the run was interrupted, to the elapsed time."""

    def note(self, text: str) -> None:
        """Show a sentence that stays on the screen."""

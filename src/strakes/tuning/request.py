"""The request for a search: application, directory, budget, and the settings to vary."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from strakes.runs.launch import LOCAL, Launch
from strakes.targets.calls import find_directory
from strakes.targets.command import Servers
from strakes.tuning.advise_app import App, to_toml

KIND = "tune"


@dataclass(frozen=True)
class TuningRequest:
    """Request for a search. ``only``: values to try by factor. ``knobs``: values to try by system setting.

    ``resume``: continue the newest unfinished run with the same options.
    """

    app: App
    directory: Path
    budget_s: float
    confidence: float
    seed: int
    command: str
    launch: Launch = LOCAL
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    knobs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keep: bool = False
    resume: bool = False
    servers: Servers | None = None

    def fingerprint(self) -> str:
        """Return a hash of all options that must not change when a search is resumed. Budget and seed may change."""
        same = {
            "kind": KIND,
            "app": to_toml(self.app),
            "directory": str(find_directory(self.directory)[0]),
            "confidence": self.confidence,
            "only": {name: list(levels) for name, levels in self.only.items()},
            "knobs": {name: list(values) for name, values in self.knobs.items()},
            "launch": [self.launch.launcher, self.launch.ranks, list(self.launch.hosts), self.launch.ranks_per_node],
        }
        return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:16]

    def options(self) -> dict[str, object]:
        """Return the options of the request, to be stored in the run."""
        return {
            "fingerprint": self.fingerprint(),
            "studies": [KIND],
            "relative_half_width": 0.1,
            "app": to_toml(self.app),
            "budget_s": self.budget_s,
            "confidence": self.confidence,
            "seed": self.seed,
            "launcher": self.launch.launcher,
            "command": self.command,
        }

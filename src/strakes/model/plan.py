"""Plans for the engine. ``schemas/plan.json`` defines plans and explains every key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from strakes.model.phases import (
    MixedPhase,
    PartPhase,
    ProbePhase,
    SmallFilesPhase,
    StagePhase,
    StreamPhase,
    TrainingPhase,
    TransferPhase,
    usual_keys,
)
from strakes.model.record import from_fields

WholePhase = PartPhase | StagePhase | TrainingPhase
Phase = WholePhase | MixedPhase
# Phases that have no stop rule, because they end when their work is done.
_ENDS_BY_AMOUNT = (ProbePhase, StagePhase, TrainingPhase)

# Keys that place ranks on processors and buffers in memory -> their default values, which canonical plans omit.
PLACEMENT: Mapping[str, str] = {"processors": "", "numa_nodes": "", "buffer_pages": "normal"}


@dataclass(frozen=True)
class Plan:
    """A plan for the engine: ``ranks`` ranks run the phases in order, with a barrier between phases.

    >>> from strakes.model.phases import MetadataPhase
    >>> plan = Plan(ranks=2, phases=(MetadataPhase("create", "file-create", "unique", items=10),))
    >>> plan.to_json()["team"], len(plan.fingerprint())
    ({'ranks': 2}, 16)
    """

    ranks: int
    phases: tuple[Phase, ...]
    seed: int = 0
    ranks_per_node: int | None = None
    memory_hog_bytes: int = 0
    processors: str = ""
    numa_nodes: str = ""
    buffer_pages: str = "normal"

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the plan from its JSON form, which must be valid."""
        return from_fields(cls, {**document["team"], "seed": document["seed"], "phases": document["phases"]})

    def to_json(self) -> dict[str, object]:
        """Return the canonical JSON form, with all keys that the engine needs. Equal plans have equal forms."""
        team: dict[str, object] = {"ranks": self.ranks}
        if self.ranks_per_node is not None:
            team["ranks_per_node"] = self.ranks_per_node
        if self.memory_hog_bytes:
            team["memory_hog_bytes"] = self.memory_hog_bytes
        team |= {key: value for key, usual in PLACEMENT.items() if (value := getattr(self, key)) != usual}
        return {
            "schema": 1,
            "seed": self.seed,
            "team": team,
            "phases": [_phase_to_json(phase) for phase in self.phases],
        }

    def fingerprint(self) -> str:
        """Return a hash (16 hex digits) of the canonical form without the seed. It shows which runs had equal plans."""
        canonical = self.to_json()
        del canonical["seed"]
        text = json.dumps(canonical, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def made_elsewhere(self, phase_name: str) -> bool:
        """Return whether each rank of a phase uses only files that ranks on other nodes created."""
        shifts = [getattr(phase, "rank_shift", 0) for phase in self.phases if phase.name == phase_name]
        each = self.ranks_per_node or self.ranks
        return any(each <= shift <= self.ranks - each for shift in shifts)

    def inside_ceph(self) -> bool:
        """Return whether the plan uses CephFS through libcephfs instead of a mount."""
        return any(phase.backend == "cephfs" for phase, _ in self.each())

    def each(self) -> Iterator[tuple[WholePhase, int]]:
        """Yield each phase with its number of ranks. A mixed phase is replaced by its parts."""
        for phase in self.phases:
            if isinstance(phase, MixedPhase):
                yield from ((part.phase, part.ranks) for part in phase.parts)
            else:
                yield phase, self.ranks

    def stop_seconds(self) -> float:
        """Return the sum of the time limits of all phases in seconds. Phases without a limit count as 0."""
        stops = (phase.stop for phase in self.phases if not isinstance(phase, _ENDS_BY_AMOUNT))
        return sum(stop.seconds or 0.0 for stop in stops)

    def bytes_on_target(self) -> int:
        """Return the peak number of bytes that the plan occupies on the file system."""
        return self._peak(_phase_bytes)

    def inodes_on_target(self) -> int:
        """Return the peak number of files and directories that the plan has on the file system."""
        return 1 + self._peak(_phase_inodes)

    def _peak(self, cost: Callable[[WholePhase, int], int]) -> int:
        there: dict[tuple[str, object], int] = {}
        peak = 0
        for phase, ranks in self.each():
            if isinstance(phase, SmallFilesPhase):
                key = (phase.files, "pool")
                before, added = there.get(key, 0), cost(phase, ranks)
                # Assume that a phase of transactions (as in Postmark) at most doubles its pool of files.
                there[key] = before + (min(before, added) if phase.mode == "transactions" else added)
                peak = max(peak, sum(there.values()))
                if phase.mode == "remove":
                    del there[key]
                continue
            if isinstance(phase, ProbePhase):
                there[phase.files, "probe"] = cost(phase, ranks)
                peak = max(peak, sum(there.values()))
                continue
            directories = phase.operation.startswith("dir-")
            if phase.operation in ("write", "file-create", "dir-create", "generate"):
                there[phase.files, directories] = cost(phase, ranks)
            elif phase.operation in ("file-remove", "dir-remove"):
                there.pop((phase.files, directories), None)
            peak = max(peak, sum(there.values()))
        return peak


def _phase_bytes(phase: WholePhase, ranks: int) -> int:
    if isinstance(phase, TransferPhase):
        return (phase.first_ranks or ranks) * phase.segments * phase.block_bytes
    if isinstance(phase, StreamPhase):
        return ranks * phase.count * phase.block_bytes
    if isinstance(phase, SmallFilesPhase | ProbePhase | TrainingPhase):
        return phase.bytes_added(ranks)
    if isinstance(phase, StagePhase):
        return 0
    return ranks * phase.items * phase.file_bytes if phase.operation == "file-create" else 0


def _phase_inodes(phase: WholePhase, ranks: int) -> int:
    if isinstance(phase, TransferPhase):
        files = 1 if phase.layout == "shared-file" else phase.first_ranks or ranks
        return 2 * files if phase.own_directory else files
    if isinstance(phase, StreamPhase):
        return ranks
    if isinstance(phase, SmallFilesPhase | ProbePhase | TrainingPhase):
        return phase.inodes_added(ranks)
    if isinstance(phase, StagePhase):
        return 0
    trees = ranks if phase.directory == "unique" else 1
    directories = sum(int(phase.branch**level) for level in range(phase.depth + 1))
    return ranks * phase.items + trees * directories


def _phase_to_json(phase: Phase) -> dict[str, object]:
    body = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(phase).items()}
    if isinstance(phase, TransferPhase):
        body["hints"] = dict(phase.hints)
        if not phase.writers:
            del body["writers"]
            if phase.grouping == "node":
                del body["grouping"]
    for key in usual_keys(phase):
        del body[key]
    if isinstance(phase, MixedPhase):
        body["parts"] = [{"ranks": part.ranks, "phase": _phase_to_json(part.phase)} for part in phase.parts]
    if not isinstance(phase, _ENDS_BY_AMOUNT):
        body["stop"] = phase.stop.to_json()
    return body

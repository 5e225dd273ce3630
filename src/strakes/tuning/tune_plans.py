"""Convert a setting of an application to an engine plan and a file layout. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from strakes.model.phases import Sharing, StagePhase, Stop, TransferPhase
from strakes.model.plan import Phase, Plan
from strakes.model.portrait import Setting
from strakes.runs.records import Visit
from strakes.targets.description import Layout
from strakes.targets.lustre_layouts import layout_from
from strakes.tuning import tune_offers as offers
from strakes.tuning.advise_app import App, AppPhase

# Bytes per request of unmeasured writes, which create the files for read phases.
_MADE_WITH_BYTES = 1 << 20


@dataclass(frozen=True)
class TrialSize:
    """Size of a trial: number of ranks, and data of each rank in each phase.

    ``limit_s``: seconds after which a phase starts no more requests.
    """

    ranks: int
    data_bytes: int
    limit_s: float
    seed: int = 0
    ranks_per_node: int | None = None

    @property
    def ranks_of_a_node(self) -> int:
        """Number of ranks on each node."""
        return self.ranks_per_node or self.ranks


def plan_of(app: App, settings: Mapping[str, Setting], scale: TrialSize) -> Plan:
    """Return the plan (I/O phases) of a trial with these settings."""
    data = max(int(settings[offers.TRANSFER]), scale.data_bytes)
    phases: list[Phase] = []
    made: set[str] = set()
    for phase in app.phases:
        kind = "same" if phase.files == "same" else "own"
        if phase.operation == "read" and kind not in made:
            phases.append(_make(phase, settings, scale, data))
            made.add(kind)
        if phase.operation == "write":
            made.add(kind)
        phases.append(_phase(phase, settings, scale.limit_s, scale, data))
    return Plan(scale.ranks, tuple(phases), scale.seed, ranks_per_node=scale.ranks_per_node)


def layout_of(settings: Mapping[str, Setting]) -> Layout | None:
    """Return the layout in the settings, or None if they contain no layout."""
    count, size, pool, kind = (settings.get(name) for name in offers.LAYOUT_FACTORS)
    if kind not in (None, offers.PLAIN_LAYOUT):
        return layout_from(str(kind))
    if count is None and size is None and pool is None:
        return None
    return Layout(
        stripe_size_bytes=None if size is None else int(size),
        stripe_count=None if count is None else int(count),
        pool=str(pool or ""),
    )


def phase_name(phase: AppPhase) -> str:
    """Return the phase's name in the form that the engine accepts.

    >>> phase_name(AppPhase("Check point №1", "write", "shared", 1))
    'check-point-1'
    """
    return re.sub(r"[^a-z0-9]+", "-", phase.name.lower()).strip("-")[:32].rstrip("-") or "phase"


def goodness(app: App, visit: Visit, usual_s: Mapping[str, float]) -> float | None:
    """Return the value of a trial: its rate in bytes per second, or None if a phase moved no data.

    ``usual_s``: seconds per byte of each phase with the default setting. If given, return the rate relative to the
    default setting, with each phase weighted by its share of the I/O time.
    """
    time_s, bytes_moved, own_s = 0.0, 0.0, seconds_per_byte(app, visit)
    for name, phase in ((phase_name(phase), phase) for phase in app.phases):
        if name not in own_s:
            return None
        share = 1 / len(app.phases) if phase.share is None else phase.share
        time_s += share * own_s[name] / usual_s[name] if usual_s else own_s[name] * app.total_bytes(phase)
        bytes_moved += app.total_bytes(phase)
    return 1 / time_s if usual_s else bytes_moved / time_s


def seconds_per_byte(app: App, visit: Visit) -> dict[str, float]:
    """Return phase -> seconds per byte, for the phases of a trial that moved data."""
    names = {phase_name(phase) for phase in app.phases}
    moved = (one for one in visit.samples if one.name in names and one.bytes and one.elapsed_s)
    return {one.name: one.elapsed_s / one.bytes for one in moved}


def has_shares(app: App) -> bool:
    """Return whether the application has several I/O phases, each with a known share of the I/O time."""
    return len(app.phases) > 1 and all(phase.share is not None for phase in app.phases)


def _phase(phase: AppPhase, settings: Mapping[str, Setting], limit_s: float, scale: TrialSize, data: int) -> Phase:
    transfer = int(settings[offers.TRANSFER])
    name = phase_name(phase)
    if phase.files == "same":
        readers = int(settings[offers.READERS]) % scale.ranks_of_a_node
        return StagePhase(name, transfer, files="input", readers_per_node=readers, broadcast=readers > 0, cache="drop")
    backend, direct, depth = offers.INTERFACES[str(settings[offers.INTERFACE])]
    sharing, writers = _who(settings, scale, phase)
    return TransferPhase(
        name,
        phase.operation,
        sharing,
        "segmented",
        transfer,
        data,
        writers=writers,
        backend=backend,
        direct=direct,
        queue_depth=depth,
        stop=Stop("stonewall", limit_s),
        sync="fsync" if phase.operation == "write" else "close",
        cache="drop" if phase.operation == "read" else "as-is",
    )


def _make(phase: AppPhase, settings: Mapping[str, Setting], scale: TrialSize, data: int) -> TransferPhase:
    transfer = min(_MADE_WITH_BYTES, data)
    made = TransferPhase("make", "write", "shared-file", "segmented", transfer, data, files="input", sync="fsync")
    if phase.files == "same":
        return made
    sharing, writers = _who(settings, scale, phase)
    return replace(made, layout=sharing, writers=writers, files="data")


def _who(settings: Mapping[str, Setting], scale: TrialSize, phase: AppPhase) -> tuple[Sharing, int]:
    shared = settings.get(offers.FILES, "shared" if phase.files == "gathered" else phase.files) == "shared"
    writers = int(settings.get(offers.WRITERS, scale.ranks_of_a_node))
    if writers >= scale.ranks_of_a_node:
        return "shared-file" if shared else "file-per-process", 0
    if shared:
        return "shared-file", writers if phase.operation == "write" else 0
    return "file-per-writer", writers

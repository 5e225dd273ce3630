"""Records of a run: visits (executions of plans) and events. Each kind of event has a class.

``strakes.model.record`` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from strakes.model.portrait import Setting
from strakes.model.record import Record, from_record, to_record
from strakes.model.sample import Sample
from strakes.runs.impact import UNLIMITED, Impact
from strakes.runs.messages import EngineError
from strakes.targets.description import Interruption, Layout


@dataclass(frozen=True)
class Visit(Record):
    """One execution of a cell's plan.

    ``ended``: a PlanEnd, "interrupted" by a server outage, or "yielded" to other users. ``client_s``: duration of a
    fixed computation on the client. ``servers``: increments of the servers' counters. ``servers_disturbed``: reason if
    these counters are unusable. ``given``: server of each directory. ``kept``: directory with files for later
    executions. ``neighbour``: latencies of the --neighbour probe. ``stage``, ``settings``: set only by strakes tune.
    """

    ALWAYS = ("visit", "block", "purpose", "cell", "ended", "elapsed_s", "samples", "errors")

    visit: int = 0
    block: int = 0
    purpose: str = "measure"
    cell: str = ""
    ended: str = "ok"
    elapsed_s: float = 0.0
    samples: tuple[Sample, ...] = ()
    errors: tuple[EngineError, ...] = ()
    started_unix_s: float | None = None
    ended_unix_s: float | None = None
    client_s: float | None = None
    servers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    servers_disturbed: tuple[str, ...] = ()
    interruptions: tuple[Interruption, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    kept: str = ""
    impact: Impact = UNLIMITED
    neighbour: Mapping[str, float] = field(default_factory=dict)
    stage: str = ""
    settings: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def ended_well(self) -> bool:
        """Return whether the plan was executed completely."""
        return self.ended == "ok"

    @property
    def is_measurement(self) -> bool:
        """Return whether this is a measurement, not a pilot run or a confirmation run."""
        return self.purpose == "measure"

    def sample(self, phase: str) -> Sample | None:
        """Return the sample of the phase with this name, or None."""
        return next((sample for sample in self.samples if sample.name == phase), None)


@dataclass(frozen=True)
class RunEvent(Record):
    """Base class of events of a run. ``event``: name of this kind of event in the store."""

    event: ClassVar[str] = ""


@dataclass(frozen=True)
class FactsFound(RunEvent):
    """Facts about the file system, found before the measurement."""

    event = "facts"
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class AmountsChosen(RunEvent):
    """Amount of work, chosen after a short pilot run: duration of a phase, and maximum data and files of a plan.

    ``like``: earlier run with the same amounts. ``left_out``: number of cells that exceed the budget.
    """

    event = "context"
    phase_s: float
    pilot: Mapping[str, Any]
    max_bytes: int
    max_items: int
    like: str = ""
    left_out: int = 0


@dataclass(frozen=True)
class CellSkipped(RunEvent):
    """A combination of settings that cannot be measured on this system."""

    event = "skipped"
    study: str
    settings: Mapping[str, Setting]
    reason: str


@dataclass(frozen=True)
class CellDropped(RunEvent):
    """Settings that get no more measurements because of the budget. ``runs``: measurements so far (None: unknown)."""

    event = "dropped"
    cell: str
    reason: str
    runs: int | None = None


@dataclass(frozen=True)
class PopulationRemoved(RunEvent):
    """Removal of a pool of files that several executions of a plan shared. It took ``elapsed_s`` seconds."""

    event = "clean-up"
    files: int
    elapsed_s: float


@dataclass(frozen=True)
class TargetDescribed(RunEvent):
    """The storage targets of the file system. ``unlike``: texts on unhealthy targets or differences."""

    event = "description"
    description: Mapping[str, Any]
    unlike: tuple[str, ...]


@dataclass(frozen=True)
class TroubleSeen(RunEvent):
    """Problems of servers, one sentence each. ``when``: "before" or "after" the measurement."""

    event = "trouble"
    when: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class CountersUnread(RunEvent):
    """Servers whose counters could not be read. ``sentences``: first error message about each server."""

    event = "counters-unread"
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class InterruptionsEnded(RunEvent):
    """Server outages that lasted longer than one execution of a plan. Their ends are given if known."""

    event = "interruptions-ended"
    interruptions: tuple[Interruption, ...]


@dataclass(frozen=True)
class OthersSeen(RunEvent):
    """Texts about other strakes processes in the directory. ``when``: "before" the run, "meanwhile" or "after" it."""

    event = "others"
    when: str
    who: tuple[str, ...]


@dataclass(frozen=True)
class LoadSeen(RunEvent):
    """Load of other programs between measurements: share of processor time, and mean number of running threads."""

    event = "load"
    share: float
    running: float


@dataclass(frozen=True)
class LayoutGiven(RunEvent):
    """The requested and the actual layout of new files. ``given``: actual layout (None: the request was refused)."""

    event = "layout"
    wanted: Layout
    given: Layout | None
    differences: tuple[str, ...]


@dataclass(frozen=True)
class DirectoryPlaced(RunEvent):
    """A directory that all executions of a plan share. ``given``: servers of the directory and its subdirectories."""

    event = "placed"
    cell: str
    given: Mapping[str, Any]


@dataclass(frozen=True)
class NodesChanged(RunEvent):
    """The run was resumed on other nodes."""

    event = "other-nodes"
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class NeighbourFelt(RunEvent):
    """Latencies of the --neighbour probe before and during the measurement."""

    event = "neighbour"
    limit_s: float
    before: Mapping[str, Any]
    during: Mapping[str, Any]
    share: float
    stopped: bool


@dataclass(frozen=True)
class SpaceSearched(RunEvent):
    """The search space of a tuning: factors, combinations, amounts of work, and settings that cannot be tried."""

    event = "space"
    factors: tuple[Mapping[str, Any], ...]
    points: tuple[tuple[Setting, ...], ...]
    scale: Mapping[str, Any]
    not_tried: tuple[str, ...]


@dataclass(frozen=True)
class ConfirmationBegun(RunEvent):
    """Start of the final comparison of a search: its ``best`` settings are confirmed with ``runs`` new runs."""

    event = "confirmation"
    best: Mapping[str, Setting]
    runs: int


_KINDS: Mapping[str, type[RunEvent]] = {kind.event: kind for kind in RunEvent.__subclasses__()}


def event_from_record(record: Mapping[str, Any]) -> RunEvent:
    """Return the event in a record. Raises KeyError, TypeError or ValueError if the record is not valid.

    >>> event_from_record({"event": "dropped", "cell": "a", "reason": "no time"})
    CellDropped(cell='a', reason='no time', runs=None)
    """
    return from_record(_KINDS[record["event"]], {key: value for key, value in record.items() if key != "event"})


def event_to_record(event: RunEvent) -> dict[str, Any]:
    """Return the event as a record of the store."""
    return {"event": event.event, **to_record(event)}

"""Records of a run: visits, and one class for each kind of event.

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
    """One execution of a cell's plan. ``ended``: a PlanEnd, or "yielded" if it was cancelled to protect other users.

    ``client_s``: duration of a fixed amount of work on the client. ``servers``: increase of the servers' counters,
    except the counters in ``servers_disturbed``. ``interruptions``: when servers were unavailable; ``ended`` is then
    "interrupted" if the visit can be repeated. ``given``: placements that its directories got. ``kept``: the directory
    shared by visits. ``neighbour``: latencies of the probe. ``stage``, ``settings``: only for trials of a search.
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
        """Return whether the plan was executed to its end."""
        return self.ended == "ok"

    @property
    def is_measurement(self) -> bool:
        """Return whether the visit counts for its cell; the pilot and confirmations do not."""
        return self.purpose == "measure"

    def sample(self, phase: str) -> Sample | None:
        """Return the sample of the phase with that name, or None."""
        return next((sample for sample in self.samples if sample.name == phase), None)


@dataclass(frozen=True)
class RunEvent(Record):
    """Base class of events of a run. ``event``: the name of the kind of event in the store."""

    event: ClassVar[str] = ""


@dataclass(frozen=True)
class FactsFound(RunEvent):
    """Facts about the target, found before the measurement."""

    event = "facts"
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class AmountsChosen(RunEvent):
    """Duration of a phase and largest amount of data of a plan, chosen after the pilot.

    ``like``: the run whose amounts are reused. ``left_out``: number of cells that do not fit the budget.
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
    """A cell that cannot be measured here."""

    event = "skipped"
    study: str
    settings: Mapping[str, Setting]
    reason: str


@dataclass(frozen=True)
class CellDropped(RunEvent):
    """A cell for which the budget allows no more runs. ``runs``: the number of its runs so far (None: unknown)."""

    event = "dropped"
    cell: str
    reason: str
    runs: int | None = None


@dataclass(frozen=True)
class PopulationRemoved(RunEvent):
    """A kept pool of ``files`` files was removed in ``elapsed_s`` seconds."""

    event = "clean-up"
    files: int
    elapsed_s: float


@dataclass(frozen=True)
class TargetDescribed(RunEvent):
    """The storage targets of the file system, and a text for each difference between them."""

    event = "description"
    description: Mapping[str, Any]
    unlike: tuple[str, ...]


@dataclass(frozen=True)
class TroubleSeen(RunEvent):
    """Problems of servers "before" or "after" the measurement (``when``), one sentence for each problem."""

    event = "trouble"
    when: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class CountersUnread(RunEvent):
    """Servers whose counters could not be read for the first time, one sentence for each."""

    event = "counters-unread"
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class InterruptionsEnded(RunEvent):
    """Interruptions that lasted beyond the end of a visit, with their ends as known at the end of the run."""

    event = "interruptions-ended"
    interruptions: tuple[Interruption, ...]


@dataclass(frozen=True)
class OthersSeen(RunEvent):
    """Other measurements by strakes in the directory "before", "meanwhile" or "after"; ``who``: a text for each."""

    event = "others"
    when: str
    who: tuple[str, ...]


@dataclass(frozen=True)
class LayoutGiven(RunEvent):
    """The layout of new files (None: refused), and its differences from the requested one."""

    event = "layout"
    wanted: Layout
    given: Layout | None
    differences: tuple[str, ...]


@dataclass(frozen=True)
class DirectoryPlaced(RunEvent):
    """A directory is kept between visits; ``given``: the placements that it and its subdirectories got."""

    event = "placed"
    cell: str
    given: Mapping[str, Any]


@dataclass(frozen=True)
class NodesChanged(RunEvent):
    """A run was resumed on other nodes."""

    event = "other-nodes"
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class NeighbourFelt(RunEvent):
    """Latencies of the probe of --neighbour before and during the measurement."""

    event = "neighbour"
    limit_s: float
    before: Mapping[str, Any]
    during: Mapping[str, Any]
    share: float
    stopped: bool


@dataclass(frozen=True)
class SpaceSearched(RunEvent):
    """The space of a search: factors, their combinations, amounts, and settings that could not be tried."""

    event = "space"
    factors: tuple[Mapping[str, Any], ...]
    points: tuple[tuple[Setting, ...], ...]
    scale: Mapping[str, Any]
    ranks_per_node: int | None
    not_tried: tuple[str, ...]


@dataclass(frozen=True)
class ConfirmationBegun(RunEvent):
    """A search begins to confirm its ``best`` settings by ``runs`` fresh runs."""

    event = "confirmation"
    best: Mapping[str, Setting]
    runs: int


_KINDS: Mapping[str, type[RunEvent]] = {kind.event: kind for kind in RunEvent.__subclasses__()}


def event_from_record(record: Mapping[str, Any]) -> RunEvent:
    """Parse an event. Raises KeyError, TypeError or ValueError if the record is not valid.

    >>> event_from_record({"event": "dropped", "cell": "a", "reason": "no time"})
    CellDropped(cell='a', reason='no time', runs=None)
    """
    return from_record(_KINDS[record["event"]], {key: value for key, value in record.items() if key != "event"})


def event_to_record(event: RunEvent) -> dict[str, Any]:
    """Return the event as a record of the store."""
    return {"event": event.event, **to_record(event)}

"""Random sequences of faults and repairs on the pair of the lab: what the model predicts, and what happens."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree as Xml

from strakes.drill.faults.pair import apply
from strakes.drill.guard import Promise
from strakes.drill.trial import Pace, RunningClients, ServiceAnswers
from strakes.drill.undo import RestorePair
from strakes.errors import MeasurementError
from strakes.failover.rehearsal.room import RoomPart
from strakes.failover.rehearsal.schedule import Prediction, ScheduledEvent, ScheduleModel
from strakes.failover.rehearsal.story import Story
from strakes.failover.setup import Setup, setup_of
from strakes.failover.split_brain import SplitBrainJudgement, judge
from strakes.failover.timeline import outage_of
from strakes.lab.ha.configuration import TARGET, cluster, modelled
from strakes.lab.ha.pair import Pair
from strakes.units import counted

# An answer newer than this shows which node serves now: clients wait up to 2 s for one, longer on a shared machine.
_FRESH_S = 4.0
# For the start of programs, above what the configuration's time-outs promise, on a machine that others use too.
_SLACK_S = 20.0
_MOST_WAIT_S = 120.0
_LOOK_EVERY_S = 0.3
# On a machine short of processors the pair reacts later than predicted; its limits are extended up to this factor.
_MOST_STRETCH = 3.0
_PRESSURE = Path("/proc/pressure/cpu")
_FENCED = re.compile(r"Operation (?:off|reboot) of (\S+) .*: OK")


@dataclass(frozen=True)
class ObservedEvent:
    """One event: the prediction, and the observation after the pair had settled.

    ``waited_s``: longest wait of a client; ``took_s``: duration of the observation; both in seconds. ``told``: the
    alerts since the event.
    """

    text: str
    predicted: str
    seen: str
    predicted_off: tuple[str, ...]
    seen_off: tuple[str, ...]
    predicted_wait_s: tuple[float, float]
    waited_s: float
    took_s: float
    told: tuple[str, ...]

    @property
    def disagreement(self) -> str:
        """Return what the model predicted wrongly, with all that is known of it, empty where it was right."""
        wrong = self._wrong
        if not wrong:
            return ""
        known = (
            f"{wrong} (watched for {self.took_s:.1f} s; {self.seen or 'nobody'} serves; powered off: "
            f"{', '.join(self.seen_off) or 'nobody'}; clients waited {self.waited_s:.1f} s)"
        )
        return "\n    alert ".join([known, *self.told])

    @property
    def _wrong(self) -> str:
        if self.predicted != self.seen:
            return f"{self.seen or 'nobody'} serves, {self.predicted or 'nobody'} was predicted"
        if self.predicted_off != self.seen_off:
            return (
                f"powered off: {', '.join(self.seen_off) or 'nobody'}, predicted: "
                f"{', '.join(self.predicted_off) or 'nobody'}"
            )
        least_s, most_s = self.predicted_wait_s
        if self.seen and not least_s - 1.0 <= self.waited_s <= most_s + _SLACK_S:
            return f"clients waited {self.waited_s:.1f} s, {least_s:.1f} to {most_s:.1f} s was predicted"
        return ""


@dataclass(frozen=True)
class ScheduleTrial:
    """One schedule on the real pair. ``repaired_s`` is how long it took, in the end, until the pair was whole again."""

    seed: int
    events: tuple[ObservedEvent, ...]
    judgement: SplitBrainJudgement
    repaired_s: float

    @property
    def disagreements(self) -> tuple[str, ...]:
        """Return what the model predicted wrongly of all events."""
        return tuple(f"{event.text}: {event.disagreement}" for event in self.events if event.disagreement)

    @property
    def good(self) -> bool:
        """Return whether no data was lost, the brain did not split, and the prediction was right."""
        return self.judgement.good and not self.disagreements


def run_schedules(
    lab: str,
    pair: Pair,
    directory: Path,
    seeds: Sequence[int],
    length: int,
    pace: Pace,
    root: Path,
    say: Callable[[str], None],
    drawn: Sequence[Sequence[ScheduledEvent]] = (),
) -> tuple[ScheduleTrial, ...]:
    """Do one schedule for each seed, or those in ``drawn``.

    After each the pair is made whole again, also when strakes is killed. Raises MeasurementError where that fails.
    """
    pair.make_whole(pace.answer_s)
    setup = pair_setup(pair, directory)
    trials = []
    with tempfile.TemporaryDirectory(prefix="strakes-") as place:
        model = ScheduleModel(Story(setup, Path(place)), _parts(setup))
        for number, seed in enumerate(seeds):
            events = drawn[number] if drawn else model.draw(seed, length)
            say(f"seed {seed}: {'; '.join(event.text for event in events)}")
            trial = _run(lab, pair, model, seed, events, pace, root)
            for text in trial.disagreements:
                say(f"seed {seed}: {text}")
            trials.append(trial)
    return tuple(trials)


def pair_setup(pair: Pair, directory: Path) -> Setup:
    """Read the lab's own configuration, and describe its room."""
    name = directory / "a/etc/corosync/corosync.conf"
    corosync = name.read_text(encoding="utf-8")
    asked = pair.on(pair.nodes[0], "cibadmin", "--query")
    if asked.status != 0:
        raise MeasurementError(
            "the pair does not report its configuration", where="cibadmin --query", why=asked.complaint
        )
    cib = Xml.fromstring(asked.stdout)
    for status in cib.findall("status"):
        cib.remove(status)
    Xml.SubElement(cib, "status")
    texts = {"etc/corosync/corosync.conf": corosync, "pacemaker/cib.xml": Xml.tostring(cib, encoding="unicode")}
    token = re.search(r"token:\s*(\d+)", corosync)
    token_s = int(token[1]) / 1000 if token else 1.0
    planned = cluster(directory, token_s, device="/dev/null", mount="/none", drbd="9")
    return setup_of("the pair", directory, texts, modelled(planned))


def _parts(setup: Setup) -> tuple[RoomPart, ...]:
    room = setup.described
    return (
        *(RoomPart("node", node.name) for node in room.nodes),
        *(RoomPart(kind, network.name) for kind in ("network", "one-way") for network in room.heartbeats),
        *(RoomPart("bmc", node.name) for node in room.nodes),
        RoomPart("service", TARGET),
    )


def _run(
    lab: str, pair: Pair, model: ScheduleModel, seed: int, events: Sequence[ScheduledEvent], pace: Pace, root: Path
) -> ScheduleTrial:
    pair.wait_whole(pace.answer_s)
    home = model.story.first.places[TARGET]
    pair.bring_home(home, pace.answer_s)
    undo = RestorePair(lab)
    promise = Promise(root, f"random schedule {seed}", undo)
    observed: list[ObservedEvent] = []
    try:
        with RunningClients(pair, pace) as clients:
            time.sleep(pace.before_s)
            # Not only what the cluster says of itself: no event before the service answers.
            pair.wait_until(
                f"{home} to answer clients", lambda: _serving(clients.answers(), 0.0, 0.0) == home, pace.answer_s
            )
            serving = home
            for prediction in model.play(events):
                observed.append(_do(pair, prediction, serving, clients, pace))
                serving = observed[-1].seen
            began_s = time.time()
            promise.keep()
            pair.make_whole(pace.answer_s)
            repaired_s = time.time() - began_s
            time.sleep(pace.after_s)
        answers = clients.answers()
    finally:
        promise.keep()
        promise.close()
    copies = {node: answers.own(pair.journal(node)) for node in pair.nodes[:1]}
    return ScheduleTrial(seed, tuple(observed), judge(copies, answers.acknowledged(), pair.nodes[0]), repaired_s)


def _do(pair: Pair, prediction: Prediction, serving: str, clients: RunningClients, pace: Pace) -> ObservedEvent:
    at_s = time.time()
    apply(pair, prediction.event.part, mended=prediction.event.mended, serving=serving)
    done_s = time.time()
    place, off = prediction.places[TARGET], tuple(sorted(prediction.step.fenced))
    limit_s = min(_MOST_WAIT_S, prediction.step.wait.most_s) + _SLACK_S
    began_waiting_s = _waited_for_processor_s()
    while True:
        now_s = time.time()
        seen, seen_off = _serving(clients.answers(), done_s, now_s - _FRESH_S), _powered_off(pair, at_s)
        settled = now_s - done_s >= pace.watch_s and seen == place and seen_off == off and _joined(pair, prediction)
        lost_s = min(_waited_for_processor_s() - began_waiting_s, _MOST_STRETCH * limit_s)
        if settled or now_s - done_s > limit_s + lost_s:
            break
        time.sleep(_LOOK_EVERY_S)
    outages = [outage_of(name, done, at_s) for name, done in clients.answers().operations(at_s - 5.0).items()]
    wait = prediction.step.wait
    return ObservedEvent(
        prediction.event.text,
        place,
        seen,
        off,
        seen_off,
        (wait.least_s, wait.most_s),
        max((outage.stall_s for outage in outages), default=0.0),
        time.time() - at_s,
        # Each alert is sent by webhook and by mail; count it once.
        tuple(f"{alert.at_s - at_s:.1f} s: {alert.text}" for alert in pair.alerts(at_s) if alert.by == "webhook"),
    )


def _joined(pair: Pair, prediction: Prediction) -> bool:
    """Return whether a node that was switched on has joined the cluster; True for any other repair."""
    event = prediction.event
    return not (event.mended and event.part.kind == "node") or not pair.lacking(event.part.name)


def _waited_for_processor_s() -> float:
    """Return for how many seconds since the machine started some program waited for a processor.

    The value is 0 where the kernel does not count it.
    """
    try:
        match = re.search(r"some .*total=(\d+)", _PRESSURE.read_text())
    except OSError:
        return 0.0
    return int(match[1]) / 1e6 if match else 0.0


def _serving(answers: ServiceAnswers, since_s: float, told_since_s: float) -> str:
    """Return who gave the last answer that was sent and told since the two moments, empty where nobody did."""
    answers_since = [
        answer for answer in answers.acknowledged() if answer.sent_s > since_s and answer.told_s > told_since_s
    ]
    return max(answers_since, key=lambda answer: answer.told_s).record.node if answers_since else ""


def _powered_off(pair: Pair, since_s: float) -> tuple[str, ...]:
    """Return the nodes that Pacemaker has reported as fenced since then."""
    return tuple(sorted({off[1] for alert in pair.alerts(since_s) if (off := _FENCED.search(alert.text))}))


def schedules_text(trials: Sequence[ScheduleTrial]) -> str:
    """Say what came of all of them."""
    events = [event for trial in trials for event in trial.events]
    waits = sorted(trial.repaired_s for trial in trials)
    wrong = [f"  seed {trial.seed}: {text}" for trial in trials for text in trial.disagreements]
    split = [text for trial in trials for text in trial.judgement.split_brain]
    return "\n".join(
        [
            (
                f"{counted(len(trials), 'schedule')}, {counted(len(events), 'event')}: {len(events) - len(wrong)} "
                "went as predicted"
            ),
            *wrong,
            (
                f"{sum(trial.judgement.acknowledged for trial in trials):,} records acknowledged, "
                f"{sum(len(trial.judgement.lost) for trial in trials)} of them missing afterwards"
            ),
            f"Split brain: {'; '.join(dict.fromkeys(split)) or 'never seen'}.",
            f"Fully working again after {waits[0]:.0f} to {waits[-1]:.0f} s." if waits else "",
        ]
    )


def schedules_document(trials: Sequence[ScheduleTrial]) -> str:
    """Return them as JSON."""
    rows = [{**asdict(trial), "disagreements": trial.disagreements} for trial in trials]
    return json.dumps({"schema": 1, "schedules": rows}, indent=1)

"""Compose days from steps of the recorded day, with planted events of any time, length and target."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.watch.blocks import DISKS, Part, Recording, Target, written

_ANYTHING = 1e9
_QUIET = ((5, 110), (196, 239.5), (353, 409.5), (430, _ANYTHING))
_POOLS = {"quiet": _QUIET, "noisy": ((117.5, 185),), "slow": ((242, 340),)}
# Begin and end, in seconds of the recorded day, of the work on requests that had waited for the slow target.
_BACKLOG = (341, 351)
_BUSY_MS = 9
_KEPT_STATES = 16
_OF_NOISE = ".1000"
_BACK = ("REPLAY", "REPLAY_LOCKS", "REPLAY_WAIT", "RECOVER", "FULL")
_EVICTED = ("EVICTED", "RECOVER", "FULL")


@dataclass(frozen=True)
class Act:
    """A planted event. ``what`` is one of:

    "noisy": job ``who`` runs. "writer": a job writes ``factor`` times as much as the everyday job. "grows": the load of
    a noisy job grows slowly. "busier": the everyday job ``who`` does ``factor`` times its work. "slow": requests to
    data target ``who`` (empty: all) take ``factor`` times as long. "away": target ``who`` is unmounted. "pause": no job
    runs. "idle": target ``who`` gets no work. "small": many small jobs run. "gap": samples are missing.
    """

    what: str
    begin_s: float
    long_s: float
    who: str = ""
    factor: float = 1.0

    @property
    def end_s(self) -> float:
        return self.begin_s + self.long_s


@dataclass(frozen=True)
class Day:
    """Description of a day. ``acts``: planted events, with times from the begin of the day.

    ``cadence``: "each" sample of the recording, every "second" one, or "irregular". ``missing``: number of randomly
    omitted samples. ``warm``: counters are large at the begin. With two ``servers``, the second one has the data
    targets.
    """

    name: str
    seed: int
    long_s: float
    acts: tuple[Act, ...] = ()
    data_targets: int = 2
    cadence: str = "each"
    missing: int = 0
    client: bool = True
    disks: bool = True
    warm: bool = False
    servers: int = 1
    system: str = "labfs"
    begin_s: float = 1795400000.0


@dataclass(frozen=True)
class Composed:
    """A composed day: its files, (act, actual begin, actual end) in Unix time, and the disk of each target."""

    files: list[Path]
    happened: list[tuple[Act, float, float]]
    end_s: float
    disks: dict[str, str]


class _Player:
    """Selects sequences of successive recorded steps from named pools. Sequences begin at random."""

    def __init__(self, rng: random.Random, recording: Recording) -> None:
        self._rng, self._recording = rng, recording
        self._pools = {name: recording.of(*spans) for name, spans in _POOLS.items()}
        self._backlog = recording.of(_BACKLOG)
        self._left: list[int] = []
        self._pool = ""

    def next(self, pool: str) -> int:
        if pool != self._pool:
            self._left = list(self._backlog) if self._pool == "slow" else []
            self._pool = pool
        if not self._left:
            steps = self._pools[pool]
            at = self._rng.randrange(len(steps) - 3)
            run = steps[at : at + self._rng.randint(6, 30)]
            # A pool can have several separate spans of the recorded day, so omit steps after a gap.
            self._left = [step for shift, step in enumerate(run) if step == run[0] + shift]
        return self._left.pop(0)


def compose(day: Day, recording: Recording, folder: Path) -> Composed:
    """Compose the day: write a file for each server, and one for the client, into ``folder``."""
    rng = random.Random(f"{day.name} {day.seed}")
    targets = _targets(day, recording, rng)
    main = _Player(rng, recording)
    others = {name: _Player(rng, recording) for name in targets if name not in DISKS}
    trips = [_Trip(act, day.begin_s, rng) for act in day.acts if act.what == "away"]
    happened: dict[Act, list[float]] = {}
    disks = {name: list(numbers) for name, numbers in recording.own_disks.items()}
    keep = _keeper(day, rng)
    now_s = day.begin_s
    files = [folder / f"srv{number}.txt" for number in range(day.servers)]
    with ExitStack() as stack:
        servers = [stack.enter_context(path.open("w")) for path in files]
        while now_s < day.begin_s + day.long_s:
            acts = [act for act in day.acts if act.begin_s <= now_s - day.begin_s < act.end_s]
            pool = _pool(acts)
            source = main.next(pool)
            step = recording.steps[source]
            ends_s = now_s + step.long_s
            for act in acts:
                happened.setdefault(act, [now_s, ends_s])[1] = ends_s
            for name, target in targets.items():
                at = source if name in DISKS else others[name].next(pool)
                target.add(_cut(_done(recording, at, name, acts, now_s - day.begin_s, rng), step.long_s), ends_s)
            now_s = ends_s
            for trip in trips:
                trip.apply(targets[trip.who], now_s)
            if keep(acts):
                for number, file in enumerate(servers):
                    here = [one for one in targets.values() if day.servers == 1 or one.is_data == (number == 1)]
                    file.write(written(now_s + 0.7 * number, day.system, here, disks if day.disks else None))
    if day.client:
        files.append(folder / "cli.txt")
        files[-1].write_text("".join(_client(day, list(targets), trips, now_s, rng)))
    of_targets = {name: target.disk_name for name, target in targets.items()}
    for trip in trips:
        happened[trip.act] = [trip.left_s, trip.mounted_s]
    return Composed(files, [(act, happened[act][0], happened[act][1]) for act in day.acts], now_s, of_targets)


def _targets(day: Day, recording: Recording, rng: random.Random) -> dict[str, Target]:
    data = [f"OST{number:04x}" for number in range(day.data_targets)]
    letters = [f"vd{chr(ord('e') + number)}" for number in range(len(data))]
    rng.shuffle(letters)
    targets = {}
    for name, disk in zip(("MDT0000", "MDT0001", *data), ("vdc", "vdd", *letters), strict=True):
        first = recording.first[_like(name)]
        part = Part(dict(first.rows), {job: dict(rows) for job, rows in first.jobs.items()}, list(first.disk))
        target = Target(name, disk, part, day.begin_s - 3600 - rng.random() * 1000)
        if name == "MDT0001":
            target.recovery = _complete(day.begin_s - 3600)
        if day.warm:
            for at in recording.of(*_QUIET)[:40]:
                more = recording.steps[at].parts[_like(name)]
                for _ in range(50):
                    target.add(more, day.begin_s)
        targets[name] = target
    return targets


def _like(name: str) -> str:
    return name if name in DISKS else f"OST000{int(name[3:], 16) % 2}"


def _pool(acts: list[Act]) -> str:
    whats = {act.what for act in acts}
    return "slow" if "slow" in whats else "noisy" if "noisy" in whats else "quiet"


def _done(recording: Recording, at: int, name: str, acts: list[Act], now_s: float, rng: random.Random) -> Part:
    """Return a target's work in the recorded step ``at``, changed by the acts. ``now_s``: seconds into the day."""
    meta = name.startswith("MDT")
    of = {act.what: act for act in acts}
    source, like = at, _like(name)
    if "slow" in of and not meta:
        slow = of["slow"]
        if slow.who in ("", name):
            parts = recording.steps[at].parts
            return parts["OST0001"] if slow.factor == 1 else parts["OST0001"].taking(slow.factor, parts["OST0000"])
        like = "OST0000"
    elif "slow" in of and "noisy" in of:
        source = rng.choice(recording.of(*_POOLS["noisy"]))
    done = recording.steps[source].parts[like]
    for act in acts:
        if act.what == "noisy":
            done = done.renamed(_naming(act.who))
        elif act.what == "grows":
            share = act.factor * min(1.0, 1.5 * (now_s - act.begin_s) / act.long_s)
            noise = recording.steps[rng.choice(recording.of(*_POOLS["noisy"]))].parts[_like(name)]
            done = _both(done, noise.of_jobs(lambda job: job.endswith(_OF_NOISE), share).renamed(_naming(act.who)))
        elif act.what == "writer" and not meta:
            more = _as(done, "fio.0", act.who, act.factor)
            more.disk = [round(act.factor * each) for each in done.disk]
            done = _both(done, more)
        elif act.what == "busier":
            done = _both(done, _as(done, act.who, act.who, act.factor - 1))
        elif act.what == "small" and meta:
            done = _both(done, _as(done, "load.sh.0", f"task{int(now_s / 10)}.{1000 + int(now_s / 10) % 7}", 0.15))
        elif act.what == "pause" or (act.what == "idle" and act.who == name):
            done = Part(disk=[0] * len(done.disk))
    return done


def _as(part: Part, job: str, name: str, factor: float) -> Part:
    return part.of_jobs(lambda each: each == job, factor).renamed(lambda _: name)


def _naming(who: str) -> Callable[[str], str]:
    return lambda job: _named(job, who)


def _named(job: str, who: str) -> str:
    if not job.endswith(_OF_NOISE):
        return job
    name, _, user = who.rpartition(".")
    return who if not name or job == "noisyjob.1000" else job.removesuffix(_OF_NOISE) + f".{user}"


def _both(one: Part, other: Part) -> Part:
    both = Part(dict(one.rows), {job: dict(rows) for job, rows in one.jobs.items()}, list(one.disk))
    both.add(other)
    return both


def _cut(part: Part, long_s: float) -> Part:
    if part.disk and part.disk[_BUSY_MS] > 1000 * long_s:
        disk = list(part.disk)
        disk[_BUSY_MS] = int(1000 * long_s)
        return Part(part.rows, part.jobs, disk)
    return part


class _Trip:
    """The outage of a target that is unmounted and mounted again: times, and states on client and server."""

    def __init__(self, act: Act, begin_s: float, rng: random.Random) -> None:
        self.act, self.who = act, act.who
        self.left_s = begin_s + act.begin_s
        self.mounted_s = self.left_s + act.long_s
        # A target disappears before umount returns, and is back before mount returns.
        self.gone_s = self.left_s - rng.uniform(0.2, 0.9)
        self.started_s = self.mounted_s - min(1.2, 0.6 * act.long_s)
        noticed_s = self.left_s + rng.uniform(0.3, 12.6)
        back = _EVICTED if rng.random() < 0.2 else _BACK
        self.states: list[tuple[float, str]] = []
        if noticed_s > self.mounted_s:
            self.back_s = max(noticed_s, self.mounted_s + 1)
            self.states.append((self.back_s, "DISCONN"))
        else:
            self.states += [(noticed_s, "DISCONN"), (noticed_s, "CONNECTING"), (noticed_s, "DISCONN")]
            self.back_s = noticed_s + 5.5
            while self.back_s < self.mounted_s + 0.5:
                self.states += [(self.back_s, "CONNECTING"), (self.back_s, "DISCONN")]
                self.back_s += 5.5
        self.states += [(self.back_s, "CONNECTING"), *((self.back_s, state) for state in back)]

    def apply(self, target: Target, now_s: float) -> None:
        if not self.gone_s < now_s < self.back_s + 60:
            return
        target.present = now_s > self.started_s + 0.1
        if not target.present or target.mounted_s < self.started_s:
            target.start_anew(self.started_s)
        if target.name.startswith("MDT"):
            target.recovery = _recovery(now_s, self.back_s)


def _recovery(now_s: float, back_s: float) -> list[str]:
    if now_s < back_s:
        return ["status: WAITING_FOR_CLIENTS"]
    if now_s > back_s + 3:
        return _complete(back_s)
    return [
        "status: RECOVERING", f"recovery_start: {int(back_s)}", "time_remaining: 150", "connected_clients: 1/2",
        "req_replay_clients: 0", "lock_repay_clients: 0", "completed_clients: 1", "evicted_clients: 0",
    ]  # fmt: skip


def _complete(start_s: float) -> list[str]:
    return [
        "status: COMPLETE", f"recovery_start: {int(start_s)}", "recovery_duration: 2", "completed_clients: 2/2",
        "replayed_requests: 0", "last_transno: 21474841855", "VBR: DISABLED", "IR: ENABLED",
    ]  # fmt: skip


def _keeper(day: Day, rng: random.Random) -> Callable[[list[Act]], bool]:
    count = 0
    missing = {rng.randrange(10, max(11, int(day.long_s / 3.6))) for _ in range(day.missing)}

    def keep(acts: list[Act]) -> bool:
        nonlocal count
        count += 1
        if any(act.what == "gap" for act in acts) or count in missing:
            return False
        if day.cadence == "irregular":
            return rng.random() < 0.6
        return day.cadence == "each" or count % 2 == 0

    return keep


def _client(day: Day, names: list[str], trips: list[_Trip], end_s: float, rng: random.Random) -> Iterator[str]:
    states: dict[str, list[tuple[float, str]]] = {}
    for name in names:
        begun_s = day.begin_s - 1800
        history = [(begun_s, "CONNECTING"), (begun_s, "FULL")]
        if name.startswith("OST"):
            # Lustre clients disconnect from data targets without work (state IDLE), which is no failure.
            idle_s = day.begin_s - 300
            history += [(idle_s, "CONNECTING"), (idle_s, "IDLE"), (day.begin_s, "CONNECTING"), (day.begin_s, "FULL")]
        for act in day.acts:
            if act.what in ("idle", "pause") and act.who in ("", name) and name.startswith("OST"):
                for at_s, state in ((act.begin_s + 25, "IDLE"), (act.end_s, "FULL")):
                    history += [(day.begin_s + at_s, "CONNECTING"), (day.begin_s + at_s, state)]
        history += [each for trip in trips if trip.who == name for each in trip.states]
        states[name] = history
    now_s = day.begin_s + rng.random()
    gaps = [act for act in day.acts if act.what == "gap"]
    while now_s < end_s:
        if not any(gap.begin_s <= now_s - day.begin_s < gap.end_s for gap in gaps):
            yield _states(day, states, now_s)
        now_s += rng.uniform(3.2, 3.7) * (1 if day.cadence == "each" else 2)


def _states(day: Day, states: dict[str, list[tuple[float, str]]], now_s: float) -> str:
    lines = [f"### {now_s:.9f}"]
    for name, history in states.items():
        seen = [each for each in history if each[0] <= now_s][-_KEPT_STATES:]
        kind = "mdc" if name.startswith("MDT") else "osc"
        lines += [f"{kind}.{day.system}-{name}-{kind}-ffff888104cfa800.state=", f"current_state: {seen[-1][1]}"]
        lines += ["state_history:", *(f" - [ {int(at_s)}, {state} ]" for at_s, state in seen)]
    return "\n".join(lines) + "\n"

"""Split the recorded day of a Lustre server into increments of counters by target, job and disk."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

_HEAD = re.compile(r"^(mdt|obdfilter)\.\w+-(MDT\d+|OST\d+)\.(\w+)=(.*)$")
_ROW = re.compile(r"^(\w+)\s+(\d+) samples \[(\w+)\] (\d+) (\d+) (\d+) (\d+)$")
_JOB_ROW = re.compile(
    r"^  (\w+):\s+\{ samples:\s*(\d+), unit: (\w+), min:\s*(\d+), max:\s*(\d+), sum:\s*(\d+), sumsq:\s*(\d+)"
)
_DISK = re.compile(r"^\s*\d+\s+\d+ (\w+) ([\d ]+)$")
# Indices of columns in /proc/diskstats, counted after the name.
_IN_FLIGHT, _MILLISECONDS = 8, (3, 7, 9, 10)
# The disk of each target on the recorded server.
DISKS = {"MDT0000": "vdc", "MDT0001": "vdd", "OST0000": "vde", "OST0001": "vdf"}


@dataclass(frozen=True)
class Row:
    """One counter of Lustre: number of samples, and their minimum, maximum, sum and sum of squares in ``unit``."""

    unit: str
    samples: int
    least: int
    most: int
    sum: int
    squares: int

    def since(self, earlier: Row | None) -> Row:
        """Return the increment since ``earlier``. Its minimum and maximum are unknown and set to its mean."""
        if earlier is None:
            return self
        samples, total = self.samples - earlier.samples, self.sum - earlier.sum
        mean = total // samples if samples else 0
        return Row(self.unit, samples, mean, mean, total, max(0, self.squares - earlier.squares))

    def plus(self, more: Row) -> Row:
        if not more.samples:
            return self
        least = min(self.least, more.least) if self.samples else more.least
        return Row(
            self.unit, self.samples + more.samples, least, max(self.most, more.most), self.sum + more.sum,
            self.squares + more.squares,
        )  # fmt: skip

    def times(self, factor: float) -> Row:
        """Return the counter with ``factor`` times as many samples and the same mean."""
        samples = round(self.samples * factor)
        share = samples / self.samples if self.samples else 0.0
        return Row(self.unit, samples, self.least, self.most, round(self.sum * share), round(self.squares * share))

    def taking(self, factor: float, at_least: Row | None) -> Row:
        """Return the same requests with ``factor`` times the duration, but on average not below ``at_least``."""
        if self.unit != "usecs" or not self.samples:
            return self
        mean = factor * self.sum / self.samples
        mean = max(mean, at_least.sum / at_least.samples if at_least and at_least.samples else mean)
        share = mean * self.samples / self.sum if self.sum else 1.0
        return Row(
            self.unit, self.samples, round(self.least * share), round(self.most * share), round(self.sum * share),
            round(self.squares * share**2),
        )  # fmt: skip


Rows = Mapping[str, Row]


@dataclass
class Part:
    """The counters of a target, its jobs and its disk, or increments of these counters."""

    rows: dict[str, Row] = field(default_factory=dict)
    jobs: dict[str, dict[str, Row]] = field(default_factory=dict)
    disk: list[int] = field(default_factory=list)

    def since(self, earlier: Part) -> Part:
        jobs = {job: _since(rows, earlier.jobs.get(job, {})) for job, rows in self.jobs.items()}
        disk = [after - before for after, before in zip(self.disk, earlier.disk, strict=True)]
        if disk:
            disk[_IN_FLIGHT] = self.disk[_IN_FLIGHT]
        return Part(_since(self.rows, earlier.rows), {job: rows for job, rows in jobs.items() if rows}, disk)

    def add(self, more: Part) -> None:
        _add(self.rows, more.rows)
        for job, rows in more.jobs.items():
            _add(self.jobs.setdefault(job, {}), rows)
        if more.disk and self.disk:
            flying = more.disk[_IN_FLIGHT]
            self.disk = [one + other for one, other in zip(self.disk, more.disk, strict=True)]
            self.disk[_IN_FLIGHT] = flying

    def of_jobs(self, wanted: Callable[[str], bool], factor: float = 1.0) -> Part:
        """Return ``factor`` times the work of the ``wanted`` jobs, in the counters of these jobs and of the target."""
        jobs = {
            job: {name: row.times(factor) for name, row in rows.items()}
            for job, rows in self.jobs.items()
            if wanted(job)
        }
        part = Part(jobs=jobs)
        for rows in jobs.values():
            _add(part.rows, rows)
        return part

    def taking(self, factor: float, at_least: Part) -> Part:
        """Return the same work with ``factor`` times the durations, but not below those in ``at_least``."""
        rows = {name: row.taking(factor, at_least.rows.get(name)) for name, row in self.rows.items()}
        disk = [
            max(round(factor * slow), quick) if at in _MILLISECONDS else slow
            for at, (slow, quick) in enumerate(zip(self.disk, at_least.disk, strict=True))
        ]
        return Part(rows, self.jobs, disk)

    def renamed(self, name: Callable[[str], str]) -> Part:
        """Return the same work with renamed jobs. Jobs with the same new name are merged."""
        part = Part(self.rows, {}, self.disk)
        for job, rows in self.jobs.items():
            _add(part.jobs.setdefault(name(job), {}), rows)
        return part


def _since(rows: Rows, earlier: Rows) -> dict[str, Row]:
    added = {name: row.since(earlier.get(name)) for name, row in rows.items()}
    return {name: row for name, row in added.items() if row.samples > 0}


def _add(rows: dict[str, Row], more: Rows) -> None:
    for name, row in more.items():
        rows[name] = rows[name].plus(row) if name in rows else row


@dataclass(frozen=True)
class Step:
    """The work between two samples, without targets that were absent or restarted in this time.

    ``at_s``: end of the step, in seconds from the begin of the day. ``long_s``: length of the step in seconds.
    """

    at_s: float
    long_s: float
    parts: Mapping[str, Part]


@dataclass(frozen=True)
class Recording:
    """The recorded day: first sample, steps between later samples, and counters of disks without a target."""

    first: Mapping[str, Part]
    steps: list[Step]
    own_disks: Mapping[str, list[int]]

    def of(self, *spans: tuple[float, float]) -> list[int]:
        """Return the indices of the steps that end within ``spans``."""
        return [at for at, step in enumerate(self.steps) if any(low < step.at_s < high for low, high in spans)]


def take_apart(folder: Path) -> Recording:
    """Return the recording in ``day.srv.gz`` and ``day.events`` of ``folder``."""
    begin_s = float((folder / "day.events").read_text().split(" ", 1)[0])
    samples = list(_samples(folder / "day.srv.gz"))
    steps = []
    for (before_s, before, _), (at_s, parts, _) in pairwise(samples):
        # A restarted target counts from zero, so there is no increment.
        lasting = {name for name in before.keys() & parts.keys() if not _anew(before[name], parts[name])}
        added = {name: parts[name].since(before[name]) for name in lasting}
        steps.append(Step(at_s - begin_s, at_s - before_s, added))
    return Recording(samples[0][1], steps, samples[0][2])


def _anew(before: Part, after: Part) -> bool:
    return any(name not in after.rows or after.rows[name].samples < row.samples for name, row in before.rows.items())


def _samples(path: Path) -> Iterator[tuple[float, dict[str, Part], dict[str, list[int]]]]:
    of_disk = {disk: target for target, disk in DISKS.items()}
    with gzip.open(path, "rt") as file:
        texts = file.read().split("### ")[1:]
    for text in texts:
        first, *lines = text.splitlines()
        parts: dict[str, Part] = {}
        own: dict[str, list[int]] = {}
        part, rows = Part(), dict[str, Row]()
        for line in lines:
            if head := _HEAD.match(line):
                part = parts.setdefault(head[2], Part())
                rows = part.rows
            elif line.startswith("- job_id:"):
                rows = part.jobs.setdefault(line.split()[-1], {})
            elif (row := _ROW.match(line)) or (row := _JOB_ROW.match(line)):
                rows[row[1]] = Row(row[3], *(int(each) for each in row.groups()[1:2] + row.groups()[3:]))
            elif disk := _DISK.match(line):
                numbers = [int(each) for each in disk[2].split()]
                if disk[1] not in of_disk:
                    own[disk[1]] = numbers
                elif of_disk[disk[1]] in parts:
                    parts[of_disk[disk[1]]].disk = numbers
        yield float(first), parts, own


@dataclass
class Target:
    """State of a target while a day is composed."""

    name: str
    disk_name: str
    part: Part
    mounted_s: float
    last_active: dict[str, float] = field(default_factory=dict)
    begun: dict[str, float] = field(default_factory=dict)
    present: bool = True
    # Lines of the recovery status, or None if it is "INACTIVE".
    recovery: list[str] | None = None

    @property
    def is_data(self) -> bool:
        return self.name.startswith("OST")

    def add(self, more: Part, at_s: float) -> None:
        """Add the work done until ``at_s`` (Unix time). Like Lustre, drop jobs that were idle for ten minutes."""
        self.part.add(more)
        for job in more.jobs:
            self.last_active[job] = at_s
            self.begun.setdefault(job, at_s - 1)
        for job in [job for job in self.part.jobs if at_s - self.last_active.get(job, at_s) > 600]:
            del self.part.jobs[job], self.last_active[job], self.begun[job]

    def start_anew(self, mounted_s: float) -> None:
        """Reset all counters except those of the disk."""
        self.mounted_s = mounted_s
        self.part = Part(disk=self.part.disk)
        self.last_active, self.begun = {}, {}


def written(time_s: float, system: str, targets: list[Target], disks: Mapping[str, list[int]] | None) -> str:
    """Return a sample in the format of ``lctl get_param`` and ``/proc/diskstats``.

    ``disks``: counters of disks without a target, or None to leave out all disks.
    """
    present = [target for target in targets if target.present]
    meta = [target for target in present if not target.is_data]
    data = [target for target in present if target.is_data]
    lines = [f"### {time_s:.9f}"]
    for target in meta:
        lines += _counters(f"mdt.{system}-{target.name}.md_stats", target, time_s)
    for target in meta:
        lines += _jobs(f"mdt.{system}-{target.name}.job_stats", target)
    for target in meta:
        status = target.recovery or ["status: INACTIVE"]
        head = f"mdt.{system}-{target.name}.recovery_status="
        lines += [head, *status] if len(status) > 1 else [head + status[0]]
    for target in data:
        lines += _counters(f"obdfilter.{system}-{target.name}.stats", target, time_s)
    for target in data:
        lines += _jobs(f"obdfilter.{system}-{target.name}.job_stats", target)
    lines += [f"obdfilter.{system}-{target.name}.kbytesfree=9591668" for target in data]
    lines += [f"obdfilter.{system}-{target.name}.kbytestotal=9625968" for target in data]
    if disks is not None:
        all_disks = {**disks, **{target.disk_name: target.part.disk for target in targets}}
        lines += [
            f" 254 {16 * at:7d} {name} {' '.join(str(each) for each in all_disks[name])}"
            for at, name in enumerate(sorted(all_disks, key=lambda name: (len(name), name)))
        ]
    return "\n".join(lines) + "\n"


def _counters(head: str, target: Target, time_s: float) -> list[str]:
    return [
        f"{head}=",
        f"snapshot_time                       {time_s + 0.1:.9f} secs.nsecs",
        f"start_time                          {target.mounted_s:.9f} secs.nsecs",
        f"elapsed_time                        {time_s + 0.1 - target.mounted_s:.9f} secs.nsecs",
        *(
            f"{name:20s}{row.samples:16d} samples [{row.unit}] {row.least} {row.most} {row.sum} {row.squares}"
            for name, row in target.part.rows.items()
            if row.samples
        ),
    ]


def _jobs(head: str, target: Target) -> list[str]:
    lines = [f"{head}=", *(["job_stats:"] if target.part.jobs else [])]
    for job, rows in target.part.jobs.items():
        lines += [f"- job_id:          {job}", f"  start_time:      {target.begun[job]:.9f} secs.nsecs"]
        for name, row in rows.items():
            numbers = f"min: {row.least:8d}, max: {row.most:8d}, sum: {row.sum:16d}, sumsq: {row.squares:18d}"
            lines.append(f"  {name + ':':16s} {{ samples: {row.samples:11d}, unit: {row.unit:>5s}, {numbers} }}")
    return lines

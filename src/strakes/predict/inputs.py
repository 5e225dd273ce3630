"""Check the runs for a forecast, and identify the file system that they measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strakes.base.errors import BadInputError
from strakes.runs.run import Run
from strakes.survey.analysis_build import results_of
from strakes.survey.analysis_warnings import load_before, memory_warnings


@dataclass(frozen=True)
class MeasuredFileSystem:
    """A measured file system. ``source``: mounted device or export. Unknown values are empty."""

    kind: str = ""
    source: str = ""
    mount_point: str = ""

    def is_same_as(self, other: MeasuredFileSystem) -> bool:
        """Return whether type and source are equal. If the source is no device or export, compare the mount point too.

        >>> nfs = MeasuredFileSystem("nfs4", "srv:/x", "/mnt/a")
        >>> nfs.is_same_as(MeasuredFileSystem("nfs4", "srv:/x", "/mnt/b"))
        True
        >>> MeasuredFileSystem("tmpfs", "tmpfs", "/a").is_same_as(MeasuredFileSystem("tmpfs", "tmpfs", "/b"))
        False
        """
        if (self.kind, self.source) != (other.kind, other.source):
            return False
        return "/" in self.source or ":" in self.source or self.mount_point == other.mount_point

    @property
    def text(self) -> str:
        """Return the file system as text for messages."""
        return f"{self.kind or 'unknown'} ({self.source}) at {self.mount_point}"


def file_system_of(run: Run) -> MeasuredFileSystem:
    """Return the file system that a run measured."""
    facts = run.facts
    return MeasuredFileSystem(*(str(facts.get(key) or "") for key in ("file_system", "device", "mount_point")))


def described(run: Run) -> str:
    """Return a line about a run: its id, its directories, and the load of the node before the run."""
    load = "".join(f"; load average {load:.1f} before it" for load in run.environment.get("load_average", ())[:1])
    results = results_of(run)
    seen = load_before(run.environment, results.facts.get("others_busy"))
    seen += [one for one in memory_warnings(results) if one.code in ("memory-file-system", "cache-below")]
    sentences = (f"{one.text} {one.remedy}" for one in seen)
    return " ".join([f"From the run {run.id} on {run.directories}{load}.", *sentences])


def inputs_of(runs: Sequence[Run]) -> tuple[tuple[Run, ...], list[str]]:
    """Return the distinct runs, and notes on incomplete ones. Raises BadInputError if their file systems differ."""
    once = tuple({run.id: run for run in runs}.values())
    described = [run for run in once if file_system_of(run).kind]
    for other in described[1:]:
        first, second = file_system_of(described[0]), file_system_of(other)
        if not first.is_same_as(second):
            raise BadInputError(
                "the runs are of different file systems",
                where=f"{described[0].id}: {first.text}; {other.id}: {second.text}",
                remedy="Give runs of one file system, and make a forecast for each file system.",
            )
    unfinished = [run.id for run in once if run.manifest["status"] != "complete"]
    return once, [f"The run {name} is not complete; its measurements so far are used." for name in unfinished]

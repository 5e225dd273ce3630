"""Create the directories of cells with a layout or a placement on servers, and verify the result."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from strakes.base.errors import MeasurementError, StrakesError
from strakes.model.cell import Cell, Place
from strakes.model.phases import SmallFilesPhase
from strakes.model.plan import Plan
from strakes.runs.records import LayoutGiven, Visit
from strakes.targets import calls
from strakes.targets.description import Layout, Placement, layout_differences, placement_differences
from strakes.targets.marker import MARKER_NAME
from strakes.targets.target import Target

_NEVER_EMPTY = "stays"


def prepare(target: Target, workspace: Path, name: str, place: Place) -> dict[str, Any]:
    """Create the directory ``workspace/name`` on the servers that ``place`` requires. Return its actual placement.

    Raises UnsupportedError if the file system cannot place directories, MeasurementError if it chose other servers.
    """
    directory = workspace / name
    from concurrent.futures import ThreadPoolExecutor

    given: dict[str, Any] = {}
    if place.kept and calls.call("there", str(directory)):
        return given
    if place.placement is not None:
        given["placement"] = asdict(_make_placed(target, workspace, name, place.placement))
    else:
        calls.call("mkdir", str(directory))
    placed = {entry: wanted for entry, wanted in place.entries.items() if wanted.kind != "inherit"}
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda one: _make_placed(target, directory, *one), placed.items())
        given |= {entry: asdict(placement) for entry, placement in zip(placed, found, strict=True)}
    if others := [str(directory / entry) for entry in place.entries if entry not in placed]:
        calls.call("mkdir", *others)
    if place.kept and place.entries:
        # CephFS moves an empty pinned directory back to its parent's metadata server. A file prevents the move.
        calls.call("create", *(str(directory / entry / _NEVER_EMPTY) for entry in place.entries))
    return given


def try_place(target: Target, workspace: Path, name: str, place: Place) -> str:
    """Try the placements in ``place`` with temporary directories. Return an error text if that fails, else ""."""
    wanted = dict.fromkeys((place.placement or Placement("inherit"), *place.entries.values()))
    directory = workspace / name
    calls.call("mkdir", str(directory))
    try:
        for number, one in enumerate(wanted):
            if one.kind != "inherit":
                _make_placed(target, directory, str(number), one)
    except StrakesError as error:
        return ": ".join(filter(None, (error.what, error.why)))
    finally:
        calls.call("empty", str(directory))
    return ""


def grown(plan: Plan, rounds: int) -> Plan:
    """Return the plan of a later round of trials. Its files have names that the ``rounds`` earlier rounds do not use.

    >>> from strakes.studies.small_files import pool_phase
    >>> grown(Plan(2, (pool_phase("fill", "accumulate", files=50),)), 3).phases[0].first_item
    150
    """
    phases = tuple(
        replace(one, first_item=rounds * one.files_per_rank) if isinstance(one, SmallFilesPhase) else one
        for one in plan.phases
    )
    return replace(plan, phases=phases)


def rounds_begun(visits: Sequence[Visit], kept: str, resumed: int) -> int:
    """Return an upper bound of the number of rounds that created files. Interrupted rounds may be unrecorded."""
    return sum(visit.kept == kept for visit in visits) + resumed


def files_kept(visits: Sequence[Visit], kept: str) -> int:
    """Return the number of files that successful trials have made in the directory ``kept``."""
    there = [visit for visit in visits if visit.kept == kept and visit.ended_well]
    return sum(sample.operations for visit in there for sample in visit.samples)


def _make_placed(target: Target, parent: Path, name: str, wanted: Placement) -> Placement:
    found = target.make_directory(parent, name, wanted)
    if differences := placement_differences(wanted, found):
        raise MeasurementError(
            "the file system did not place a file or directory as requested",
            where=str(parent / name),
            why="; ".join(differences),
            remedy="See the supported placements: strakes target DIR",
        )
    return found


class LayoutDirectories:
    """Working directories of trials: one for each layout of files, including the default layout."""

    def __init__(self, workspace: Path, target: Target) -> None:
        self._workspace = workspace
        self._target = target
        self._made: dict[Layout, Path] = {}

    def make(self, cells: Iterable[Cell]) -> list[LayoutGiven]:
        """Create the working directories for the layouts of cells. Return the requested and the actual layouts.

        A directory with a different layout than requested is removed.
        """
        wanted = dict.fromkeys(cell.layout for cell in cells if cell.layout is not None)
        return [self._make(one) for one in wanted if one not in self._made]

    def of(self, layout: Layout | None) -> Path | None:
        """Return the working directory with this layout, or None if the file system refused the layout."""
        return self._workspace if layout is None else self._made.get(layout)

    def _make(self, wanted: Layout) -> LayoutGiven:
        place = self._workspace / f"layout{len(self._made)}"
        try:
            calls.call("mkdir", str(place))
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise MeasurementError("a working directory cannot be made", where=str(place), why=why) from error
        try:
            given = self._target.set_layout(place, wanted)
        except StrakesError as error:
            calls.call("rmdir", str(place))
            return LayoutGiven(wanted, None, (error.why or error.what,))
        differences = layout_differences(wanted, given)
        if differences:
            calls.call("rmdir", str(place))
        else:
            calls.call("create", str(place / MARKER_NAME))
            self._made[wanted] = place
        return LayoutGiven(wanted, given, differences)

"""Making the directory a cell asked for, and reading back where it really is."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from strakes.errors import MeasurementError, StrakesError
from strakes.findings.place import Place
from strakes.plan import Plan, SmallFilesPhase
from strakes.store.records import Visit
from strakes.targets import calls
from strakes.targets.description import Placement, placement_differences
from strakes.targets.target import Target

_NEVER_EMPTY = "stays"
_AT_ONCE = 4


def prepare(target: Target, workspace: Path, name: str, place: Place) -> dict[str, Any]:
    """Make ``workspace/name`` as the place wants it; returns what was given, for the store.

    Raises UnsupportedError where the target cannot do that, MeasurementError when it gave something else.
    """
    directory = workspace / name
    given: dict[str, Any] = {}
    if place.kept and calls.is_there(str(directory)):
        return given
    if place.placement is not None:
        given["placement"] = asdict(_make_placed(target, workspace, name, place.placement))
    else:
        calls.make_directory(str(directory))
    placed = {entry: wanted for entry, wanted in place.entries.items() if wanted.kind != "inherit"}
    # Each is several calls that mostly wait.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda one: _make_placed(target, directory, *one), placed.items())
        given |= {entry: asdict(placement) for entry, placement in zip(placed, found, strict=True)}
    if others := [str(directory / entry) for entry in place.entries if entry not in placed]:
        calls.make_directories(others)
    if place.kept and place.entries:
        # CephFS gives an empty directory back to the rank that has its parent, whatever it is pinned to.
        calls.make_files([str(directory / entry / _NEVER_EMPTY) for entry in place.entries])
    return given


def try_place(target: Target, workspace: Path, name: str, place: Place) -> str:
    """Whether the target can place directories so, tried with ones that are removed again; empty when it can."""
    wanted = dict.fromkeys((place.placement or Placement("inherit"), *place.entries.values()))
    directory = workspace / name
    calls.make_directory(str(directory))
    try:
        for number, one in enumerate(wanted):
            if one.kind != "inherit":
                _make_placed(target, directory, str(number), one)
    except StrakesError as error:
        return ": ".join(filter(None, (error.what, error.why)))
    finally:
        calls.remove_directories(str(directory))
    return ""


def grown(plan: Plan, rounds: int) -> Plan:
    """Return the plan for a pool on which as many rounds were begun before, so that it makes files of other names.

    >>> from strakes.studies.pools import pool_phase
    >>> grown(Plan(2, (pool_phase("fill", "accumulate", files=50),)), 3).phases[0].first_item
    150
    """
    phases = tuple(
        replace(one, first_item=rounds * one.files_per_rank) if isinstance(one, SmallFilesPhase) else one
        for one in plan.phases
    )
    return replace(plan, phases=phases)


def rounds_begun(visits: Sequence[Visit], kept: str, resumed: int) -> int:
    """Return rounds that may have made files there.

    Those told of, and one for each time that the run was broken off.
    """
    return sum(visit.kept == kept for visit in visits) + resumed


def files_kept(visits: Sequence[Visit], kept: str) -> int:
    """How many files the kept place holds, by the samples of the rounds that ended well."""
    there = [visit for visit in visits if visit.kept == kept and visit.ended_well]
    return sum(sample.operations for visit in there for sample in visit.samples)


def _make_placed(target: Target, parent: Path, name: str, wanted: Placement) -> Placement:
    found = target.make_directory(parent, name, wanted)
    _refuse(placement_differences(wanted, found), parent / name)
    return found


def _refuse(differences: tuple[str, ...], directory: Path) -> None:
    if differences:
        raise MeasurementError(
            "the file system did not place a file or directory as asked",
            where=str(directory),
            why="; ".join(differences),
            remedy="strakes target DIR shows what it can do.",
        )

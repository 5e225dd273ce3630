"""Making the directory a cell asked for, and reading back where it really is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from strakes.errors import MeasurementError, StrakesError
from strakes.plan import Plan, SmallFilesPhase
from strakes.studies.place import Place
from strakes.targets.base import Target
from strakes.targets.model import Placement, placement_differences

_NEVER_EMPTY = "stays"
_AT_ONCE = 4


def prepare(target: Target, workspace: Path, name: str, place: Place) -> dict[str, Any]:
    """Makes ``workspace/name`` as the place wants it; returns what was given, for the store.

    Raises UnsupportedError where the target cannot do that, MeasurementError when it gave something else.
    """
    directory = workspace / name
    given: dict[str, Any] = {}
    if place.kept and directory.exists():
        return given
    if place.placement is not None:
        given["placement"] = asdict(_placed(target, workspace, name, place.placement))
    else:
        directory.mkdir()
    placed = {entry: wanted for entry, wanted in place.entries.items() if wanted.kind != "inherit"}
    # Each is several calls that mostly wait.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda one: _placed(target, directory, *one), placed.items())
        given |= {entry: asdict(placement) for entry, placement in zip(placed, found, strict=True)}
    for entry in place.entries:
        if entry not in placed:
            (directory / entry).mkdir()
        if place.kept:
            # CephFS gives an empty directory back to the rank that has its parent, whatever it is pinned to.
            (directory / entry / _NEVER_EMPTY).touch(0o600)
    return given


def why_not(target: Target, workspace: Path, name: str, place: Place) -> str:
    """Whether the target can place directories so, tried with ones that are removed again; empty when it can."""
    wanted = dict.fromkeys((place.placement or Placement("inherit"), *place.entries.values()))
    directory = workspace / name
    directory.mkdir()
    try:
        for number, one in enumerate(wanted):
            if one.kind != "inherit":
                _placed(target, directory, str(number), one)
    except StrakesError as error:
        return ": ".join(filter(None, (error.what, error.why)))
    finally:
        for made in (*directory.iterdir(), directory):
            made.rmdir()
    return ""


def grown(plan: Plan, rounds: int) -> Plan:
    """The plan for a pool on which as many rounds were begun before, so that it makes files of other names.

    >>> from strakes.studies.pools import pool_phase
    >>> grown(Plan(2, (pool_phase("fill", "accumulate", files=50),)), 3).phases[0].first_item
    150
    """
    phases = tuple(replace(one, first_item=rounds * one.files_per_rank) if isinstance(one, SmallFilesPhase) else one for one in plan.phases)
    return replace(plan, phases=phases)


def rounds_begun(visits: Sequence[Mapping[str, Any]], kept: str, resumed: int) -> int:
    """Rounds that may have made files there: those told of, and one for each time that the run was broken off."""
    return len([visit for visit in visits if visit.get("kept") == kept]) + resumed


def files_kept(visits: Sequence[Mapping[str, Any]], kept: str) -> int:
    """How many files the kept place holds, by the samples of the rounds that ended well."""
    there = [visit for visit in visits if visit.get("kept") == kept and visit["ended"] == "ok"]
    return sum(int(sample["operations"]) for visit in there for sample in visit["samples"])


def _placed(target: Target, parent: Path, name: str, wanted: Placement) -> Placement:
    found = target.make_directory(parent, name, wanted)
    _refuse(placement_differences(wanted, found), parent / name)
    return found


def _refuse(differences: tuple[str, ...], directory: Path) -> None:
    if differences:
        raise MeasurementError(
            "the file system did not place this as it was asked to",
            where=str(directory),
            why="; ".join(differences),
            remedy="strakes target DIR shows what it can do.",
        )

"""The pilot is a short first measurement. Its rough rates serve to plan the data and files of phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strakes.base.units import KIB, MIB
from strakes.model.phases import MetadataPhase, Stop, TransferPhase
from strakes.model.plan import Phase, Plan
from strakes.model.sample import Sample
from strakes.runs.records import Visit
from strakes.studies.study import Pilot, power_of_two_at_most

# The planner assumes at least these rates, in bytes and files per second, even if the pilot measured less.
_SLOWEST_BYTES_PER_S = 256 * KIB
_SLOWEST_CREATES_PER_S = 5.0
# Bytes and files of each rank in the smallest pilot measurement.
_SMALLEST_BYTES = 64 * KIB
_FEWEST_ITEMS = 8
_SMALLEST_S = 0.1
# Work of a longer measurement, as a multiple of the usual work. If a device has burst credits for the usual work, the
# longer measurement finds at most 4/3 of the lasting rate. Its duration is four times the usual duration.
_LONGER_TIMES = 4

# Prefix of the keys of longer measurements.
LONGER = "longer/"
NO_PILOT = Pilot(_SLOWEST_BYTES_PER_S, _SLOWEST_BYTES_PER_S, _SLOWEST_CREATES_PER_S)


def pilot_plan(ranks: int, max_bytes: int, max_items: int, seconds: float, seed: int) -> Plan:
    """Return a plan that writes and verifies data, and creates and removes files. ``seconds``: limit per phase."""
    amount = max(_SMALLEST_BYTES, power_of_two_at_most(min(256 * MIB, max_bytes / ranks)))
    items = max(_FEWEST_ITEMS, min(20_000, max_items // ranks))
    # The ranks may be threads of one process, which has at most 4,096.
    transfer = min(MIB, amount, max(128 * KIB, power_of_two_at_most(512 * MIB / ranks)))
    stop = Stop("stonewall", seconds)
    return Plan(
        ranks,
        (
            TransferPhase("write", "write", "file-per-process", "segmented", transfer, amount, sync="fsync", stop=stop),
            TransferPhase(
                "read", "read", "file-per-process", "segmented", transfer, amount, cache="drop", verify=True, stop=stop
            ),
            MetadataPhase("create", "file-create", "unique", items, stop=stop),
            MetadataPhase("remove", "file-remove", "unique", items, stop=stop),
        ),
        seed,
    )


def smallest_plan(ranks: int, seed: int) -> Plan:
    """Return a plan with almost no work, to measure the overhead of a trial outside its phases."""
    return pilot_plan(ranks, ranks * _SMALLEST_BYTES, ranks * _FEWEST_ITEMS, _SMALLEST_S, seed)


def longer(plan: Plan) -> Plan:
    """Return a plan of transfers and metadata operations with several times the data, files and time limits."""
    phases: list[Phase] = []
    for phase in plan.phases:
        assert isinstance(phase, MetadataPhase | TransferPhase)
        work = "items" if isinstance(phase, MetadataPhase) else "block_bytes"
        stop = replace(phase.stop, seconds=phase.stop.seconds and _LONGER_TIMES * phase.stop.seconds)
        phases.append(replace(phase, stop=stop, **{work: _LONGER_TIMES * getattr(phase, work)}))
    return replace(plan, phases=tuple(phases))


def beside_phases_s(visit: Visit) -> float:
    """Return the seconds of a trial that were spent outside its I/O phases, including the removal of files."""
    return max(0.0, visit.elapsed_s - sum(sample.elapsed_s for sample in visit.samples))


def faster(pilots: Sequence[Pilot]) -> Pilot:
    """Return the highest rate of each operation in several pilots."""
    return Pilot(
        max(pilot.write_bytes_per_s for pilot in pilots),
        max(pilot.read_bytes_per_s for pilot in pilots),
        max(pilot.creates_per_s for pilot in pilots),
        removes_per_s=max(pilot.removes_per_s for pilot in pilots),
    )


def with_write_back(pilot: Pilot, files: int, seconds: float) -> Pilot:
    """Return the pilot with file rates that include the write-back, which took ``seconds`` for ``files`` new files."""
    share = 1 / (1 + seconds * pilot.creates_per_s / files)
    creates_per_s = max(_SLOWEST_CREATES_PER_S, share * pilot.creates_per_s)
    return replace(pilot, creates_per_s=creates_per_s, removes_per_s=share * pilot.removes_per_s)


def pilot_from_samples(samples: Sequence[Sample]) -> Pilot:
    """Return the rates that a pilot measurement found."""
    by_name = {sample.name: sample for sample in samples}
    return Pilot(
        write_bytes_per_s=max(_SLOWEST_BYTES_PER_S, by_name["write"].bytes_per_s),
        read_bytes_per_s=max(_SLOWEST_BYTES_PER_S, by_name["read"].bytes_per_s),
        creates_per_s=max(_SLOWEST_CREATES_PER_S, by_name["create"].operations_per_s),
        removes_per_s=by_name["remove"].operations_per_s,
    )

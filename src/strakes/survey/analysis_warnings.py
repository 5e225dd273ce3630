"""Derive the warnings on a run from its samples and events."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from strakes.base.errors import BadInputError
from strakes.base.language import gettext
from strakes.base.units import format_bytes, format_seconds, parse_bytes
from strakes.model.phases import StreamPhase, TransferPhase
from strakes.model.portrait import RunWarning
from strakes.model.record import to_record
from strakes.model.results import Measured, Observation, Results
from strakes.model.sample import APART_SHARE, CACHED_SHARE
from strakes.runs.impact import UNLIMITED
from strakes.runs.records import (
    CellDropped,
    CountersUnread,
    InterruptionsEnded,
    LayoutGiven,
    NeighbourFelt,
    NodesChanged,
    OthersSeen,
    TargetDescribed,
    TroubleSeen,
)
from strakes.runs.run import Run
from strakes.stats.interval import median
from strakes.studies.compose import from_memory
from strakes.studies.registry import study_named
from strakes.survey.analysis_amounts import amount_warnings
from strakes.survey.analysis_answers import BUSY_CPU_SHARE
from strakes.survey.analysis_held_back import gave_way, held_back, under_one_limit
from strakes.survey.analysis_servers import slow_servers
from strakes.survey.analysis_warning_texts import warning
from strakes.targets.description import Interruption, Layout
from strakes.targets.mountinfo import own_cache

# Confidence of the intervals of all servers together. At most 1 % of runs get a false warning of a slow server.
_SURE_OF_SERVERS = 0.98
# Reads count as cached if devices or servers sent less than this share of the data. Counters may err by 10 %.
ANSWERED_SHARE = 0.9
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})
# Spellings of "true" that the kernel accepts (kstrtobool).
_ON = ("1", "y", "Y", "t", "T", "on", "On", "ON")


def run_warnings(run: Run, results: Results) -> list[RunWarning]:
    """Return all warnings on a run, most important first."""
    environment = run.environment
    return [
        *memory_warnings(results),
        *_limits(run, results),
        *unsynced(run, str(results.facts.get("file_system", ""))),
        *amount_warnings(results),
        *_few_runs(results),
        *_hints(results),
        *_target(run),
        *hybrid_io(run),
        *_nodes(run, results),
        *_begun(run, results),
        *load_before(environment, results.facts.get("others_busy")),
    ]


def load_before(environment: Mapping[str, Any], busy: float | None = None) -> list[RunWarning]:
    """Return a warning if other programs used more than a quarter of the processor time.

    ``busy``: their share of processor time between trials. If None, the load average before the run is used instead.

    >>> load_before({"load_average": [23.0], "cpus": 2}, 0.98)[0].text
    'Other programs kept the 2 processors of this node 98 % busy (load average 23.0 before the run).'
    """
    if not environment.get("load_average") or "cpus" not in environment:
        return []
    load, cpus = float(environment["load_average"][0]), int(environment["cpus"])
    share = min(1.0, load / cpus) if busy is None else busy
    if share <= BUSY_CPU_SHARE:
        return []
    return [warning("background-load", processors=cpus, share=_percent(share), load=load)]


def memory_warnings(results: Results) -> list[RunWarning]:
    """Return the warnings about reads that memory served, or may have served."""
    return [*_file_system(results), *_cache(results)]


def _file_system(results: Results) -> Iterator[RunWarning]:
    file_system = str(results.facts.get("file_system", "the file system"))
    device = results.facts.get("block_device") or {}
    below = str(device.get("backing_file_system", ""))
    if file_system in MEMORY_FILE_SYSTEMS:
        yield warning("memory-file-system", file_system=file_system)
    elif below in MEMORY_FILE_SYSTEMS:
        place = gettext("{file_system} in an image file on {below}", file_system=file_system, below=below)
        yield warning("memory-file-system", file_system=place)
    elif device.get("backing_file"):  # On a loop device, O_DIRECT does not bypass the cache of the file system below.
        yield warning("cache-below", [cell.id for cell in _reads(results)], file=device["backing_file"])
    if results.facts.get("direct_io", True) is False:
        yield warning("direct-refused", file_system=file_system)


def _reads(results: Results) -> list[Measured]:
    return [
        cell
        for cell in _measured(results)
        if (cell.settings.get("operation") == "read" or any(seen.sample.data_read for seen in _regular(cell)))
        and not from_memory(cell, results.facts)
    ]


def _measured(results: Results) -> list[Measured]:
    return [cell for cell in results.measured if cell.estimate is not None and not cell.is_side]


def _regular(cell: Measured) -> list[Observation]:
    return [seen for seen in cell.observations if seen.purpose == "measure"]


def _limits(run: Run, results: Results) -> Iterator[RunWarning]:
    visits = run.visits
    shown = under_one_limit(visits)
    limit = shown[0].impact if shown else UNLIMITED
    held = {cell.id: share for cell in _measured(results) if (share := held_back(cell))}
    if held:
        kind = "held-back" if limit.bytes_per_s is None or limit.operations_per_s is not None else "held-back-bytes"
        yield warning(kind, list(held), limit=limit, share=_percent(max(held.values())))
    yielded, slowed = gave_way(visits)
    stopped = any(event.stopped for event in run.events_of(NeighbourFelt))
    if yielded or slowed or stopped:
        yield warning("stopped-for-others" if stopped else "gave-way", yielded=yielded, slowed=slowed)
    others = [visit.impact for visit in visits if visit.ended_well and visit.impact != limit]
    if others:
        limits = "; ".join(map(str, dict.fromkeys(others)))
        yield warning("left-out", runs=len(others), limits=limits, kept=limit)


def _cache(results: Results) -> Iterator[RunWarning]:
    file_system = str(results.facts.get("file_system", ""))
    uncounted: dict[str, list[str]] = {}
    device = str((results.facts.get("block_device") or {}).get("name", ""))
    samples = [seen.sample for figure in _measured(results) for seen in figure.observations]
    if not any(device in sample.counters.get("devices", ()) for sample in samples):
        device = ""
    for cell in _reads(results):
        caches = [(seen.sample.cache, seen.sample.data_read) for seen in _regular(cell)]
        resident = median([float(cache.resident_before_bytes) for cache, _ in caches])
        held = [amount if cache.file_bytes is None else min(amount, cache.file_bytes) for cache, amount in caches]
        read = median([float(amount) for amount in held])
        counted_ = _counted(cell, results, device)
        if 0 < CACHED_SHARE * read < resident:
            resident = min(resident, read)
            amounts = {"resident": format_bytes(resident), "read": format_bytes(read)}
            yield warning("cached-before", [cell.id], **amounts, share=_percent(resident / read))
        elif counted_ is not None:
            pairs, who = counted_
            count, read = (median(list(column)) for column in zip(*pairs, strict=True))
            if count < ANSWERED_SHARE * read:
                told = {"counted": format_bytes(count), "read": format_bytes(read)}
                yield warning("answered-before", [cell.id], who=who, **told)
        if counted_ is None:
            io, small = cell.settings.get("io"), all(seen.sample.reads_small_files for seen in _regular(cell))
            bypassed = io == "direct" or cell.elsewhere or file_system in MEMORY_FILE_SYSTEMS
            page_cache = "the page cache of this node" if small and not bypassed else ""
            uncounted.setdefault(own_cache(file_system, io) or page_cache, []).append(cell.id)
    for cache_name, cells in uncounted.items():
        if cache_name:
            yield warning("cache-unseen", cells, file_system=file_system, cache=cache_name)


def _counted(figure: Measured, results: Results, device: str) -> tuple[list[tuple[float, float]], str] | None:
    if device:
        samples = [seen.sample for seen in _regular(figure)]
        counts = [sample.counters.get("devices", {}).get(device, {}).get("read_bytes", 0) for sample in samples]
        own = [(float(count), float(sample.data_read)) for count, sample in zip(counts, samples, strict=True)]
        return own, f"Device {device}"
    # Server counters are read only before and after a trial, so they cover all phases of the trial.
    cell = figure.id.rsplit(":", 1)[0]
    reads = [seen for other in _measured(results) if other.id.rsplit(":", 1)[0] == cell for seen in _regular(other)]
    amounts = []
    for seen in _regular(figure):
        told = [
            float(counters["data.read_bytes"]) for counters in seen.servers.values() if "data.read_bytes" in counters
        ]
        if told:
            read = {other.sample.name: other.sample.data_read for other in reads if other.at_s == seen.at_s}
            amounts.append((sum(told), float(sum(read.values()))))
    return (amounts, f"Servers ({', '.join(sorted(_regular(figure)[0].servers))})") if amounts else None


def _few_runs(results: Results) -> Iterator[RunWarning]:
    few: dict[int, list[str]] = {}
    for figure in _measured(results):
        if figure.estimate is not None and figure.estimate.low is None:
            few.setdefault(figure.estimate.runs, []).append(figure.id)
    for runs, cells in sorted(few.items()):
        yield warning("few-runs", cells, runs=runs)


def _hints(results: Results) -> Iterator[RunWarning]:
    for cell in _measured(results):
        told = [seen.sample.effective for seen in _regular(cell)]
        others = {name: pair for effective in told for name, pair in effective.get("hints_not_in_effect", {}).items()}
        for name, (asked, has) in others.items():
            if asked != has:
                setting, effective = gettext("hint {name}", name=name), has or gettext("nothing")
                yield warning("setting-differs", [cell.id], setting=setting, asked=asked, effective=effective)


def _target(run: Run) -> Iterator[RunWarning]:
    for event in run.events:
        if isinstance(event, TargetDescribed) and event.unlike:
            yield warning("target-unlike", targets=" ".join(event.unlike))
        elif isinstance(event, LayoutGiven) and event.differences:
            given = _values(event.given) if event.given else event.differences[0]
            asked = _values(event.wanted)
            if asked != given:
                yield warning("setting-differs", setting=gettext("layout of new files"), asked=asked, effective=given)
    drills = {cell.key for cell in run.cells if study_named(cell.study).interrupts_service}
    visits = [visit for visit in run.visits if visit.cell not in drills]
    for server, ratio in slow_servers(visits, _SURE_OF_SERVERS).items():
        yield warning("server-unlike", server=server, low=ratio.low, high=ratio.high)
    yield from (unread := unread_servers(run))
    lines = list(dict.fromkeys(line for visit in visits for line in visit.servers_disturbed))
    if lines := [line for line in lines if not unread or ": no counters from " not in line]:
        yield warning("server-changed", servers="; ".join(lines))
    lost = [interruption for visit in run.visits for interruption in visit.interruptions]
    lost = as_known_last(lost, [each for event in run.events_of(InterruptionsEnded) for each in event.interruptions])
    if lost:
        again = sum(1 for visit in run.visits if visit.ended == "interrupted")
        kind = "service-interrupted" if again else "service-interrupted-once"
        yield warning(kind, interruptions=" ".join(map(str, dict.fromkeys(lost))), runs=again)
    if who := list(dict.fromkeys(name for event in run.events_of(OthersSeen) for name in event.who)):
        yield warning("other-measurement", who="; ".join(who))
    if seen := run.events_of(TroubleSeen):
        lines = [f"{event.when.capitalize()} the measurement: {' '.join(event.sentences)}" for event in seen]
        yield warning("servers-not-well", servers=" ".join(lines))


def unread_servers(run: Run) -> list[RunWarning]:
    """Return a warning if the counters of some servers could not be read, else an empty list."""
    sentences = dict.fromkeys(sentence for event in run.events_of(CountersUnread) for sentence in event.sentences)
    return [warning("counters-unread", servers=" ".join(sentences))] if sentences else []


def as_known_last(met: Sequence[Interruption], later: Sequence[Interruption]) -> list[Interruption]:
    """Return each interruption of service once, with its latest known state.

    ``met``: interruptions during trials. ``later``: observations after the trials.

    >>> lasting, over = Interruption("mds.0", 0, None), Interruption("mds.0", 0, 5, evicted=True)
    >>> as_known_last([lasting, over], []) == as_known_last([lasting], [over]) == [over]
    True
    """
    known: dict[tuple[str, float], Interruption] = {}
    for lost in met:
        before = known.get((lost.target, lost.began_unix_s), lost)
        known[lost.target, lost.began_unix_s] = _latest(before, lost)
    for lost in later:
        if before_or_none := known.get((lost.target, lost.began_unix_s)):
            known[lost.target, lost.began_unix_s] = _latest(before_or_none, lost)
    return list(known.values())


def _latest(before: Interruption, later: Interruption) -> Interruption:
    return replace(
        later,
        ended_unix_s=before.ended_unix_s if later.ended_unix_s is None else later.ended_unix_s,
        evicted=before.evicted or later.evicted,
        evicted_clients=before.evicted_clients if later.evicted_clients is None else later.evicted_clients,
        evicted_names=later.evicted_names or before.evicted_names,
    )


def hybrid_io(run: Run) -> Iterator[RunWarning]:
    """Yield a warning about large buffered requests, which Lustre's hybrid I/O turns into direct I/O."""
    described = run.events_of(TargetDescribed)
    client: Mapping[str, str] = described[0].description.get("client", {}) if described else {}
    least = {}
    for operation in ("write", "read") if client.get("llite.hybrid_io") in _ON else ():
        with suppress(BadInputError):
            least[operation] = parse_bytes(client.get(f"llite.hybrid_io_{operation}_threshold_bytes", ""))
    cells = [
        identifier
        for identifier, phase in _buffered(run)
        # Hybrid I/O does not apply to mmap, which makes no calls of read or write.
        if isinstance(phase, TransferPhase)
        and phase.backend != "mmap"
        and phase.transfer_bytes >= least.get(phase.operation, math.inf)
    ]
    if cells:
        sizes = ", ".join(f"{name} {format_bytes(size)}" for name, size in least.items())
        yield warning("hybrid-io", cells, sizes=sizes)


def unsynced(run: Run, file_system: str) -> Iterator[RunWarning]:
    """Yield a warning about writes without a sync, whose data may have stayed in the page cache."""
    if file_system in MEMORY_FILE_SYSTEMS or file_system.startswith("nfs"):  # NFS syncs data in close(2).
        return
    written = {
        identifier: phase.name
        for identifier, phase in _buffered(run)
        if phase.operation == "write" and phase.sync in ("none", "close") and phase.backend != "s3"
    }
    if written:
        yield warning("unsynced", list(written), phases=", ".join(dict.fromkeys(written.values())))


def _buffered(run: Run) -> list[tuple[str, TransferPhase | StreamPhase]]:
    return [
        (cell.measure_id(measure.suffix), phase)
        for cell in run.cells
        for measure in cell.measures
        for phase, _ in cell.plan.each()
        if isinstance(phase, TransferPhase | StreamPhase) and measure.phase == phase.name
        if not measure.is_side and not phase.direct
    ]


def _nodes(run: Run, results: Results) -> list[RunWarning]:
    facts = results.facts.get("nodes") or {}
    lines = [f"{difference['host']}: {difference['what']}" for difference in facts.get("differences", ())]
    if "not_compared" in facts:
        lines.append(gettext("The nodes were not compared ({why})", why=facts["not_compared"]))
    lines += [
        gettext("The run was resumed on other nodes: {nodes}", nodes=", ".join(event.nodes))
        for event in run.events_of(NodesChanged)
    ]
    return [warning("node-unlike", nodes="; ".join(dict.fromkeys(lines)))] if lines else []


def _begun(run: Run, results: Results) -> Iterator[RunWarning]:
    phases = [skew for visit in run.visits for sample in visit.samples if (skew := sample.skew())]
    skews = {cell.id: [skew for seen in _regular(cell) if (skew := seen.sample.skew())] for cell in _measured(results)}
    # Late ranks lower the median rate only if they were late in half of the trials.
    if cells := [cell for cell, own in skews.items() if own and 2 * sum(one.is_apart for one in own) >= len(own)]:
        apart = [phase for phase in phases if phase.is_apart]
        worst = max(apart, key=lambda phase: phase.share)
        yield warning(
            "begun-apart",
            cells,
            apart=len(apart),
            phases=len(phases),
            limit=_percent(APART_SHARE),
            worst=format_seconds(worst.apart_s),
            share=_percent(worst.share),
            rank=gettext("{rank} on {host}", rank=worst.rank, host=worst.host) if worst.host else worst.rank,
        )


def _values(layout: Layout) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in to_record(layout).items())


def dropped_cells(run: Run) -> dict[str, str]:
    """Return the cells that were left out for lack of time, each with the reason."""
    runs = Counter(visit.cell for visit in run.visits if visit.ended_well and visit.is_measurement)
    return {
        event.cell: event.reason
        for event in run.events_of(CellDropped)
        if event.runs is None or runs[event.cell] <= event.runs
    }


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"

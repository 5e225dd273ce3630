"""Physical checks of figures. Each takes plain values and returns its warnings.

Every check takes the ids of the cells that it concerns (none: the whole run). An empty list means no doubt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strakes.analysis.remedies import REMEDIES
from strakes.findings.begun import APART_S, Begun
from strakes.findings.portrait import RunWarning
from strakes.findings.sample import CACHED_SHARE
from strakes.statistics.interval import Interval
from strakes.targets.caches import own_cache
from strakes.targets.description import Interruption
from strakes.units import counted, format_bytes, format_seconds

# Where devices or servers read less than this share of what was asked for, something before them answered: as much less
# as figures may be off.
ANSWERED_SHARE = 0.9
# Fluctuations of counters and of a load average below this say nothing.
BUSY_CPU_SHARE = 0.25
CLOCK_JUMP_S = 0.5
MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})


def cached_before(resident_bytes: int, read_bytes: int, cells: Sequence[str] = ()) -> list[RunWarning]:
    """Return `cache-suspect` if more than 5 % of the data to read is in the page cache already.

    >>> [warning.text for warning in cached_before(524288, 1048576)]  # doctest: +NORMALIZE_WHITESPACE
    ['512 KiB of the 1 MiB to read (50 %) were in the page cache before the read, so memory supplied a
    part of the rate.']
    """
    if read_bytes <= 0 or resident_bytes <= CACHED_SHARE * read_bytes:
        return []
    # The cache may hold more of a file than is read: other ranks share it, or only a part is read.
    resident_bytes = min(resident_bytes, read_bytes)
    share = resident_bytes / read_bytes
    text = (
        f"{format_bytes(resident_bytes)} of the {format_bytes(read_bytes)} to read ({_percent(share)}) were in the "
        "page cache before the "
        "read, so memory supplied a part of the rate."
    )
    return [_warning("cache-suspect", text, cells)]


def answered_before(counted_bytes: float, read_bytes: float, who: str, cells: Sequence[str] = ()) -> list[RunWarning]:
    """Return `cache-suspect` if the counters of a device or of servers show less data than was read.

    >>> answered_before(1e6, 1e9, "Device sda", ["a:read"])[0].text
    'Device sda read 977 KiB of 954 MiB: a cache in front of it, or an uncounted device, answered the rest.'
    """
    if read_bytes <= 0 or counted_bytes >= ANSWERED_SHARE * read_bytes:
        return []
    text = (
        f"{who} read {format_bytes(counted_bytes)} of {format_bytes(read_bytes)}: a cache in front of it, or an "
        "uncounted device, answered the rest."
    )
    return [_warning("cache-suspect", text, cells)]


def cache_below(backing_file: str, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`cache-suspect` where the device is a file on another file system, whose page cache O_DIRECT does not bypass.

    >>> cache_below("/var/disk.img")[0].code, cache_below("")
    ('cache-suspect', [])
    """
    if not backing_file:
        return []
    text = (
        f"The device is a loop device on the file {backing_file}: the page cache below it may answer reads, even "
        "with O_DIRECT."
    )
    return [_warning("cache-suspect", text, cells)]


def cache_unseen(file_system: str, cells: Sequence[str]) -> list[RunWarning]:
    """Return `cache-unseen` for buffered reads of a file system whose client has a cache outside the kernel's.

    ``cells``: the reads whose traffic to the storage was not counted.

    >>> cache_unseen("gpfs", ["a:read"])[0].text
    'gpfs also keeps data in the page pool of its client: how much of the reads that answered is not known.'
    >>> cache_unseen("xfs", ["a:read"]), cache_unseen("gpfs", [])
    ([], [])
    """
    cache = own_cache(file_system)
    if not cache or not cells:
        return []
    text = f"{file_system} also keeps data in {cache}: how much of the reads that answered is not known."
    return [_warning("cache-unseen", text, cells)]


def memory_file_system(file_system: str) -> list[RunWarning]:
    """`memory-file-system` for tmpfs and its kin.

    >>> memory_file_system("tmpfs")[0].code, memory_file_system("xfs")
    ('memory-file-system', [])
    """
    if file_system not in MEMORY_FILE_SYSTEMS:
        return []
    return [
        _warning("memory-file-system", f"The directory is on {file_system}: every figure shows memory, not storage.")
    ]


def few_runs(runs: int, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`few-runs` where there are too few for an interval."""
    return [_warning("few-runs", f"{counted(runs, 'run')}: an interval needs three.", cells)]


def load_before(load_average: float, cpus: int, busy: float | None = None) -> list[RunWarning]:
    """`background-load` where others kept more than a quarter of the processors busy before the start.

    ``load_average``: of the last minute. ``busy``: share of processor time just before, where that was looked at.

    >>> load_before(23.0, 2, 0.98)[0].text
    'Other programs kept 2 processors 98 % busy before the run (load average 23.0).'
    """
    share = min(1.0, load_average / cpus) if busy is None else busy
    if share <= BUSY_CPU_SHARE:
        return []
    processors = counted(cpus, "processor")
    text = f"Other programs kept {processors} {_percent(share)} busy before the run (load average {load_average:.1f})."
    return [_warning("background-load", text)]


def clock_jump(wall_s: float, monotonic_s: float, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`clock-jump` where wall clock and monotonic clock disagree about how much time passed."""
    jump = wall_s - monotonic_s
    if abs(jump) <= CLOCK_JUMP_S:
        return []
    way = "forward" if jump > 0 else "back"
    return [
        _warning(
            "clock-jump", f"The wall clock was set {way} by {format_seconds(abs(jump))} during the measurement.", cells
        )
    ]


def stonewalled(done: float, asked: float, unit: str, seconds: float, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`stonewalled` where the time ran out before the amount was done."""
    if asked <= 0 or done >= asked:
        return []
    text = f"Only {done:,.0f} {unit} of {asked:,.0f} ({_percent(done / asked)}) were done in {format_seconds(seconds)}."
    return [_warning("stonewalled", text, cells)]


def direct_refused(file_system: str, why: str, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`direct-refused`: the target does not take O_DIRECT."""
    return [
        _warning(
            "direct-refused",
            f"{file_system} refused O_DIRECT ({why}): everything was measured through the page cache.",
            cells,
        )
    ]


def setting_differs(setting: str, asked: str, effective: str, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`setting-differs` where the target read back something else than was asked of it."""
    if asked == effective:
        return []
    return [_warning("setting-differs", f"{setting}: {asked} was asked for, {effective} is in effect.", cells)]


def budget_skipped(skipped: int, planned: int, budget_s: float) -> list[RunWarning]:
    """`budget-skipped` where cells were never measured for lack of time."""
    if skipped <= 0:
        return []
    text = (
        f"{skipped} of {counted(planned, 'cell')} {'was' if skipped == 1 else 'were'} not measured: the rest of "
        f"the budget of {format_seconds(budget_s)} was estimated to be too short."
    )
    return [_warning("budget-skipped", text)]


def targets_unlike(sentences: Sequence[str]) -> list[RunWarning]:
    """`target-unlike` for servers' targets that bend every figure."""
    return [_warning("target-unlike", " ".join(sentences))] if sentences else []


def servers_not_well(seen: Sequence[tuple[str, Sequence[str]]]) -> list[RunWarning]:
    """`servers-not-well` where servers did not serve as they should before or after all that was measured."""
    lines = [f"{when.capitalize()} the measurement: {' '.join(sentences)}" for when, sentences in seen]
    return [_warning("servers-not-well", " ".join(lines))] if lines else []


def hybrid_io(thresholds: Mapping[str, int], cells: Sequence[str]) -> list[RunWarning]:
    """Return `hybrid-io` for buffered calls made direct by the file system; ``thresholds``: the smallest such size."""
    if not cells:
        return []
    sizes = " and ".join(f"{operation}s of {format_bytes(size)}" for operation, size in thresholds.items())
    return [_warning("hybrid-io", f"Lustre's hybrid I/O turns buffered {sizes} and more into direct ones.", cells)]


def server_unlike(server: str, ratio: Interval) -> list[RunWarning]:
    """`server-unlike` for a server that is slower than the others by its own counters.

    >>> server_unlike("oss1", Interval(0.31, 0.35, 0.99))[0].text
    'Server oss1 moves 0.31 - 0.35 times as much as the others in each second that it is busy: files on it are slower.'
    """
    text = (
        f"Server {server} moves {ratio.low:.2f} - {ratio.high:.2f} times as much as the others in each second that it "
        "is busy: files on it are slower."
    )
    return [_warning("server-unlike", text)]


def nodes_unlike(lines: Sequence[str]) -> list[RunWarning]:
    """`node-unlike` for nodes that differ, were not compared, or are other ones since a run was resumed."""
    return [_warning("node-unlike", f"{'; '.join(lines)}.")] if lines else []


def begun_apart(apart: int, phases: int, worst: Begun, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`begun-apart` for phases whose ranks began further apart than a millisecond; ``worst``: of those.

    >>> worst = Begun(0.0051, 3, "n4", 0.12, False, 3e-5)
    >>> begun_apart(3, 90, worst, ["a:write"])[0].text  # doctest: +NORMALIZE_WHITESPACE
    'The ranks of 3 of 90 phases started more than 1.00 ms apart: at worst 5.10 ms (12 % of that phase), rank 3 on n4
    last.'
    """
    if not apart:
        return []
    last = f"rank {worst.rank}{f' on {worst.host}' if worst.host else ''} last"
    text = (
        f"The ranks of {apart} of {counted(phases, 'phase')} started more than {format_seconds(APART_S)} apart: "
        f"at worst {format_seconds(worst.apart_s)} ({_percent(worst.share)} of that phase), {last}"
    )
    why = (
        "; their machine has fewer processors than ranks, so they cannot all start at the same moment"
        if worst.crowded
        else ""
    )
    return [_warning("begun-apart", f"{text}{why}.", cells)]


def servers_disturbed(lines: Sequence[str]) -> list[RunWarning]:
    """`server-changed` for counters that began anew: what servers counted then is left out."""
    return [_warning("server-changed", f"{'; '.join(lines)}.")] if lines else []


def service_interrupted(interruptions: Sequence[Interruption], again: int) -> list[RunWarning]:
    """`service-interrupted` where servers did not serve for a while; ``again``: how many runs were made again for it.

    >>> service_interrupted([Interruption("mds.0", 0, 5)], 1)[0].text
    'mds.0 did not serve this client from 1970-01-01 00:00:00 UTC for 5.00 s. 1 run was disturbed by that and repeated.'
    """
    if not interruptions:
        return []
    repeated = (
        f"{_runs_were(again)} disturbed by that and repeated." if again else "Runs during that time were not repeated."
    )
    return [_warning("service-interrupted", " ".join([*map(str, dict.fromkeys(interruptions)), repeated]))]


def held_back(limit: str, share: float, cells: Sequence[str]) -> list[RunWarning]:
    """`held-back` for figures of a limit of ours; ``share``: of their time for which ranks waited, at most.

    >>> held_back("200 MiB/s", 0.6, ["a:write"])[0].text  # doctest: +NORMALIZE_WHITESPACE
    'Limited to 200 MiB/s: the ranks waited for up to 60 % of the time, so the rates show the limit, not the file
    system.'
    """
    if not cells:
        return []
    waited = f"the ranks waited for up to {_percent(share)} of the time"
    return [
        _warning(
            "held-back",
            f"Limited to {limit}: {waited}, so the rates show the limit, not the file system.",
            cells,
        )
    ]


def gave_way(yielded: int, slowed: int, stopped: bool) -> list[RunWarning]:
    """`gave-way` where other people's operations made the measurement less.

    >>> gave_way(2, 7, False)[0].text
    'To protect other users: 2 runs were stopped and repeated, 7 ran at reduced load.'
    """
    if not (yielded or slowed or stopped):
        return []
    ended = ", and in the end everything was stopped" if stopped else ""
    return [
        _warning(
            "gave-way",
            f"To protect other users: {_runs_were(yielded)} stopped and repeated{ended}, {slowed} ran at reduced load.",
        )
    ]


def left_out(runs: int, limits: Sequence[str], kept: str) -> list[RunWarning]:
    """Return `left-out` for runs under other limits than the ones shown: such runs are never pooled."""
    if not runs:
        return []
    others = "; ".join(limits)
    return [
        _warning(
            "left-out",
            f"{_runs_were(runs)} made under other limits ({others}); only those under one limit are shown ({kept}).",
        )
    ]


def _runs_were(count: int) -> str:
    return "1 run was" if count == 1 else f"{count} runs were"


def _warning(code: str, text: str, cells: Sequence[str] = ()) -> RunWarning:
    return RunWarning(code, text, REMEDIES[code], tuple(cells))


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"

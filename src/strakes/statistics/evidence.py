"""What makes a figure doubtful: physical checks on plain values, each returning the warnings it gives rise to, with figures and a remedy.

Every check takes the ids of the cells it is about (none: the whole run) and returns an empty list where there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strakes.portrait.begun import APART_S, Begun
from strakes.portrait.model import RunWarning
from strakes.statistics.bimodality import TwoGroups
from strakes.statistics.drift import Trend
from strakes.statistics.interval import Estimate, smallest_runs
from strakes.statistics.stopping import runs_for
from strakes.units import format_bytes, format_seconds, format_value

# A read of which more than this was in the page cache beforehand is not a measurement of storage.
CACHED_SHARE = 0.05
# Read-ahead alone lets buffered large reads overtake direct ones a little; twice as fast takes a cache.
CACHE_SPEED_UP = 2.0
# Fluctuations of counters and of a load average below this say nothing.
BUSY_CPU_SHARE = 0.25
FOREIGN_DEVICE_SHARE = 0.25
FOREIGN_DEVICE_BYTES = 64 * 1024**2
DRIFT_ERROR = 0.05
DRIFT_CHANGE = 0.05
CLOCK_JUMP_S = 0.5

MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})

REMEDIES: Mapping[str, str] = {
    "cache-suspect": "Read more data than the memory of nodes and servers holds, use O_DIRECT, or let other nodes read what these wrote.",
    "target-unlike": "strakes target DIR shows them; measure again when they are as the others, or say so beside the figures.",
    "server-changed": "Repeat when no server is restarted and nobody clears counters.",
    "memory-file-system": "Give a directory on the storage that is meant.",
    "interval-not-reached": "Give a larger --budget, or accept the wider interval that is shown.",
    "few-runs": "Give a larger --budget so that every cell is run often enough for an interval.",
    "background-load": "Repeat when the machine and the file system are quiet, or take the figures as those of a shared system.",
    "drift": "Trust only comparisons made within blocks; repeat at another time to see whether the change persists.",
    "bimodal": "The median may describe neither group: see the raw runs and find what switches (placement, cache, neighbours).",
    "clock-jump": "Have the clock slewed, not stepped, and repeat; rates are taken from a clock that does not jump, times of day are not.",
    "stonewalled": "Give more seconds or less work; the rate is that of what was finished in time.",
    "direct-refused": "Figures are buffered: read the cache evidence beside them, or measure where O_DIRECT is supported.",
    "node-unlike": "Leave the node out of --hosts, or take the figures of all nodes as those of unlike ones.",
    "begun-apart": "Start no more ranks than processors, and see what else keeps these busy; in longer phases it weighs less.",
    "held-back": "Take these rates as what they at least are: without --impact or --neighbour the file system may do more.",
    "gave-way": "Measure at a quieter time: what ran slowed is no figure of the file system alone, nor of it beside others.",
    "left-out": "Measure at a quieter time, or with a larger --budget, so that all runs are made under one limit.",
    "setting-differs": "The figure is that of the effective setting: ask for one that the target grants.",
    "budget-skipped": "Give a larger --budget, or run the one study with `strakes study`.",
}


def cached_before(resident_bytes: int, read_bytes: int, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`cache-suspect` where more than 5 % of what is about to be read is in the page cache already.

    >>> [warning.text for warning in cached_before(524288, 1048576)]
    ['512 KiB of the 1 MiB to read (50 %) were in the page cache before the read: the rate is partly that of memory.']
    """
    if read_bytes <= 0 or resident_bytes <= CACHED_SHARE * read_bytes:
        return []
    # Of what is shared with others, or read in part, more may be there than is read.
    resident_bytes = min(resident_bytes, read_bytes)
    share = resident_bytes / read_bytes
    text = (
        f"{format_bytes(resident_bytes)} of the {format_bytes(read_bytes)} to read ({_percent(share)}) were in the page cache before the "
        "read: the rate is partly that of memory."
    )
    return [_warning("cache-suspect", text, cells)]


def faster_than_direct(ratio: Estimate, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`cache-suspect` where buffered reads are surely twice as fast as O_DIRECT reads of the same work; ``ratio`` is buffered / direct."""
    if ratio.interval is None or ratio.interval.low < CACHE_SPEED_UP:
        return []
    text = (
        f"Buffered reads are {ratio.median:.3g} times ({ratio.interval.low:.3g} to {ratio.interval.high:.3g}) as fast as O_DIRECT reads "
        "of the same work: a cache, not the storage, answered."
    )
    return [_warning("cache-suspect", text, cells)]


def faster_than_possible(rate: Estimate, ceiling: float, of: str, unit: str, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`cache-suspect` where a rate surely exceeds what ``of`` (a link, a device) can carry."""
    if rate.interval is None or rate.interval.low <= ceiling:
        return []
    text = (
        f"{format_value(rate.median, unit)} (at least {format_value(rate.interval.low, unit)}) is more than {of} can carry "
        f"({format_value(ceiling, unit)}): part of it never crossed it."
    )
    return [_warning("cache-suspect", text, cells)]


def cache_below(backing_file: str, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`cache-suspect` where the device is a file on another file system, whose page cache no O_DIRECT above it goes around.

    >>> cache_below("/var/disk.img")[0].code, cache_below("")
    ('cache-suspect', [])
    """
    if not backing_file:
        return []
    text = f"The device is a loop over the file {backing_file}: the page cache below it may answer reads, O_DIRECT ones included."
    return [_warning("cache-suspect", text, cells)]


def memory_file_system(file_system: str) -> list[RunWarning]:
    """`memory-file-system` for tmpfs and its kin.

    >>> memory_file_system("tmpfs")[0].code, memory_file_system("xfs")
    ('memory-file-system', [])
    """
    if file_system not in MEMORY_FILE_SYSTEMS:
        return []
    return [_warning("memory-file-system", f"The directory is on {file_system}: every figure is that of memory, not of storage.")]


def interval_not_reached(estimate: Estimate, wanted: float, stopped_because: str, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`interval-not-reached` or, while there is no interval at all, nothing: that is :func:`few_runs`."""
    if estimate.interval is None or estimate.relative_half_width <= wanted:
        return []
    needed = runs_for(estimate, wanted)
    guess = f"; about {needed} runs would reach it" if needed else ""
    text = (
        f"After {estimate.runs} runs the interval is ±{_percent(estimate.relative_half_width)}, not ±{_percent(wanted)} "
        f"(stopped by {stopped_because}){guess}."
    )
    return [_warning("interval-not-reached", text, cells)]


def few_runs(runs: int, confidence: float, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`few-runs` where there are too few for any interval."""
    needed = smallest_runs(confidence)
    if runs >= needed:
        return []
    text = (
        f"{runs} run{'' if runs == 1 else 's'}: an interval for the median with {_percent(confidence)} confidence takes at least {needed}."
    )
    return [_warning("few-runs", text, cells)]


def load_before(load_average: float, cpus: int, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`background-load` where others kept more than a quarter of the CPUs busy before the start; the average is that of the last minute."""
    if load_average <= BUSY_CPU_SHARE * cpus:
        return []
    return [_warning("background-load", f"The load average was {load_average:.2f} on {cpus} CPUs before the start.", cells)]


def cpu_of_others(busy_s: float, own_s: float, elapsed_s: float, cpus: int, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`background-load` where CPU time on the node that is not ours exceeds a quarter of what its CPUs had to give."""
    others_s = busy_s - own_s
    if elapsed_s <= 0 or others_s <= BUSY_CPU_SHARE * elapsed_s * cpus:
        return []
    used = f"Others used {format_seconds(others_s)} of CPU time, we {format_seconds(own_s)}"
    text = f"{used}, in {format_seconds(elapsed_s)} on {cpus} CPUs."
    return [_warning("background-load", text, cells)]


def device_of_others(device: str, moved_bytes: int, own_bytes: int, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`background-load` where a device moved much more than the work asked for; give both for phases that end with fsync or use O_DIRECT.

    Journals and read-ahead move a little more than asked, so less than a quarter or 64 MiB beyond is not mentioned.
    """
    beyond = moved_bytes - own_bytes
    if beyond <= FOREIGN_DEVICE_BYTES or beyond <= FOREIGN_DEVICE_SHARE * own_bytes:
        return []
    text = f"Device {device} moved {format_bytes(moved_bytes)} while our work was {format_bytes(own_bytes)}: somebody else uses it too."
    return [_warning("background-load", text, cells)]


def drifting(trend: Trend, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`drift` where a trend is beyond chance (5 %) and beyond 5 % of the median.

    For many cells give the pooled trend: one test, not hundreds.
    """
    if trend.p_value > DRIFT_ERROR or abs(trend.change) < DRIFT_CHANGE:
        return []
    way = "rose" if trend.direction == "up" else "fell"
    text = f"The values {way} by about {_percent(abs(trend.change))} while {trend.runs} runs were made (p = {trend.p_value:.2g})."
    return [_warning("drift", text, cells)]


def bimodal(groups: TwoGroups | None, unit: str, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`bimodal` where two groups of runs were found."""
    if groups is None:
        return []
    text = (
        f"The {groups.runs} runs fall into two groups: {_percent(groups.low_share)} around {format_value(groups.low, unit)}, "
        f"the others around {format_value(groups.high, unit)}."
    )
    return [_warning("bimodal", text, cells)]


def clock_jump(wall_s: float, monotonic_s: float, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`clock-jump` where wall clock and monotonic clock disagree about how much time passed."""
    jump = wall_s - monotonic_s
    if abs(jump) <= CLOCK_JUMP_S:
        return []
    way = "forward" if jump > 0 else "back"
    return [_warning("clock-jump", f"The wall clock was set {way} by {format_seconds(abs(jump))} during the measurement.", cells)]


def stonewalled(done: float, asked: float, unit: str, seconds: float, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`stonewalled` where the time ran out before the amount was done."""
    if asked <= 0 or done >= asked:
        return []
    text = f"Only {done:,.0f} {unit} of {asked:,.0f} ({_percent(done / asked)}) done in {format_seconds(seconds)}."
    return [_warning("stonewalled", text, cells)]


def direct_refused(file_system: str, why: str, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`direct-refused`: the target does not take O_DIRECT."""
    return [_warning("direct-refused", f"{file_system} refused O_DIRECT ({why}): nothing was measured past the page cache.", cells)]


def setting_differs(setting: str, asked: str, effective: str, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`setting-differs` where the target read back something else than was asked of it."""
    if asked == effective:
        return []
    return [_warning("setting-differs", f"{setting}: {asked} was asked for, {effective} is in effect.", cells)]


def budget_skipped(skipped: int, planned: int, budget_s: float) -> list[RunWarning]:
    """`budget-skipped` where cells were never measured for lack of time."""
    if skipped <= 0:
        return []
    text = f"{skipped} of {planned} cells were not measured: the budget of {format_seconds(budget_s)} was spent."
    return [_warning("budget-skipped", text)]


def targets_unlike(sentences: Sequence[str]) -> list[RunWarning]:
    """`target-unlike` for servers' targets that bend every figure."""
    return [_warning("target-unlike", " ".join(sentences))] if sentences else []


def nodes_unlike(lines: Sequence[str]) -> list[RunWarning]:
    """`node-unlike` for nodes that differ from the others, or were not compared, or are other ones since a run was resumed."""
    return [_warning("node-unlike", f"{'; '.join(lines)}.")] if lines else []


def begun_apart(apart: int, phases: int, worst: Begun, cells: Sequence[str] = ()) -> list[RunWarning]:
    """`begun-apart` for phases whose ranks began further apart than a millisecond; ``worst``: of those.

    >>> begun_apart(3, 90, Begun(0.0051, 3, "n4", 0.12, False, 3e-5), ["a:write"])[0].text
    'The ranks of 3 of 90 phases began more than 1.00 ms apart: at worst 5.10 ms (12 % of that phase), rank 3 on n4 last.'
    """
    if not apart:
        return []
    last = f"rank {worst.rank}{f' on {worst.host}' if worst.host else ''} last"
    text = (
        f"The ranks of {apart} of {phases} phases began more than {format_seconds(APART_S)} apart: "
        f"at worst {format_seconds(worst.apart_s)} ({_percent(worst.share)} of that phase), {last}"
    )
    why = "; their machine has fewer processors than ranks, which cannot all begin at one moment" if worst.crowded else ""
    return [_warning("begun-apart", f"{text}{why}.", cells)]


def servers_disturbed(lines: Sequence[str]) -> list[RunWarning]:
    """`server-changed` for counters that began anew: what servers counted then is left out."""
    return [_warning("server-changed", f"{'; '.join(lines)}.")] if lines else []


def held_back(limit: str, share: float, cells: Sequence[str]) -> list[RunWarning]:
    """`held-back` for figures of a limit of ours; ``share``: of their time for which ranks waited, at most.

    >>> held_back("200 MiB/s", 0.6, ["a:write"])[0].text
    'Held back to 200 MiB/s: the ranks waited for up to 60 % of the time, so the rates are those of the limit, not of the file system.'
    """
    if not cells:
        return []
    waited = f"the ranks waited for up to {_percent(share)} of the time"
    return [_warning("held-back", f"Held back to {limit}: {waited}, so the rates are those of the limit, not of the file system.", cells)]


def gave_way(yielded: int, slowed: int, stopped: bool) -> list[RunWarning]:
    """`gave-way` where other people's operations made the measurement less.

    >>> gave_way(2, 7, False)[0].text
    'For other people: 2 runs were ended and made again, 7 ran with less load.'
    """
    if not (yielded or slowed or stopped):
        return []
    ended = ", and at last all of it was" if stopped else ""
    return [_warning("gave-way", f"For other people: {_runs_were(yielded)} ended and made again{ended}, {slowed} ran with less load.")]


def left_out(runs: int, limits: Sequence[str], kept: str) -> list[RunWarning]:
    """`left-out` for runs under other limits than those that are shown: nothing is pooled across limits."""
    if not runs:
        return []
    others = "; ".join(limits)
    return [_warning("left-out", f"{_runs_were(runs)} made under other limits ({others}): only those under one are shown ({kept}).")]


def _runs_were(count: int) -> str:
    return "1 run was" if count == 1 else f"{count} runs were"


def _warning(code: str, text: str, cells: Sequence[str] = ()) -> RunWarning:
    return RunWarning(code, text, REMEDIES[code], tuple(cells))


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"

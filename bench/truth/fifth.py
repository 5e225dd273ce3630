"""A fifth set of truths, everyday ones here: what administrators of file systems meet in an ordinary month.

Made without looking at the rules, and kept before any survey of them was made. Those of an adversary are in :mod:`bench.truth.fifth_adversary`.
"""

from __future__ import annotations

from functools import cache

from bench.truth.fifth_adversary import adversarial
from bench.truth.fifth_world import MIB, Fifth, Never, Now, Shape, kind
from strakes.plan import Phase, TransferPhase

GIB = 1024 * MIB
NO_ADVICE = (
    Never(r"still grow", "severe", "all numbers and sizes are alike"),
    Never(r"needs? more than", "severe", "one rank and the smallest size do as well"),
    Never(r"(became|becomes|is|were|was) (slower|faster) (since|from|after)", "moderate", "nothing changes"),
)
NOTHING_FALSE = (
    "more ranks, larger calls or more directories are better or worse",
    "anything changed, takes turns or depends on what was done before",
    "a cache answered; a server is unlike the others",
)


def _data(phase: Phase) -> bool:
    return isinstance(phase, TransferPhase)


def _commit(now: Now, phase: Phase, _: int) -> float:
    if now.at_s % 5.0 >= 0.7:
        return 1.0
    return {"write": 0.35, "create": 0.45, "remove": 0.45}.get(kind(phase), 1.0)


def _bucket(now: Now, phase: Phase, _: int) -> float:
    return 1.0 if not _data(phase) or now.get("bytes", 3 * GIB) > 0 else 1 / 3


def _pay_bytes(now: Now, phase: Phase | None, _: int, amount: float, seconds: float) -> None:
    spent = amount if phase and _data(phase) else 0.0
    now.values["bytes"] = min(3 * GIB, now.get("bytes", 3 * GIB) + 100 * MIB * seconds - spent)


def _credits(now: Now, phase: Phase, _: int) -> float:
    return 1.0 if _data(phase) or now.get("names", 25_000) > 0 else 0.25


def _pay_names(now: Now, phase: Phase | None, _: int, amount: float, seconds: float) -> None:
    spent = amount if phase and not _data(phase) else 0.0
    now.values["names"] = min(25_000, now.get("names", 25_000) + 300 * seconds - spent)


def _cells(now: Now, phase: Phase, _: int) -> float:
    return 380 / 1400 if kind(phase) == "write" and now.get("full") >= 2 * GIB else 1.0


def _fill_cells(now: Now, phase: Phase | None, _: int, amount: float, seconds: float) -> None:
    written = amount if phase and kind(phase) == "write" else 0.0
    freed = 0.0 if written else 40 * MIB * seconds
    now.values["full"] = min(2 * GIB, max(0.0, now.get("full") + written - freed))


def _checkpoint(now: Now, phase: Phase, _: int) -> float:
    return (0.5 if _data(phase) else 0.85) if 46 <= now.at_s < 68 else 1.0


def _scan(now: Now, phase: Phase, _: int) -> float:
    return (0.97 if _data(phase) else 0.6) if now.at_s >= 58 else 1.0


def _rebalanced(now: Now, phase: Phase, _: int) -> float:
    return min(1.0, 0.72 + 0.28 * now.at_s / 110) if _data(phase) else 1.0


def _aged(now: Now, phase: Phase, _: int) -> float:
    return 1 / (1 + now.get("made") / 60_000) if kind(phase) in {"create", "remove"} else 1.0


def _age(now: Now, phase: Phase | None, _: int, amount: float, _seconds: float) -> None:
    if phase and kind(phase) == "create":
        now.values["made"] = now.get("made") + amount


def _small_file(phase: Phase) -> bool:
    return isinstance(phase, TransferPhase) and phase.block_bytes * phase.segments <= 4 * MIB


def _served_small(_: Now, phase: Phase, _ranks: int) -> float:
    return 2.5 if kind(phase) == "read" and _small_file(phase) else 1.0


def _targets(now: Now, phase: Phase, ranks: int) -> float:
    """Four targets of 150 MiB/s, one of 82; files go to one after the other, and the slowest one ends a phase."""
    if not isinstance(phase, TransferPhase):
        return 1.0
    first = int(now.lot * 4)
    files = [(first + number) % 4 for number in range(ranks)] if phase.layout == "file-per-process" else [0, 1, 2, 3]
    slowest_s = max(files.count(target) / (82.0 if target == 0 else 150.0) for target in range(4))
    return min(400.0, len(files) / slowest_s) / 400.0


def _failover(now: Now, phase: Phase, _: int) -> float:
    if 52 <= now.at_s < 63:
        return 0.03
    return 0.9 if now.at_s >= 63 and not _data(phase) else 1.0


def _collected(now: Now, phase: Phase, _: int) -> float:
    if now.get("since") < 1.2 * GIB:
        return 1.0
    return {"write": 0.42, "read": 0.7}.get(kind(phase), 1.0)


def _collect(now: Now, phase: Phase | None, _: int, amount: float, _seconds: float) -> None:
    if phase and kind(phase) == "write":
        now.values["since"] = (now.get("since") + amount) % (1.5 * GIB)


def _nothing() -> tuple[Fifth, ...]:
    equal = Shape(write=300 * MIB, read=300 * MIB, operation=6000)
    slow = Shape(write=45 * MIB, read=45 * MIB, operation=160)
    four = {f"oss{number}": 0.5 for number in range(4)}
    about = "everything is alike at all times: "
    return (
        Fifth("equal, local", True, f"{about}300 MiB/s and 6,000 operations/s", NOTHING_FALSE, equal, nothing=True, never=NO_ADVICE),
        Fifth("equal, four servers", True, f"{about}the same, on four servers that are alike", NOTHING_FALSE, equal, nothing=True,
              remote=True, servers=four, never=NO_ADVICE),
        Fifth("equal, slow disks", True, f"{about}45 MiB/s and 160 operations/s", NOTHING_FALSE, slow, nothing=True, never=NO_ADVICE),
    )  # fmt: skip


def _shapes() -> tuple[Fifth, ...]:
    return (
        Fifth("small calls cost a fifth", True, "64 KiB writes reach 0.81 of 1 MiB ones, reads 0.92; ranks are alike",
              ("64 KiB is enough for writes", "reads need more than 64 KiB beyond a tenth", "more ranks are better"),
              Shape(half_write=16 * 1024, half_read=6 * 1024),
              never=(Never(r"64 KiB transfers suffice for buffered writes|transfer size, writes = 64 KiB", "moderate", "0.81"),
                     Never(r"of this node still grow", "severe", "ranks are alike")),
              shown=(("buffered/65536:write", "buffered/1048576:write"),)),
        Fifth("writers scale softly", True, "writes by 1, 2, 4, 8 ranks 0.34, 0.63, 1, 1.25; reads 0.55, 0.85, 1, 1.03",
              ("1, 2 or 4 ranks suffice for writing", "reads still grow at 8", "one rank suffices for reading"),
              Shape(write_ranks={1: 0.34, 2: 0.63, 4: 1, 8: 1.25}, read_ranks={1: 0.55, 2: 0.85, 4: 1, 8: 1.03}),
              never=(Never(r"reads .*still grow", "moderate", "1.03"),),
              shown=((r"node/[48]:write", r"node/[124]:write"),)),
        Fifth("eight readers collapse", True, "reads by 1, 2, 4, 8 ranks 0.4, 0.75, 1, 0.62 (incast); writes 0.8, 0.95, 1, 0.97",
              ("reads still grow at 8", "8 ranks are enough for reading", "writes still grow"),
              Shape(read_ranks={1: 0.4, 2: 0.75, 4: 1, 8: 0.62}, write_ranks={1: 0.8, 2: 0.95, 4: 1, 8: 0.97}),
              never=(Never(r"still grow", "severe", "reads fall at 8, writes are flat"),),
              shown=((r"node/4:read", r"node/[128]:read"),)),
        Fifth("one directory is one lock", True, "four ranks in one directory reach 0.62 of a directory each; one rank 0.45 of four",
              ("one shared directory is fine", "sharing a directory costs nothing"),
              Shape(shared_directory=0.62, name_ranks={1: 0.45, 4: 1, 16: 1.05}),
              never=(Never(r"one shared directory is fine", "severe", "0.62"),),
              shown=(("unique/4:file-create", "shared/4:file-create"),)),
        Fifth("locks of extents", True, "segments of a shared file are written at 0.72 of own files, strided at 0.6 of that; reads alike",
              ("sharing a file costs little when writing", "strides cost little when writing", "reads suffer, too"),
              Shape(shared_write=0.72, strided_write=0.6),
              never=(Never(r"^(Writing segments|Strided writes).*cost(s)? little", "severe", "0.72 and 0.6"),),
              shown=(("sfsa-strided/1048576:write", "sfsa/1048576:write"), ("sfsa/1048576:write", "mfwa/1048576:write"))),
        Fifth("read-ahead helps small calls", True, "buffered calls of all sizes alike; O_DIRECT ones of 1 MiB reach half of large ones; no cache",
              ("a cache answered", "buffered calls have to be larger than 64 KiB"),
              Shape(half_direct=MIB, direct_read=0.92),
              never=(Never(r"cache, not|answered from (memory|a cache)", "severe", "the device read every byte"),),
              shown=(("buffered/1048576:read", "direct/1048576:read"),)),
        Fifth("one stream is slow", True, "writes by 1, 2, 4, 8 ranks 0.28, 0.55, 1, 1; reads 0.52, 1, 1, 1",
              ("writes still grow at 8", "2 ranks suffice for writing", "reads need 4", "one rank suffices"),
              Shape(write_ranks={1: 0.28, 2: 0.55, 4: 1, 8: 1}, read_ranks={1: 0.52, 2: 1, 4: 1, 8: 1}),
              never=(Never(r"still grow", "severe", "4 and 2 suffice"), Never(r"^reads.*needs? more than 2", "severe", "2 suffice")),
              shown=((r"node/[248]:write", r"node/[12]:write"),)),
    )  # fmt: skip


def _changes() -> tuple[Fifth, ...]:
    four = {f"oss{number}": 0.5 for number in range(4)}
    one_slow = {"oss0": 1.0, "oss1": 0.55, "oss2": 0.55, "oss3": 0.55}
    turns = r"not-stationary|takes? turns|dependent-runs|bimodal"
    return (
        Fifth("journal commits", True, "every 5 s for 0.7 s writes are at 0.35, creating and removing at 0.45; reads never",
              ("reads are slowed", "writing became slower at some moment and stayed so", "more ranks or larger calls are better"),
              factor=_commit, luck=True, cause=(turns,), never=(NO_ADVICE[0], NO_ADVICE[1])),
        Fifth("burst bucket of bytes", True, "3 GiB at 1,000 MiB/s, refilled by 100 MiB/s; without credit a third; reads and writes share it",
              ("1,000 MiB/s last", "a setting of reads or writes is better than another", "names became slower"),
              Shape(write=1000 * MIB, read=1000 * MIB), factor=_bucket, advance=_pay_bytes, cause=(turns, "fresh"),
              never=(NO_ADVICE[0], NO_ADVICE[1])),
        Fifth("credits of operations", True, "25,000 operations at 12,000/s, refilled by 300/s; without credit 3,000/s; data unhurt",
              ("12,000 creates/s last", "shared and own directories differ", "reads or writes changed"),
              Shape(operation=12_000), factor=_credits, advance=_pay_names, cause=(turns, "fresh"), never=(NO_ADVICE[0], NO_ADVICE[1])),
        Fifth("flash buffer fills", True, "2 GiB are written at 1,400 MiB/s, then 380; 40 MiB/s come back while nobody writes",
              ("1,400 MiB/s last", "reads changed", "a size or number of ranks of writes is better"),
              Shape(write=1400 * MIB, read=900 * MIB), factor=_cells, advance=_fill_cells, cause=(turns, "fresh"),
              never=(NO_ADVICE[0], NO_ADVICE[1])),
        Fifth("a neighbour's checkpoint", True, "from 46 s to 68 s data at 0.5 and names at 0.85",
              ("a setting is better", "the change came at another time or stayed", "names changed as much as data"),
              factor=_checkpoint, cause=(turns,), never=(NO_ADVICE[0], NO_ADVICE[1])),
        Fifth("a backup scans names", True, "from 58 s on names at 0.6, data at 0.97",
              ("data changed by more than a twentieth", "names are one median", "a setting is better"),
              factor=_scan, cause=(turns,), never=(NO_ADVICE[0], NO_ADVICE[1])),
        Fifth("rebalancing ends", True, "data grow from 0.72 to 1 within 110 s; names alike",
              ("names drift", "a setting is better", "data jump at one moment by a quarter"),
              factor=_rebalanced, cause=(turns, "drift"), never=(NO_ADVICE[0], NO_ADVICE[1])),
        Fifth("directories age", True, "creating and removing take 1 + made / 60,000 times as long; data alike",
              ("one figure of creating holds", "data change", "the churned directory itself is the cause"),
              factor=_aged, advance=_age, cause=(turns, "drift", "fresh"), never=(NO_ADVICE[0],)),
        Fifth("small files from servers' memory", True, "files up to 4 MiB are read from servers' caches, 2.5 times as fast; storage counts none of it",
              ("more ranks read faster: only their smaller files do", "reads are as fast as the storage gives"),
              factor=_served_small, remote=True, servers=four, cached=lambda phase: float(_small_file(phase)), cause=("cache-suspect",),
              never=(Never(r"reads of this node (still|need)|^reads need more than|processes per node, reads = [248]", "moderate", "smaller files were cached"),)),
        Fifth("one target of four is slow", True, "targets of 150 MiB/s, one of 82; files in turn; 1, 2 ranks are lucky or not, 4 and 8 reach 0.82",
              ("8 ranks are better than 4", "all servers are alike", "one rank suffices"),
              factor=_targets, luck=True, remote=True, servers=one_slow, cause=("server-unlike", turns),
              never=(Never(r"still grow", "severe", "4 and 8 are alike"),)),
        Fifth("failover for eleven seconds", True, "from 52 s to 63 s everything at 0.03, afterwards names at 0.9",
              ("the file system is bimodal at all times", "data changed for good", "a setting is better"),
              factor=_failover, cause=(turns,), never=(NO_ADVICE[0], NO_ADVICE[1])),
        Fifth("flash collects garbage", True, "after 1.2 GiB written, for 0.3 GiB more writes are at 0.42 and reads at 0.7",
              ("names change", "a setting is better", "writing became slower for good"),
              factor=_collected, advance=_collect, cause=(turns,), never=(NO_ADVICE[0], NO_ADVICE[1])),
    )  # fmt: skip


@cache
def fifth() -> tuple[Fifth, ...]:
    """All truths of the set."""
    return (*_nothing(), *_shapes(), *_changes(), *adversarial())


def truth_named(name: str) -> Fifth:
    return next(truth for truth in fifth() if truth.name == name)

"""What a Darshan log tells of an application, and what it cannot. Reading it takes PyDarshan; judging it does not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from strakes.advise.app import App, AppPhase, Files, Interface, Operation
from strakes.errors import BadInputError, EnvironmentLacksError
from strakes.units import GIB, KIB, MIB

# The modules whose counters are records of files, the lowest first: what a library does is seen again below it.
_MODULES = ("POSIX", "MPI-IO")
# Darshan counts calls by size in these classes; a class stands for its upper end.
_CLASSES = {
    "0_100": 100,
    "100_1K": KIB,
    "1K_10K": 10 * KIB,
    "10K_100K": 100 * KIB,
    "100K_1M": MIB,
    "1M_4M": 4 * MIB,
    "4M_10M": 10 * MIB,
    "10M_100M": 100 * MIB,
    "100M_1G": GIB,
    "1G_PLUS": GIB,
}
# In records of files that all ranks share Darshan adds them up and calls the rank -1.
_ALL_RANKS = -1
# What is less than this part of all data is not described.
_TOO_LITTLE = 0.02


@dataclass(frozen=True)
class FileRecord:
    """One file in one module; ``rank`` is -1 where all ranks are added up.

    ``calls``: upper size -> reads or writes of that class. ``time_s``: in reads, writes and metadata; of the slowest
    rank where all are added up.
    """

    file: int
    rank: int
    read_bytes: int
    written_bytes: int
    read_calls: Mapping[int, int]
    write_calls: Mapping[int, int]
    collective: bool = False
    time_s: float = 0.0


@dataclass(frozen=True)
class LogFacts:
    """What is taken from a log.

    ``modules`` are those that saw anything, ``partial`` those whose memory was full too early.
    """

    program: str
    ranks: int
    run_s: float
    modules: tuple[str, ...]
    posix: tuple[FileRecord, ...]
    mpiio: tuple[FileRecord, ...] = ()
    partial: tuple[str, ...] = ()

    @property
    def io_s(self) -> float:
        """How long the slowest rank read, wrote, opened and closed: the most that a faster file system could save."""
        return min(self.run_s, max(_slowest_rank_s(self.posix), _slowest_rank_s(self.mpiio)))

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written below all libraries."""
        return sum(record.read_bytes + record.written_bytes for record in self.posix or self.mpiio)


def _slowest_rank_s(records: Sequence[FileRecord]) -> float:
    own_s: dict[int, float] = {}
    for record in records:
        own_s[record.rank] = own_s.get(record.rank, 0.0) + record.time_s
    shared_s = own_s.pop(_ALL_RANKS, 0.0)
    return shared_s + max(own_s.values(), default=0.0)


def read_logs(directory: Path) -> tuple[list[tuple[Path, LogFacts]], list[BadInputError]]:
    """Read every log below a directory, the one with the most time in I/O first, and what is wrong with those that
    cannot be read.

    Raises BadInputError for a directory without a log, EnvironmentLacksError without PyDarshan.
    """
    paths = sorted(path for path in directory.rglob("*.darshan") if path.is_file())
    if not paths:
        remedy = "Give a directory of files called NAME.darshan."
        raise BadInputError("there is no Darshan log in this directory", where=str(directory), remedy=remedy)
    logs, errors = [], []
    for path in paths:
        try:
            logs.append((path, read_log(path)))
        except BadInputError as error:
            errors.append(error)
    return sorted(logs, key=lambda log: (-log[1].io_s, log[0])), errors


def read_log(path: Path) -> LogFacts:
    """Read it. Raises EnvironmentLacksError without PyDarshan, BadInputError for what is no log it can read."""
    if not path.is_file():
        raise BadInputError(
            "the Darshan log does not exist", where=str(path), remedy="Give a file written by Darshan (NAME.darshan)."
        )
    try:
        from darshan import DarshanReport
    except ImportError as error:
        raise EnvironmentLacksError(
            "Darshan logs cannot be read here", why=str(error), remedy="pip install 'strakes[darshan]'"
        ) from error
    try:
        report = DarshanReport(str(path), read_all=False)
        metadata = report.metadata["job"]
        modules = tuple(report.modules)
        for module in set(_MODULES) & set(modules):
            report.mod_read_all_records(module, dtype="pandas")
        records = {module: _records(report, module) if module in modules else () for module in _MODULES}
    except (RuntimeError, ValueError, KeyError, OSError) as error:
        remedy = "Check the file with darshan-parser."
        raise BadInputError("the Darshan log cannot be read", where=str(path), why=str(error), remedy=remedy) from error
    return LogFacts(
        program=str(report.metadata.get("exe", "")).split(" ")[0].rpartition("/")[2],
        ranks=int(metadata["nprocs"]),
        run_s=float(metadata.get("run_time", 0.0)),
        modules=modules,
        posix=records["POSIX"],
        mpiio=records["MPI-IO"],
        partial=tuple(name for name in _MODULES if name in modules and report.modules[name].get("partial_flag")),
    )


def _records(report: Any, module: str) -> tuple[FileRecord, ...]:
    prefix = module.replace("-", "")
    tables = []
    for table in report.records[module]:
        times = table["fcounters"].to_dict("records")
        for row, time in zip(table["counters"].to_dict("records"), times, strict=True):
            collective = sum(int(row.get(f"{prefix}_{name}", 0)) for name in ("COLL_READS", "COLL_WRITES"))
            tables.append(
                FileRecord(
                    file=int(row["id"]),
                    rank=int(row["rank"]),
                    read_bytes=max(0, int(row[f"{prefix}_BYTES_READ"])),
                    written_bytes=max(0, int(row[f"{prefix}_BYTES_WRITTEN"])),
                    read_calls=_calls(row, prefix, "READ"),
                    write_calls=_calls(row, prefix, "WRITE"),
                    collective=collective > 0,
                    time_s=_time_s(time, prefix, shared=int(row["rank"]) == _ALL_RANKS),
                )
            )
    return tuple(tables)


def _time_s(row: Mapping[str, Any], prefix: str, *, shared: bool) -> float:
    slowest = float(row.get(f"{prefix}_F_SLOWEST_RANK_TIME", 0.0))
    if shared and slowest > 0:
        return slowest
    return sum(max(0.0, float(row.get(f"{prefix}_F_{name}_TIME", 0.0))) for name in ("READ", "WRITE", "META"))


def _calls(row: Mapping[str, Any], prefix: str, operation: str) -> dict[int, int]:
    aggregated = "_AGG" if prefix == "MPIIO" else ""
    counts: dict[int, int] = {}
    for name, size in _CLASSES.items():
        if number := int(row.get(f"{prefix}_SIZE_{operation}{aggregated}_{name}", 0)):
            counts[size] = counts.get(size, 0) + number
    return counts


def app_of(facts: LogFacts) -> tuple[App, tuple[str, ...]]:
    """Return the description, and what the log does not tell.

    Raises BadInputError for a log of a program that moved no data.
    """
    interface = _interface(facts.modules)
    # A program's own calls are those of its library; POSIX below it shows what aggregators did.
    records = facts.mpiio if interface != "posix" and facts.mpiio else facts.posix
    total = sum(record.read_bytes + record.written_bytes for record in records)
    if total == 0:
        why = f"modules in the log: {', '.join(facts.modules) or 'none'}"
        remedy = "Give the log of a job that did I/O through POSIX or MPI-IO."
        raise BadInputError("the Darshan log has no reads or writes", why=why, remedy=remedy)
    phases: list[AppPhase] = []
    remarks = [
        (
            "A Darshan log does not say: ranks_per_node (assumed: all ranks on one node), grouping, and when the "
            "program reads."
        ),
        "Darshan counts call sizes in classes: record_size is the upper end of the most frequent ones.",
    ]
    if facts.partial:
        remarks.append(
            f"The log is partial: Darshan's memory for {' and '.join(facts.partial)} was full, so files that were "
            "opened later are missing "
            "and amounts are too low. Run the job again with more (DARSHAN_MODMEM, or MODMEM in its configuration)."
        )
    for operation in ("write", "read"):
        for files in ("shared", "per-process"):
            phase = _phase(facts, records, operation, files, total, interface)
            if phase is not None:
                phases.append(phase)
    left = 1 - sum(phase.share or 0.0 for phase in phases)
    if left > _TOO_LITTLE / 10:
        remarks.append(f"{left:.1%} of the data belongs to small phases, which are left out.")
    if any(record.rank == _ALL_RANKS for record in records):
        remarks.append(
            'For shared files Darshan keeps only sums; whether all ranks read a whole file (files = "same") is '
            "inferred from the amounts."
        )
    shares = [replace(phase, share=None) for phase in phases] if left > 0.005 else phases
    if len(shares) > 1 and shares[0].share is not None:
        remarks.append("share is a share of the data, not of the time.")
    return App(facts.program or "application", interface, facts.ranks, facts.ranks, tuple(shares)), tuple(remarks)


def _interface(modules: Sequence[str]) -> Interface:
    if any(name.startswith("PNETCDF") for name in modules):
        return "pnetcdf"
    if any(name.startswith("H5") for name in modules):
        return "hdf5"
    return "mpiio" if "MPI-IO" in modules else "posix"


def _phase(
    facts: LogFacts, records: Sequence[FileRecord], operation: Operation, files: Files, total: int, interface: Interface
) -> AppPhase | None:
    """Return all of one kind together; None where there is too little of it."""
    sharers: dict[int, set[int]] = {}
    for record in records:
        sharers.setdefault(record.file, set()).add(record.rank)
    shared = {file for file, ranks in sharers.items() if ranks == {_ALL_RANKS} or len(ranks) > 1}
    # The only rank of a program shares with nobody.
    chosen = [
        record
        for record in records
        if ((record.file in shared) == (files == "shared")) or (facts.ranks == 1 and files == "per-process")
    ]
    if facts.ranks == 1 and files == "shared":
        return None
    moved = sum(_bytes(record, operation) for record in chosen)
    if moved < _TOO_LITTLE * total:
        return None
    ranks = {record.rank for record in chosen if _bytes(record, operation) and record.rank != _ALL_RANKS}
    gathered = files == "per-process" and ranks == {0} and facts.ranks > 1
    calls: dict[int, int] = {}
    for record in chosen:
        for size, number in (record.write_calls if operation == "write" else record.read_calls).items():
            calls[size] = calls.get(size, 0) + number
    data = math.ceil(moved / facts.ranks)
    frequent = sorted(calls, key=lambda size: (-calls[size], size))
    kept = tuple(min(size, data) for size in frequent if calls[size] >= 0.1 * sum(calls.values()))
    return AppPhase(
        name=f"{operation}, {'rank 0' if gathered else files}",
        operation=operation,
        files="gathered" if gathered else files,
        data_bytes=data,
        record_bytes=tuple(dict.fromkeys(kept)),
        share=round(moved / total, 4),
        collective=files == "shared" and interface != "posix" and any(record.collective for record in chosen),
    )


def _bytes(record: FileRecord, operation: Operation) -> int:
    return record.written_bytes if operation == "write" else record.read_bytes

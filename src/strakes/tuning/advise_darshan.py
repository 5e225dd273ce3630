"""Read Darshan logs, and describe an application from them."""

from __future__ import annotations

import math
import os
import resource
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Any, get_args

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.base.file_kinds import refuse_other_kind
from strakes.base.interrupts import limited
from strakes.base.processes import ending
from strakes.base.units import GIB, KIB, MIB, MOST, format_bytes
from strakes.tuning.advise_app import App, AppPhase, Files, Interface, Operation

# Darshan's modules for the lowest layer. They also count the calls of MPI-IO, as POSIX calls or DFS calls.
_SYSTEM_MODULES = ("POSIX", "STDIO", "DFS")
_COUNTED_MODULES = (*_SYSTEM_MODULES, "MPI-IO")
# Upper ends, in bytes, of the size classes in which Darshan counts calls.
_CALL_CLASSES = {
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
_LAYOUTS: tuple[Files, ...] = ("shared", "per-process")
_OPERATIONS: tuple[Operation, ...] = get_args(Operation)
# Rank number of records with sums over all ranks. Darshan writes such a record for a file that all ranks share.
_ALL_RANKS = -1
# The description of the application omits phases with less than this share of all data.
_SMALL_SHARE = 0.02
_SUMMARY = ("program", "ranks", "run_s", "io_s", "moved_bytes", "partial", "modules")
# Time limits in seconds: for one log, and for all logs of a directory. Reading a damaged log may never end.
_MOST_READ_S, _MOST_DIRECTORY_S = 300.0, 3600.0


@dataclass(frozen=True)
class FileRecord:
    """Counters of one file in one Darshan module, such as POSIX. ``rank``: -1 for sums over all ranks.

    ``read_calls``, ``write_calls``: number of calls by upper end of a size class. ``time_s``: seconds in reads, writes
    and metadata calls, of the slowest rank if ``rank`` is -1.
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
    """Facts from a Darshan log.

    ``modules``: Darshan modules (POSIX, ...) with records. ``records``: file records by module. ``partial``: modules
    with missing records, because they ran out of memory.
    """

    program: str
    ranks: int
    run_s: float
    modules: tuple[str, ...]
    records: Mapping[str, tuple[FileRecord, ...]] = field(default_factory=dict)
    partial: tuple[str, ...] = ()

    def of(self, *modules: str) -> tuple[FileRecord, ...]:
        """Return the records of files in these modules."""
        return tuple(record for name in modules for record in self.records.get(name, ()))

    @property
    def io_s(self) -> float:
        """Seconds that the slowest rank spent in I/O."""
        slowest_s = (_slowest_rank_s(self.of(*names)) for names in (_SYSTEM_MODULES, ("MPI-IO", "STDIO")))
        return min(self.run_s, max(slowest_s))

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written, as counted by the lowest recorded layer."""
        return _moved(self.of(*_SYSTEM_MODULES)) or _moved(self.of("MPI-IO"))

    @property
    def sieved(self) -> str:
        """A sentence on data sieving, or "" if MPI-IO moved about as many bytes as the program asked for."""
        asked, below = self.of("MPI-IO"), self.posix(of_mpiio=True)
        moved = [[sum(_bytes(one, kind) for one in records) for kind in _OPERATIONS] for records in (asked, below)]
        extra = sum(max(0, there - here) for here, there in zip(*moved, strict=True))
        if not _moved(asked) or extra <= _SMALL_SHARE * _moved(asked):
            return ""
        return (
            f"The program asked MPI-IO for {format_bytes(_moved(asked))}, and {format_bytes(_moved(below))} were "
            "moved: data sieving reads and writes whole buffers around small pieces. Use collective calls, or "
            "the hints romio_ds_read=disable and romio_ds_write=disable."
        )

    def posix(self, *, of_mpiio: bool) -> tuple[FileRecord, ...]:
        """Return the POSIX records of files that MPI-IO also accessed (``of_mpiio``), or of all other files."""
        files = {record.file for record in self.of("MPI-IO")}
        return tuple(record for record in self.of("POSIX") if (record.file in files) == of_mpiio)


def _moved(records: Sequence[FileRecord]) -> int:
    return sum(record.read_bytes + record.written_bytes for record in records)


def _slowest_rank_s(records: Sequence[FileRecord]) -> float:
    own_s: defaultdict[int, float] = defaultdict(float)
    for record in records:
        own_s[record.rank] += record.time_s
    return own_s.pop(_ALL_RANKS, 0.0) + max(own_s.values(), default=0.0)


def read_logs(directory: Path) -> tuple[list[dict[str, Any]], list[BadInputError]]:
    """Return a summary of each log below a directory, longest I/O time first, and an error for each unreadable log.

    Raises BadInputError for a directory without a log, EnvironmentLacksError without PyDarshan.
    """
    logs, errors, ends_s = list[dict[str, Any]](), list[BadInputError](), monotonic() + _MOST_DIRECTORY_S
    what, where = "the directory has too many files", str(directory)
    with limited(_MOST_DIRECTORY_S, lambda why: BadInputError(what, where=where, why=why, remedy="Give a part of it.")):
        paths = sorted(_logs_below(directory, errors))
    for path in paths:
        if monotonic() > ends_s:
            why = f"the logs before it took more than {_MOST_DIRECTORY_S / 3600:g} h"
            errors.append(BadInputError("this Darshan log and those after it are not read", where=str(path), why=why))
            break
        try:
            facts = read_log(path)
        except BadInputError as error:
            errors.append(error)
        else:  # Records of all logs take too much memory.
            counted = any(facts.records.values())
            logs.append({"log": str(path), **{key: getattr(facts, key) for key in _SUMMARY}, "counted": counted})
    if not paths and not errors:
        remedy = "Give a directory of files called NAME.darshan."
        raise BadInputError("no Darshan log in this directory", where=where, remedy=remedy)
    return sorted(logs, key=lambda log: (-log["io_s"], log["log"])), errors


def _logs_below(directory: Path, errors: list[BadInputError]) -> Iterator[Path]:
    waiting = [directory]  # Path.rglob recurses, and fails if directories are deeply nested.
    for place in waiting:
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry))
                    elif entry.name.endswith(".darshan"):
                        yield Path(entry)
        except OSError as error:
            errors.append(BadInputError("this directory cannot be read", where=str(place), why=error.strerror or ""))


def read_log(path: Path) -> LogFacts:
    """Return the facts in a log. A child process reads it, because PyDarshan's C library crashes on damaged logs.

    Raises EnvironmentLacksError without PyDarshan, BadInputError for a file that PyDarshan cannot read.
    """
    if not path.is_file():
        remedy = "Give a file written by Darshan (NAME.darshan)."
        raise BadInputError("the Darshan log does not exist", where=str(path), remedy=remedy)
    # Use few threads, because BLAS reserves address space for each one, and the child's address space is limited.
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if find_spec("darshan") is None:
        why, remedy = "PyDarshan is not installed", "pip install 'strakes[darshan]'"
        raise EnvironmentLacksError("strakes cannot read Darshan logs on this machine", why=why, remedy=remedy)
    import darshan  # noqa: F401 (children inherit the import)

    fork = get_context("fork")
    answers, end = fork.Pipe(duplex=False)
    child = fork.Process(target=_answer, args=(path, end), daemon=True)
    child.start()
    end.close()
    why = f"PyDarshan did not finish within {_MOST_READ_S:g} s"
    try:
        if answers.poll(_MOST_READ_S):
            answer: LogFacts | str = answers.recv()
            if isinstance(answer, LogFacts):
                return answer
            why = answer
    except EOFError:
        child.join()
        why = f"PyDarshan ended: {ending(child.exitcode or 0)}"
    finally:
        child.kill()
        child.join()
    refuse_other_kind(path, "darshan", "a Darshan log")
    remedy = "Copy the file again, or leave it out; darshan-parser shows where the file ends."
    raise BadInputError("the Darshan log is damaged", where=str(path), why=why, remedy=remedy)


def _answer(path: Path, answers: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)
    try:
        with limited(_MOST_READ_S, BadInputError):
            answers.send(_facts(str(path)))
    except (AttributeError, LookupError, TypeError):
        answers.send("PyDarshan found parts missing")
    except Exception as error:  # noqa: BLE001 (PyDarshan raises whatever numpy and cffi raise)
        answers.send(error.what if isinstance(error, BadInputError) else f"{type(error).__name__}: {error}")


def _facts(path: str) -> LogFacts:
    from darshan import DarshanReport

    report = DarshanReport(path, read_all=False)
    metadata = report.metadata["job"]
    modules = tuple(report.modules)
    counted = [name for name in _COUNTED_MODULES if name in modules]
    for name in counted:
        report.mod_read_all_records(name, dtype="pandas")
    facts = LogFacts(
        program=str(report.metadata.get("exe", "")).split(" ")[0].rpartition("/")[2],
        ranks=int(metadata["nprocs"]),
        run_s=max(0.0, float(metadata.get("run_time", 0.0))),
        modules=modules,
        records={name: _records(report, name) for name in counted},
        partial=tuple(name for name in counted if report.modules[name].get("partial_flag")),
    )
    if not 1 <= facts.ranks <= MOST or facts.moved_bytes > MOST:
        raise BadInputError("its number of ranks or of bytes is impossible")
    return facts


def _records(report: Any, module: str) -> tuple[FileRecord, ...]:
    prefix = module.replace("-", "")
    records = []
    for table in report.records[module]:
        times = table["fcounters"].to_dict("records")
        for row, time in zip(table["counters"].to_dict("records"), times, strict=True):
            collective = sum(int(row.get(f"{prefix}_{name}", 0)) for name in ("COLL_READS", "COLL_WRITES"))
            records.append(
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
    return tuple(records)


def _time_s(row: Mapping[str, Any], prefix: str, *, shared: bool) -> float:
    slowest = float(row.get(f"{prefix}_F_SLOWEST_RANK_TIME", 0.0))
    if shared and slowest > 0:
        return slowest
    return sum(max(0.0, float(row.get(f"{prefix}_F_{name}_TIME", 0.0))) for name in ("READ", "WRITE", "META"))


def _calls(row: Mapping[str, Any], prefix: str, operation: str) -> dict[int, int]:
    if prefix == "STDIO":
        # Darshan has no size classes for STDIO, so use the mean size of the calls.
        calls = max(0, int(row.get(f"STDIO_{operation}S", 0)))
        moved = max(0, int(row["STDIO_BYTES_READ" if operation == "READ" else "STDIO_BYTES_WRITTEN"]))
        return {max(1, round(moved / calls)): calls} if calls else {}
    aggregated = "_AGG" if prefix == "MPIIO" else ""
    counts: Counter[int] = Counter()
    for name, size in _CALL_CLASSES.items():
        counts[size] += max(0, int(row.get(f"{prefix}_SIZE_{operation}{aggregated}_{name}", 0)))
    return {size: number for size, number in counts.items() if number}


def app_of(facts: LogFacts) -> tuple[App, tuple[str, ...]]:
    """Return the description of the application in a log, and remarks on what the log does not show.

    Raises BadInputError for a log without reads and writes.
    """
    interface = _interface(facts.modules)
    # For files of MPI-IO, use its counters. Darshan's POSIX counters show the calls of MPI-IO's aggregators.
    by_library = interface != "posix" and bool(facts.of("MPI-IO"))
    other = facts.posix(of_mpiio=False) if by_library else ()
    records = (*facts.of("MPI-IO", "STDIO"), *other) if by_library else facts.of(*_SYSTEM_MODULES)
    total = _moved(records)
    if total == 0:
        why = f"modules in the log: {', '.join(facts.modules) or 'none'}"
        remedy = "Give the log of a job that did I/O through POSIX, STDIO, DFS or MPI-IO."
        raise BadInputError("the Darshan log has no reads or writes", why=why, remedy=remedy)
    remarks = [
        "A Darshan log does not say: ranks_per_node (assumed: all ranks on one node) and grouping.",
        "Darshan counts call sizes in classes: record_size is the upper end of the most frequent ones.",
    ]
    if facts.partial:
        remarks.append(
            f"The log is partial: Darshan's memory for {' and '.join(facts.partial)} was full, so later files are "
            "missing and amounts are too low. Run it again with more (DARSHAN_MODMEM, or MODMEM in its configuration)."
        )
    if facts.sieved:
        remarks.append(facts.sieved)
    stdio = _moved(facts.of("STDIO"))
    if stdio > _SMALL_SHARE * total:
        remarks.append(
            f"{format_bytes(stdio)} went through STDIO, which has no classes of call sizes: record_size is their mean, "
            "and libc gathers calls in a buffer."
        )
    if _moved(other) > _SMALL_SHARE * total:
        remarks.append(f"{format_bytes(_moved(other))} in files without MPI-IO went through POSIX, not {interface}.")
    kinds = product(_OPERATIONS, _LAYOUTS)
    found = [_phase(facts, records, operation, files, total, interface) for operation, files in kinds]
    phases = [phase for phase in found if phase is not None]
    left = 1 - sum(phase.share or 0.0 for phase in phases)
    if left > _SMALL_SHARE / 10:
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
    alone = facts.ranks == 1
    sharers: defaultdict[int, set[int]] = defaultdict(set)
    for record in records:
        sharers[record.file].add(record.rank)
    shared = {file for file, ranks in sharers.items() if not alone and (ranks == {_ALL_RANKS} or len(ranks) > 1)}
    chosen = [record for record in records if (record.file in shared) == (files == "shared")]
    moved = sum(_bytes(record, operation) for record in chosen)
    if not chosen or moved < _SMALL_SHARE * total:
        return None
    ranks = {record.rank for record in chosen if _bytes(record, operation) and record.rank != _ALL_RANKS}
    gathered = files == "per-process" and ranks == {0} and not alone
    calls: Counter[int] = Counter()
    for record in chosen:
        calls.update(record.write_calls if operation == "write" else record.read_calls)
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

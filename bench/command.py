"""The command: measures the engine beside the floor and its peers, prints the table and writes docs/performance.md."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from bench import instructions, kept
from bench.bars import compare
from bench.contenders import Contender, Floor
from bench.engine import Engine
from bench.measure import measure
from bench.memory import footprints
from bench.page import Page, render
from bench.pattern import speeds
from bench.peers import found_peers
from bench.places import Place, given_places, own_places
from bench.schedule import lags
from bench.work import FULL, QUICK, works_at
from strakes.errors import StrakesError
from strakes.launch.local import LocalEngine

_PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
_FULL_BLOCKS = 9
_QUICK_BLOCKS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when no bar was missed, 1 otherwise."""
    parser = argparse.ArgumentParser(
        prog="bench", description="The engine's rates over those of a minimal C loop and of its peers."
    )
    parser.add_argument("--quick", action="store_true", help="a third of the work: for a look, not for the page")
    parser.add_argument(
        "--blocks", type=int, help=f"repetitions (default: {_FULL_BLOCKS}; with --quick {_QUICK_BLOCKS})"
    )
    parser.add_argument(
        "--out", type=Path, help="where the page goes (default: docs/performance.md; with --quick nowhere)"
    )
    parser.add_argument(
        "--at", action="append", default=[], metavar="NAME=DIR", help="measure there instead of on an own tmpfs and XFS"
    )
    parser.add_argument(
        "--mpiexec", default="mpiexec", help="launcher of the MPI that IOR and mdtest are built with (default: on PATH)"
    )
    parser.add_argument(
        "--add-to",
        type=Path,
        metavar="FILE",
        help="keep the measured blocks there, and count those that are there already",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random order (default: 1)")
    parser.add_argument(
        "--instructions",
        action="store_true",
        help="only count instructions per operation (valgrind): docs/instructions.md",
    )
    chosen = parser.parse_args(arguments)
    if chosen.instructions:
        return _count_instructions(chosen.out or instructions.PAGE)
    try:
        page = _bench(chosen)
    except StrakesError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.exit_status
    text = render(page)
    print(text)
    out = chosen.out or (None if chosen.quick else _PAGE)
    if out is not None:
        out.write_text(text)
    return int(any(comparison.verdict == "missed" for comparison in page.all_asked()))


def _count_instructions(out: Path) -> int:
    text = instructions.render(instructions.per_operation(), out.read_text() if out.exists() else "")
    print(text)
    out.write_text(text)
    return 0


def _bench(chosen: argparse.Namespace) -> Page:
    amounts = QUICK if chosen.quick else FULL
    started = datetime.now(UTC)
    load_before = os.getloadavg()[0]
    results = kept.load(chosen.add_to) if chosen.add_to else {}
    first = kept.blocks_of(results)
    usual = _QUICK_BLOCKS if chosen.quick else _FULL_BLOCKS
    last = first + (usual if chosen.blocks is None else chosen.blocks)
    with ExitStack() as stack:
        places = stack.enter_context(_places(chosen.at, 2 * amounts.largest_bytes))
        build = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strakes-bench-")))
        local_engine = stack.enter_context(LocalEngine())
        plain, stamped = Engine(local_engine, stamped=False), Engine(local_engine, stamped=True)
        peers, absent = found_peers(chosen.mpiexec)
        floors = [Floor(build, through_library=False), Floor(build, through_library=True)]
        contenders: list[Contender] = [*floors, plain, stamped, *peers]
        works = [work for place in places for work in works_at(place, amounts)]
        clock = time.monotonic()

        def say(done: int) -> None:
            print(f"block {done + 1} of {last}, {time.monotonic() - clock:.0f} s", file=sys.stderr, flush=True)

        for series, rates in measure(
            works, contenders, {place.name: place for place in places}, range(first, last), chosen.seed, say
        ).items():
            results[series] = {**results.get(series, {}), **rates}
        if chosen.add_to:
            kept.save(chosen.add_to, results)
        page_of = partial(
            Page, footprints=footprints(places[0], quick=chosen.quick), lags=lags(places[0], quick=chosen.quick)
        )
        machine = {
            "measured": f"{started:%Y-%m-%d %H:%M} UTC, {last} blocks, {time.monotonic() - clock:.0f} s for the last "
            "{last - first}",
            "load average before": f"{load_before:.1f}",
            **_machine(),
            **{place.name: place.description for place in places},
            **{contender.name: contender.version for contender in contenders if contender not in (floors[1], stamped)},
        }
        made = speeds(build)
    names = [peer.name for peer in (*floors, *peers)]
    comparisons = {name: compare(results, plain.name, name) for name in names}
    stamps = compare(results, stamped.name, plain.name, asked=False)
    return page_of(comparisons, stamps, speeds=made, machine=machine, absent=absent, blocks=last)


@contextmanager
def _places(given: list[str], largest_bytes: int) -> Iterator[list[Place]]:
    if given:
        yield given_places(given)
    elif os.geteuid() == 0:
        with own_places(largest_bytes) as places:
            yield places
    else:
        raise SystemExit(
            "bench: only root can mount the tmpfs and the XFS it measures on: give directories with --at NAME=DIR"
        )


def _machine() -> Mapping[str, str]:
    processors = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in processors if line.startswith("model name")), "?")
    return {
        "processor": f"{model}, {os.cpu_count()} cores seen",
        "system": platform.freedesktop_os_release()["PRETTY_NAME"],
        "kernel": os.uname().release,
    }

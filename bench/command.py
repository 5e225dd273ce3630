"""The command ``bench``: compare the engine with other programs, print the table and write docs/performance.md."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from bench import instructions, kept
from bench.bars import compare, is_open, look_times
from bench.contenders import Contender, Floor
from bench.engine import Engine
from bench.measure import Results, measure
from bench.memory import footprints
from bench.page import Page, render
from bench.pattern import speeds
from bench.peers import found_peers
from bench.places import Place, given_places, own_places
from bench.schedule import lags
from bench.work import QUICK, SHORT, Work, works_of
from strakes.base.errors import StrakesError
from strakes.runs.engine import LocalEngine

_PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
_FULL_BLOCKS = 144
_QUICK_BLOCKS = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return 0, 1 if a bar (required ratio) was missed, or the exit status of an error."""
    parser = argparse.ArgumentParser(
        prog="bench", description="Compare the engine's rates with a minimal C program and with its peers."
    )
    parser.add_argument("--quick", action="store_true", help="do very little work, to try the bench itself")
    parser.add_argument(
        "--blocks",
        type=int,
        help=f"maximum number of repetitions (default: {_FULL_BLOCKS}; with --quick {_QUICK_BLOCKS})",
    )
    parser.add_argument("--out", type=Path, help="file of the page (default: docs/performance.md; with --quick none)")
    parser.add_argument(
        "--at",
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="measure in DIR instead of on a tmpfs and XFS that the bench mounts",
    )
    parser.add_argument(
        "--mpiexec", default="mpiexec", help="launcher of the MPI that IOR and mdtest are built with (default: on PATH)"
    )
    parser.add_argument(
        "--add-to",
        type=Path,
        metavar="FILE",
        help="keep the measured blocks in FILE, and continue with the blocks that it has",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the random order (default: 1)")
    parser.add_argument(
        "--instructions", action="store_true", help="only count instructions per operation (valgrind) and print them"
    )
    chosen = parser.parse_args(arguments)
    if chosen.instructions:
        print(instructions.table(instructions.per_operation(quick=chosen.quick)))
        return 0
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


def _bench(chosen: argparse.Namespace) -> Page:
    amounts = QUICK if chosen.quick else SHORT
    started = datetime.now(UTC)
    load_before = os.getloadavg()[0]
    results: Results = kept.load(chosen.add_to) if chosen.add_to else {}
    blocks = chosen.blocks or (_QUICK_BLOCKS if chosen.quick else _FULL_BLOCKS)
    looks = look_times(blocks)
    with ExitStack() as stack:
        places = stack.enter_context(_places(chosen.at, 2 * amounts.largest_bytes))
        build = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strakes-bench-")))
        local_engine = stack.enter_context(LocalEngine())
        plain, stamped = Engine(local_engine, stamped=False), Engine(local_engine, stamped=True)
        peers, absent = found_peers(chosen.mpiexec)
        floors = [Floor(build, through_library=False), Floor(build, through_library=True)]
        contenders: list[Contender] = [*floors, plain, stamped, *peers]
        names = [peer.name for peer in (*floors, *peers)]
        device = next((place for place in places if place.has_device and place.takes_direct()), None)
        works = works_of(places[0], device, amounts)
        clock = time.monotonic()

        def open_works(block: int, measured: Results) -> Sequence[Work]:
            together = _joined(results, measured)
            left = list(works)
            if block + 1 >= looks[0]:
                left = [work for work in works if is_open(work, together, plain.name, names, looks)]
            print(
                f"block {block + 1} of at most {blocks}, {time.monotonic() - clock:.0f} s, {len(left)} of {len(works)} "
                "workloads continue",
                file=sys.stderr,
                flush=True,
            )
            if chosen.add_to:
                kept.save(chosen.add_to, together)
            return left

        first = kept.blocks_of(results)
        measured = measure(
            open_works(first - 1, {}) if first else list(works),
            contenders,
            {place.name: place for place in places},
            range(first, blocks),
            chosen.seed,
            open_works,
        )
        results = _joined(results, measured)
        seconds = time.monotonic() - clock
        page_of = partial(
            Page,
            instructions=instructions.per_operation(quick=chosen.quick),
            footprints=footprints(places[0], quick=chosen.quick),
            lags=lags(places[0], quick=chosen.quick),
        )
        machine = {
            "measured": f"{started:%Y-%m-%d %H:%M} UTC, {kept.blocks_of(results)} blocks, the last "
            f"{kept.blocks_of(results) - first} of them in {seconds:.0f} s",
            "code": _state_of_the_code(),
            "load average before": f"{load_before:.1f}",
            **_machine(),
            **{place.name: place.description for place in places},
            **{contender.name: contender.version for contender in contenders if contender not in (floors[1], stamped)},
        }
        made = speeds(build)
    comparisons = {name: compare(results, plain.name, name, looks) for name in names}
    stamps = compare(results, stamped.name, plain.name, looks, asked=False)
    return page_of(
        works=works, comparisons=comparisons, stamped=stamps, speeds=made, machine=machine, absent=absent, looks=looks
    )


def _joined(earlier: Results, later: Results) -> Results:
    return {series: {**earlier.get(series, {}), **later.get(series, {})} for series in {**earlier, **later}}


def _state_of_the_code() -> str:
    words = ["git", "-C", str(_PAGE.parents[1]), "describe", "--always", "--dirty", "--abbrev=12"]
    described = subprocess.run(words, capture_output=True, text=True, check=False)
    return described.stdout.strip() or "not known"


@contextmanager
def _places(given: list[str], largest_bytes: int) -> Iterator[list[Place]]:
    if given:
        yield given_places(given)
    elif os.geteuid() == 0:
        with own_places(largest_bytes) as places:
            yield places
    else:
        raise SystemExit(
            "bench: only root can mount the tmpfs and XFS for the measurement: give directories with --at NAME=DIR"
        )


def _machine() -> Mapping[str, str]:
    processors = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in processors if line.startswith("model name")), "?")
    return {
        "processor": f"{model}, {os.cpu_count()} cores seen",
        "system": platform.freedesktop_os_release()["PRETTY_NAME"],
        "kernel": os.uname().release,
    }

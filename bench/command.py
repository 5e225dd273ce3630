"""The command: measures the engine beside the floor and its peers, prints the table and writes docs/performance.md."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bench import instructions
from bench.bars import compare
from bench.contenders import Contender, Floor
from bench.engine import Engine
from bench.fio import Fio
from bench.measure import measure
from bench.memory import footprints
from bench.page import Page, render
from bench.places import Place, given_places, own_places
from bench.postmark import Postmark
from bench.schedule import lags
from bench.work import FULL, QUICK, works_at
from strakes.errors import StrakesError
from strakes.launch.local import LocalEngine

_PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
_FULL_BLOCKS = 9
_QUICK_BLOCKS = 7


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when no bar was missed, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="bench", description="The engine's rates over those of a minimal C loop, fio and Postmark.")
    parser.add_argument("--quick", action="store_true", help="a third of the work: for a look, not for the page")
    parser.add_argument("--blocks", type=int, help=f"repetitions (default: {_FULL_BLOCKS}; with --quick {_QUICK_BLOCKS})")
    parser.add_argument("--out", type=Path, help="where the page goes (default: docs/performance.md; with --quick nowhere)")
    parser.add_argument("--at", action="append", default=[], metavar="NAME=DIR", help="measure there instead of on an own tmpfs and XFS")
    parser.add_argument("--seed", type=int, default=1, help="of the random order (default: 1)")
    parser.add_argument(
        "--instructions", action="store_true", help="only count instructions per operation (valgrind): docs/instructions.md"
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
    blocks = chosen.blocks or (_QUICK_BLOCKS if chosen.quick else _FULL_BLOCKS)
    started = datetime.now(UTC)
    load_before = os.getloadavg()[0]
    with ExitStack() as stack:
        places = stack.enter_context(_places(chosen.at, 2 * amounts.large_bytes))
        build = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strakes-bench-")))
        local_engine = stack.enter_context(LocalEngine())
        plain, stamped = Engine(local_engine, stamped=False), Engine(local_engine, stamped=True)
        peers, absent = _peers()
        floors = [Floor(build, through_library=False), Floor(build, through_library=True)]
        contenders: list[Contender] = [*floors, plain, stamped, *peers]
        works = [work for place in places for work in works_at(place, amounts)]
        clock = time.monotonic()

        def say(done: int) -> None:
            print(f"block {done} of {blocks}, {time.monotonic() - clock:.0f} s", file=sys.stderr, flush=True)

        results = measure(works, contenders, {place.name: place for place in places}, blocks, chosen.seed, say)
        found = footprints(places[0], quick=chosen.quick)
        kept = lags(places[0], quick=chosen.quick)
        machine = {
            "measured": f"{started:%Y-%m-%d %H:%M} UTC, {blocks} blocks, {time.monotonic() - clock:.0f} s",
            "load average before": f"{load_before:.1f}",
            **_machine(),
            **{place.name: place.description for place in places},
            **{contender.name: contender.version for contender in contenders if contender not in (floors[1], stamped)},
        }
    names = [peer.name for peer in (*floors, *peers)]
    comparisons = {name: compare(results, plain.name, name) for name in names}
    return Page(comparisons, compare(results, stamped.name, plain.name, asked=False), found, kept, machine, absent, blocks)


@contextmanager
def _places(given: list[str], largest_bytes: int) -> Iterator[list[Place]]:
    if given:
        yield given_places(given)
    elif os.geteuid() == 0:
        with own_places(largest_bytes) as places:
            yield places
    else:
        raise SystemExit("bench: only root can mount the tmpfs and the XFS it measures on: give directories with --at NAME=DIR")


def _peers() -> tuple[list[Contender], list[str]]:
    peers: list[Contender] = []
    absent = []
    for name, program, make in (("fio", "fio", Fio), ("Postmark", "postmark", Postmark)):
        path = shutil.which(program)
        if path is None:
            absent.append(name)
        else:
            peers.append(make(path))
    return peers, absent


def _machine() -> Mapping[str, str]:
    processors = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in processors if line.startswith("model name")), "?")
    return {
        "processor": f"{model}, {os.cpu_count()} cores seen",
        "system": platform.freedesktop_os_release()["PRETTY_NAME"],
        "kernel": os.uname().release,
    }

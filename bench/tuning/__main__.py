"""``python -m bench.tuning``: ``measure GRID DIR`` measures a block of a landscape, ``page`` writes docs/tuning.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.tuning.grids import GRIDS, SHARE, grid_named
from bench.tuning.landscape import PLACE, begun, load, measure_block, save

_SEED = 20261121


def main() -> int:
    """Run a command. Return 1 if ``measure`` has nothing left to measure, else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.tuning", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser(
        "measure", help="measure the next block of a grid and store it; repeat this until the grid is complete"
    )
    measure.add_argument("grid", choices=[grid.name for grid in GRIDS])
    measure.add_argument("directory", type=Path)
    live = commands.add_parser("live", help="search a grid once on the real file system, and store the result")
    live.add_argument("grid", choices=[grid.name for grid in GRIDS])
    live.add_argument("directory", type=Path)
    live.add_argument("seed", type=int)
    page = commands.add_parser("page", help="write docs/tuning.md")
    page.add_argument("--searches", type=int, default=30)
    page.add_argument("--tries", type=int, default=2000)
    arguments = parser.parse_args()
    if arguments.command == "page":
        from bench.tuning.page import write

        write(arguments.searches, arguments.tries, lambda line: print(line, file=sys.stderr))
        return 0
    if arguments.command == "live":
        from bench.tuning.live import live as search_live

        print(search_live(grid_named(arguments.grid), arguments.directory, arguments.seed, SHARE))
        return 0
    grid, path = grid_named(arguments.grid), PLACE / f"{arguments.grid}.json.gz"
    landscape = load(grid.name) if path.exists() else begun(grid)
    if not measure_block(grid, landscape, arguments.directory, _SEED):
        return 1
    save(landscape, path)
    print(f"{grid.name}: block {len(landscape.facts['block_s']) - 1} in {landscape.facts['block_s'][-1]} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

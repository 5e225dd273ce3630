"""Write the tables of docs/statistics.md: ``python -m bench.simulate [--tries 10000] [docs/statistics.md]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.simulate.document import TABLES, filled


def main() -> None:
    """Simulate and rewrite the document in place."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.simulate", description="Write the tables of docs/statistics.md."
    )
    parser.add_argument("document", nargs="?", type=Path, default=Path("docs/statistics.md"))
    parser.add_argument(
        "--tries", type=int, default=10_000, help="tries for a figure (default 10000; slow ones get a fraction)"
    )
    parser.add_argument(
        "--only", action="append", default=[], choices=list(TABLES), help="make this table only; may be repeated"
    )
    arguments = parser.parse_args()
    text = arguments.document.read_text(encoding="utf-8")
    arguments.document.write_text(
        filled(text, arguments.tries, lambda name: _say(f"{name} ..."), arguments.only), encoding="utf-8"
    )


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    main()

"""``./dev bench``: run bench/command.py as a module of its package, from any working directory."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    sys.path[0] = str(Path(__file__).parents[1])
    from bench.command import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())

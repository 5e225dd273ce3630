"""``./dev bench``: starts bench/command.py as part of its package, wherever it is called from."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """0 when no bar was missed, 1 otherwise."""
    sys.path[0] = str(Path(__file__).parents[1])
    from bench.command import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())

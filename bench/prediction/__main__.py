"""Judge the forecasts of strakes by three yardsticks: ``python -m bench.prediction DATA``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.prediction.page import make_page
from bench.prediction.parts import Parts


def main() -> None:
    """Print every yardstick, or write them as a page."""
    parser = argparse.ArgumentParser(prog="python -m bench.prediction", description=__doc__)
    parser.add_argument("data", type=Path, help="The directory with the data of others.")
    parser.add_argument("--systems", type=int, default=300, help="How many made-up systems.")
    parser.add_argument(
        "--ideal", type=int, help="Of how many of them to compute what an ideal observer names; of all."
    )
    parser.add_argument("--page", type=Path, help="Write the page here instead of printing it.")
    parser.add_argument("--parts", type=Path, help="Keep here what was computed, and go on with it when interrupted.")
    arguments = parser.parse_args()
    text = make_page(arguments.data, arguments.systems, arguments.ideal or arguments.systems, Parts(arguments.parts))
    if arguments.page is None:
        print(text)
    else:
        arguments.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

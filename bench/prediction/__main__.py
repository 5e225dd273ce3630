"""Print how good the simple rules are: ``python -m bench.prediction submissions.json``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.prediction.io500 import find_pairs, judge, read_submissions, summarise
from bench.prediction.simple import RULES


def main() -> None:
    """A line for each rule: median factor of error, and the share of phases inside the 80 % interval."""
    parser = argparse.ArgumentParser(prog="python -m bench.prediction", description=__doc__)
    parser.add_argument("submissions", type=Path, help="The file io500/submissions.json of the data of others.")
    pairs = find_pairs(read_submissions(parser.parse_args().submissions))
    print(f"{len(pairs)} systems, {sum(len(pair.phases) for pair in pairs)} phases")
    for name, rule in RULES.items():
        factor, covered = summarise(judge(pairs, rule))
        print(f"{name:<30} median factor of error {factor:.2f}, {covered:.0%} inside the 80 % interval")


if __name__ == "__main__":
    main()

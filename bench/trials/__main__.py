"""``python -m bench.trials measure PLAN DIR FILE`` and then ``… tell FILE [DOCUMENT]``."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from bench.trials.measure import measure
from bench.trials.tell import Rounds, tables
from strakes.errors import BadInputError, StrakesError
from strakes.store import Store

_PLACE = re.compile(r"(<!-- measured: trials -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> int:
    """0; what a StrakesError says otherwise."""
    parser = argparse.ArgumentParser(prog="python -m bench.trials", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser(
        "measure", help="run the plan in rounds; FILE then names the runs, and gets more with every call"
    )
    measuring.add_argument("plan", type=Path)
    measuring.add_argument("directory", type=Path)
    measuring.add_argument("file", type=Path)
    measuring.add_argument("--rounds", type=int, default=50)
    measuring.add_argument("--slower", type=float, default=0.1, help="by which share (default 0.1)")
    measuring.add_argument("--budget", default="2s", help="of one run (default 2s)")
    telling = commands.add_parser("tell", help="print the tables, or write them into DOCUMENT between its comments")
    telling.add_argument("file", type=Path)
    telling.add_argument("document", type=Path, nargs="?")
    telling.add_argument("--tries", type=int, default=5000)
    chosen = parser.parse_args()
    try:
        return _measure(chosen) if chosen.command == "measure" else _tell(chosen)
    except StrakesError as error:
        sys.stderr.write(f"trials: {error}\n")
        return error.exit_status


def _measure(chosen: argparse.Namespace) -> int:
    kept = json.loads(chosen.file.read_text()) if chosen.file.exists() else {"slower": chosen.slower, "rounds": []}
    if kept["slower"] != chosen.slower:
        raise BadInputError(
            "the rounds in the file were slowed by another share", where=str(chosen.file), why=f"{kept['slower']}"
        )

    def say(done: int) -> None:
        sys.stderr.write(f"round {done} of {chosen.rounds}\n")

    kept["rounds"] += measure(chosen.plan, chosen.directory, chosen.rounds, chosen.slower, chosen.budget, say)
    chosen.file.write_text(json.dumps(kept, indent=1))
    return 0


def _tell(chosen: argparse.Namespace) -> int:
    kept = json.loads(chosen.file.read_text())
    store = Store()
    rounds = [
        {kind: store.open(identifier) for kind, identifier in identifiers.items()} for identifiers in kept["rounds"]
    ]
    first = rounds[0]["a"]
    host = first.environment
    about = (
        f"{first.manifest['created'][:10]}, {host['cpu_model']}, {host['cpus']} CPUs, {host['mount']['file_system']}, "
        f"`strakes run` with a budget of {first.manifest['options']['budget_s']:g} s."
    )
    text = tables(Rounds.of(rounds, kept["slower"]), chosen.tries, about)
    if chosen.document is None:
        sys.stdout.write(f"{text}\n")
        return 0
    document = chosen.document.read_text(encoding="utf-8")
    if not _PLACE.search(document):
        raise BadInputError(
            "no place for the tables",
            where=str(chosen.document),
            remedy="Write <!-- measured: trials --> and <!-- end -->.",
        )
    chosen.document.write_text(_PLACE.sub(lambda match: f"{match[1]}{text}\n{match[2]}", document), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``strakes import FILE…``: store results of other tools as runs."""

from __future__ import annotations

from pathlib import Path

from strakes.base.errors import EnvironmentLacksError
from strakes.base.interrupts import limited
from strakes.base.units import counted
from strakes.cli.options import DIRECTORY, PATH, argument, command_named, option
from strakes.cli.say import say


@command_named("import")
def command(
    *,
    files: tuple[Path, ...] = argument("FILE...", nargs=-1, required=True, type=PATH),
    target: Path | None = option(
        "Directory that was measured.  [default: as named in the file]", type=DIRECTORY, metavar="DIR"
    ),
) -> None:
    """Import results of IOR, mdtest, elbencho, IO500 and fio into the store, each test of a file as one run.

    Imported figures are single points without an interval, and are marked as imported wherever they are shown. All
    files are read before the first is imported; if one cannot be read, none is imported.
    """
    from strakes.interop.formats import read_file
    from strakes.interop.importing import keep
    from strakes.runs.store import Store

    with limited(3600.0, lambda why: EnvironmentLacksError("too many files to import at once", why=why)):
        results = [(file, read_file(file)) for file in files]
    store = Store()
    lost = {file: left_out for file, read in results if (left_out := read.left_out())}
    for file, text in lost.items():
        say(f"{file}: {text}", err=True)
    runs: list[tuple[Path, str]] = []  # The cells of all runs take too much memory.
    try:
        for file, read in results:
            runs += ((file, run.id) for run in keep(file, read, store, str(target or "")))
    finally:  # If the import is interrupted, name the runs that it has already stored.
        for file, run in ((file, store.open(name)) for file, name in runs):
            made = run.manifest["options"]["imported"]
            tool = " ".join(filter(None, [made["tool"], made["version"]]))
            say(f"{run.id}  {counted(len(run.cells), 'figure')} of {tool} from {file}")
            for note in made["notes"]:
                if note != lost.get(file):
                    say(f"{run.id}: {note}", err=True)
    say(f"To see the results: strakes report {runs[-1][1]}")

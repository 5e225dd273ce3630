"""From a result file to a run in the store."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from strakes.errors import BadInputError
from strakes.foreign_text import for_shell
from strakes.interop.commands import ior, mdtest
from strakes.interop.foreign import Foreign, cells_and_visits
from strakes.interop.formats import Format, read_file
from strakes.store import Run, Store
from strakes.store.records import FactsFound

UNKNOWN_TARGET = "(not known)"
# Tools whose command lines `strakes run` understands, and what reads their options.
_RUNNABLE = {"ior": ior.read, "mdtest": mdtest.read}


def import_file(path: Path, store: Store, target: str = "") -> Run:
    """Keep the file's figures as a run; ``target`` where the file does not say what was measured.

    Raises BadInputError.
    """
    chosen, foreign = read_file(path)
    place = Path(target or foreign.path or UNKNOWN_TARGET)
    options: dict[str, object] = {
        "fingerprint": foreign.fingerprint(),
        "studies": ["imported"],
        "confidence": 0.9,
        "relative_half_width": 0.1,
        "budget_s": 0.0,
        "command": _launched(foreign) or shlex.join(["strakes", "import", str(path)]),
        "imported": _provenance(path, chosen, foreign),
    }
    environment = {"host": foreign.host} if foreign.host else {}
    writer = store.create("import", foreign.tool, place, options, environment, measured_at=foreign.when, elsewhere=True)
    with writer:
        cells, visits = cells_and_visits(foreign)
        writer.append_event(FactsFound({"path": str(place), "stated": list(foreign.stated)}))
        writer.write_cells(cells)
        writer.append_visit(*visits)
        writer.finish("complete")
    return store.open(writer.id)


def _provenance(path: Path, chosen: Format, foreign: Foreign) -> dict[str, object]:
    return {
        "tool": foreign.tool,
        "version": foreign.version,
        "format": chosen.name,
        "file": os.path.abspath(path),
        "when": foreign.when.isoformat() if foreign.when else "",
        "notes": list(foreign.notes),
        "again": _again(foreign),
    }


def _again(foreign: Foreign) -> str:
    """Return the command that does the same work with strakes; empty where the file does not tell it."""
    if foreign.tool == "io500":
        return "strakes run io500 CONFIG.ini"
    words = for_shell(foreign.command).split(" ")
    if foreign.tool not in _RUNNABLE or len(words) < 2:
        return ""
    try:
        _RUNNABLE[foreign.tool](shlex.split(" ".join(words[1:])))
    except (BadInputError, ValueError):
        return ""
    ranks = _ranks(foreign)
    return " ".join(["strakes run", *(["-n", str(ranks)] if ranks > 1 else []), foreign.tool, *words[1:]])


def _ranks(foreign: Foreign) -> int:
    """Return how many ranks the tool had, 1 where it does not say."""
    ranks = {figure.settings.get("ranks") for figure in foreign.figures}
    (only,) = ranks if len(ranks) == 1 else (None,)
    return only if isinstance(only, int) else 1


def _launched(foreign: Foreign) -> str:
    """Return the command line with what started its ranks, which the tools leave out of what they print."""
    command, ranks = for_shell(foreign.command), _ranks(foreign)
    return f"mpiexec -n {ranks} {command}" if command and foreign.tool in _RUNNABLE and ranks > 1 else command

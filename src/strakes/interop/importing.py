"""Import result files as runs in the store."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from strakes.base.errors import BadInputError
from strakes.base.foreign_text import shell_words
from strakes.interop import command_ior as ior
from strakes.interop import command_mdtest as mdtest
from strakes.interop.foreign import Foreign, cells_and_visits
from strakes.interop.formats import ResultFile
from strakes.runs.records import FactsFound
from strakes.runs.run import Run
from strakes.runs.store import Store

UNKNOWN_TARGET = "(not known)"
# Tool whose command lines `strakes run` accepts -> parser of its command lines.
_RUNNABLE = {"ior": ior.read, "mdtest": mdtest.read}


def keep(path: Path, results: ResultFile, store: Store, target: str = "") -> Iterator[Run]:
    """Store each test of a file as a run with a note on unread results. Yield the runs.

    ``target``: the measured directory, by default the one named in the file.
    """
    return (_keep_test(path, test, results.left_out(), store, target) for test in results.tests)


def _keep_test(path: Path, test: Foreign, left_out: str, store: Store, target: str) -> Run:
    place = Path(target or test.path or UNKNOWN_TARGET)
    options: dict[str, object] = {
        "fingerprint": test.fingerprint(),
        "studies": ["imported"],
        "confidence": 0.9,
        "relative_half_width": 0.1,
        "budget_s": 0.0,
        "command": _launched(test) or shlex.join(["strakes", "import", str(path)]),
        "imported": {
            "tool": test.tool,
            "version": test.version,
            "format": test.form,
            "file": os.path.abspath(path),
            "when": test.when.isoformat() if test.when else "",
            "notes": [*test.notes, *([left_out] if left_out else [])],
            "again": _again(test),
        },
    }
    environment = {"host": test.host} if test.host else {}
    writer = store.create("import", test.tool, place, options, environment, measured_at=test.when, elsewhere=True)
    with writer:
        cells, visits = cells_and_visits(test)
        writer.append_event(FactsFound({"path": str(place), "stated": list(test.stated)}))
        writer.write_cells(cells)
        writer.append_visit(*visits)
        writer.finish("complete")
    return store.open(writer.id)


# Maximum number of words in another tool's command. getopt() takes quadratic time: 0.8 s for 20,000 words (measured).
_MOST_WORDS = 1000


def _again(foreign: Foreign) -> str:
    if foreign.tool == "io500":
        return "strakes run io500 CONFIG.ini"
    words = foreign.command.split(" ")
    if foreign.tool not in _RUNNABLE or not 2 <= len(words) <= _MOST_WORDS:
        return ""
    try:
        _RUNNABLE[foreign.tool](shell_words(" ".join(words[1:])))
    except (BadInputError, ValueError):
        return ""
    ranks = _ranks(foreign)
    return " ".join(["strakes run", *(["-n", str(ranks)] if ranks > 1 else []), foreign.tool, *words[1:]])


def _ranks(foreign: Foreign) -> int:
    ranks = {figure.settings.get("ranks") for figure in foreign.figures}
    (only,) = ranks if len(ranks) == 1 else (None,)
    return only if isinstance(only, int) else 1


def _launched(foreign: Foreign) -> str:
    command, ranks = foreign.command, _ranks(foreign)
    return f"mpiexec -n {ranks} {command}" if command and foreign.tool in _RUNNABLE and ranks > 1 else command

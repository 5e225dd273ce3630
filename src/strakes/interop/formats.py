"""The foreign formats that strakes reads.

A file is a list of tests. A new format is a reader and one line here. The first format of a whole file that recognises
a file reads it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from strakes.errors import BadInputError
from strakes.file_kinds import OTHER_KINDS, refuse_other_kind
from strakes.files import read_regular
from strakes.interop.foreign import Foreign
from strakes.interop.readers import elbencho, fio, io500, ior, mdtest, postmark
from strakes.interop.readers.blocks import Block, Printed, Result, Unread, cut, outside_json
from strakes.interop.readers.pasted import UTF_16, plain_text

# Results are small; a larger file is something else.
MOST_BYTES = 256 * 1024 * 1024
# A JSON value takes at least 100 bytes of memory.
_MOST_VALUES = 2_000_000


@dataclass(frozen=True)
class Format:
    """A format of a whole file: its display name, its detector and its reader."""

    name: str
    recognises: Callable[[str], bool]
    read: Callable[[str], Iterable[Result]]


FORMATS: tuple[Format, ...] = (
    Format("elbencho JSON", elbencho.is_json, elbencho.read_json),
    Format("fio JSON", fio.is_json, fio.read_json),
    Format("IOR JSON", ior.is_json, ior.read_json),
    Format("IO500 ini", io500.is_ini, io500.read_ini),
    Format("IOR CSV", ior.is_csv, ior.read_csv),
    Format("IOR CSV per rank", ior.is_rank_csv, ior.read_rank_csv),
    Format("mdtest CSV per rank", mdtest.is_rank_csv, mdtest.read_rank_csv),
    Format("IOR or mdtest CSV per operation", mdtest.is_operations_csv, mdtest.read_operations_csv),
    Format("elbencho CSV", elbencho.is_csv, elbencho.read_csv),
    Format("elbencho live CSV", elbencho.is_live_csv, elbencho.read_live_csv),
)
# Printed texts; a file may have several. The last two are recognised but not read.
PRINTED: tuple[Printed, ...] = (
    *(io500.TEXT, ior.TEXT, mdtest.TEXT, elbencho.TEXT, postmark.TEXT),
    Printed(
        "fio text",
        re.compile(r"(?:\d;)?fio-\d|\S+: \(g=\d+\): rw="),
        remedy="strakes reads only fio's JSON: write it with fio --output=FILE --output-format=json.",
    ),
    Printed(
        "md-workbench text",
        re.compile(r"[ \t]*MD-Workbench "),
        remedy="strakes does not read md-workbench: use mdtest, or strakes survey.",
    ),
)


@dataclass(frozen=True)
class ResultFile:
    """The tests in a file, in their order, and the lines of results that were not understood."""

    tests: tuple[Foreign, ...]
    unread: tuple[Unread, ...] = ()

    def left_out(self) -> str:
        """Return the number of tests that were not read, with lines and reasons; "" if all were read.

        >>> test = Foreign("ior", ())
        >>> ResultFile((test, test), (Unread(12, 16, "the test has no results"),)).left_out()
        '1 of 3 results was not read: lines 12-16 (the test has no results)'
        """
        if not self.unread:
            return ""
        places = [
            f"{f'lines {one.first}-{one.last}' if one.last > one.first else f'line {one.first}'} ({one.why})"
            for one in self.unread[:_MOST_SHOWN]
        ]
        more = len(self.unread) - len(places)
        verb = "was" if len(self.unread) == 1 else "were"
        total = len(self.unread) + len(self.tests)
        return f"{len(self.unread)} of {total} results {verb} not read: {'; '.join(places)}" + (
            f"; and {more} more" if more else ""
        )


_MOST_SHOWN = 10
_FAULTS_OF_A_FILE = (
    *(ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError, RecursionError, csv.Error),
)

# A file with a zero byte this early is sparse or binary, not a result.
_BEGINNING_BYTES = 4096


def read_file(path: Path) -> ResultFile:
    """Read the results in a file. Raises BadInputError that names the formats that can be read."""
    if path.is_dir():
        refuse_other_kind(path, "result", OTHER_KINDS["result"].name)
    content = read_regular(path, MOST_BYTES, remedy="Give the output file of the tool.")
    if b"\0" in content[:_BEGINNING_BYTES] and not content.startswith(UTF_16):
        raise _unknown(path, "")
    text = plain_text(content, PRINTED)
    if text.lstrip()[:1] in ("{", "[") and sum(map(text.count, ",[{")) > _MOST_VALUES:
        why = f"it is JSON of more than {_MOST_VALUES} values"
        raise BadInputError("the file contains no result", where=str(path), why=why)
    whole = next((known for known in FORMATS if _recognises(known, text)), None)
    results = _read(whole, text, path) if whole else []
    if whole is None or whole.name.endswith("JSON"):
        rest = outside_json(text) if whole else text
        results += [result for tool, block in cut(rest, PRINTED) for result in _of_block(tool, block)]
    tests = tuple(one for one in results if isinstance(one, Foreign) and one.figures)
    unread = tuple(one for one in results if isinstance(one, Unread))
    if not tests:
        if not results and not whole:
            raise _unknown(path, text)
        name = whole.name if whole else next((tool.name for tool, _ in cut(text, PRINTED) if tool), "")
        if not name:
            raise _unknown(path, text)
        remedy = next((tool.remedy for tool, _ in cut(text, PRINTED) if tool and tool.remedy), "")
        why = ResultFile((), unread).left_out() or "nothing was measured, or every figure is 0 or nan"
        raise BadInputError(f"the file is {name} but contains no figure", where=str(path), why=why, remedy=remedy)
    return ResultFile(tests, unread)


def _recognises(known: Format, text: str) -> bool:
    try:
        return known.recognises(text)
    except (ValueError, RecursionError, csv.Error):
        return False


def _of_block(tool: Printed | None, block: Block) -> list[Result]:
    if tool is None:
        return [block.unread("rates of a tool that is not known")]
    if tool.read is None:
        return [block.unread(tool.name)]
    try:
        return _named(tool.name, tool.read(block))
    except (BadInputError, *_FAULTS_OF_A_FILE) as error:
        return [block.unread(f"{tool.name}: {error}")]


def _read(chosen: Format, text: str, path: Path) -> list[Result]:
    try:
        return _named(chosen.name, chosen.read(text))
    except BadInputError as error:
        where = f"{path}, {error.where}" if error.where else str(path)
        raise BadInputError(f"{error.what} ({chosen.name})", where=where, why=error.why, remedy=error.remedy) from error
    except _FAULTS_OF_A_FILE as error:
        # Missing or mistyped parts of the text are faults of the file.
        what, why = f"the file looks like {chosen.name} but cannot be read as that", f"{type(error).__name__}: {error}"
        raise BadInputError(what, where=str(path), why=why) from error


def _named(name: str, results: Iterable[Result]) -> list[Result]:
    return [replace(result, form=name) if isinstance(result, Foreign) else result for result in results]


def _unknown(path: Path, text: str) -> BadInputError:
    if elsewhere := re.match(r"\s*Writing output to (\S+)\s*$", text):
        remedy = f"Import that file instead: strakes import {elsewhere[1]}"
        return BadInputError("the file only names another result file", where=str(path), remedy=remedy)
    if re.match(r"\s*\d+\s*$", text):
        why = "it contains a single number, like the stonewall status of IOR and mdtest"
        return BadInputError(
            "the file contains no result", where=str(path), why=why, remedy="Import the output of the tool instead."
        )
    refuse_other_kind(path, "result", OTHER_KINDS["result"].name)
    names = (*(known.name for known in FORMATS), *(tool.name for tool in PRINTED if tool.read))
    expected = ", ".join(names)
    why = f"expected one of: {expected}"
    remedy = "Give the unchanged output file of the tool."
    return BadInputError("the result format is not known", where=str(path), why=why, remedy=remedy)

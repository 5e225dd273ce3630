"""Which foreign formats are read.

Adding one is its reader and one line here; the first that recognises a text reads it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from strakes.errors import BadInputError
from strakes.file_kinds import OTHER_KINDS, refuse_other_kind
from strakes.files import read_regular
from strakes.interop.foreign import Foreign
from strakes.interop.readers import elbencho, fio, io500, ior, mdtest, postmark

# Results are small; a larger file is something else.
MOST_BYTES = 256 * 1024 * 1024
# Of JSON; each takes a hundred bytes and more of memory, whatever its length in the file.
_MOST_VALUES = 2_000_000


@dataclass(frozen=True)
class Format:
    """A format: its name for people, whether a text is of it, and what the text says."""

    name: str
    recognises: Callable[[str], bool]
    read: Callable[[str], Foreign]


FORMATS: tuple[Format, ...] = (
    Format("elbencho JSON", elbencho.is_json, elbencho.read_json),
    Format("fio JSON", fio.is_json, fio.read_json),
    Format("IOR JSON", ior.is_json, ior.read_json),
    Format("IO500 ini", io500.is_ini, io500.read_ini),
    Format("IO500 summary", io500.is_summary, io500.read_summary),
    Format("IOR CSV", ior.is_csv, ior.read_csv),
    Format("IOR CSV per rank", ior.is_rank_csv, ior.read_rank_csv),
    Format("mdtest CSV per rank", mdtest.is_rank_csv, mdtest.read_rank_csv),
    Format("IOR or mdtest CSV per operation", mdtest.is_operations_csv, mdtest.read_operations_csv),
    Format("elbencho CSV", elbencho.is_csv, elbencho.read_csv),
    Format("elbencho live CSV", elbencho.is_live_csv, elbencho.read_live_csv),
    Format("elbencho text", elbencho.is_text, elbencho.read_text),
    Format("Postmark text", postmark.is_text, postmark.read_text),
    Format("mdtest text", mdtest.is_text, mdtest.read_text),
    Format("IOR text", ior.is_text, ior.read_text),
)


_MOST_SPACE = 64
_MUCH_SPACE = re.compile(r"\s{65,}")
# More than any number of a result has; patterns that look for a number anywhere would begin anew at every digit.
_MANY_DIGITS = re.compile(r"\d{400}")


_FAULTS_OF_A_FILE = (
    *(ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError, RecursionError, csv.Error),
)

# No tool writes a zero byte so early; a sparse file, or one of another kind, is full of them.
_BEGINNING_BYTES = 4096


def read_file(path: Path) -> tuple[Format, Foreign]:
    """Read the results in a file. Raises BadInputError that names the formats that can be read."""
    if path.is_dir():
        refuse_other_kind(path, "result", OTHER_KINDS["result"].name)
    content = read_regular(path, MOST_BYTES, remedy="Give the output file of the tool.")
    if b"\0" in content[:_BEGINNING_BYTES]:
        raise _unknown(path, "")
    text = content.decode(errors="replace")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    # Patterns that begin or end with white space take a time that grows with the square of how much there is of it.
    text = _MUCH_SPACE.sub(lambda space: "\n" if "\n" in space[0] else space[0][:_MOST_SPACE], text)
    if _MANY_DIGITS.search(text):
        raise BadInputError("the file contains no result", where=str(path), why="a number in it has 400 digits or more")
    if text.lstrip()[:1] in ("{", "[") and sum(map(text.count, ",[{")) > _MOST_VALUES:
        why = f"it is JSON of more than {_MOST_VALUES} values"
        raise BadInputError("the file contains no result", where=str(path), why=why)
    for known in FORMATS:
        if _recognises(known, text):
            return known, _read(known, text, path)
    raise _unknown(path, text)


def _recognises(known: Format, text: str) -> bool:
    try:
        return known.recognises(text)
    except (ValueError, RecursionError, csv.Error):
        return False


def _read(chosen: Format, text: str, path: Path) -> Foreign:
    try:
        foreign = chosen.read(text)
    except BadInputError as error:
        where = f"{path}, {error.where}" if error.where else str(path)
        raise BadInputError(f"{error.what} ({chosen.name})", where=where, why=error.why, remedy=error.remedy) from error
    except _FAULTS_OF_A_FILE as error:
        # The text of others: whatever is missing or of another kind in it is the file's fault.
        why = f"{type(error).__name__}: {error}"
        raise BadInputError(
            f"the file looks like {chosen.name} but cannot be read as that", where=str(path), why=why
        ) from error
    if not foreign.figures:
        why = "nothing was measured, or every figure is 0 or nan"
        raise BadInputError(f"the file is {chosen.name} but contains no figure", where=str(path), why=why)
    return foreign


def _unknown(path: Path, text: str) -> BadInputError:
    if elsewhere := re.match(r"\s*Writing output to (\S+)\s*$", text):
        remedy = f"Import that file instead: strakes import {elsewhere[1]}"
        return BadInputError("the file only names another result file", where=str(path), remedy=remedy)
    if re.match(r"\s*\d+\s*$", text):
        why = "it contains a single number, like the stonewall status of IOR and mdtest"
        return BadInputError(
            "the file contains no result", where=str(path), why=why, remedy="Import the output of the tool instead."
        )
    if re.search(r"^(\d;)?fio-\d", text, re.MULTILINE):
        what = "fio's text output cannot be read, only its JSON"
        return BadInputError(what, where=str(path), remedy="Write it with fio --output=FILE --output-format=json.")
    refuse_other_kind(path, "result", OTHER_KINDS["result"].name)
    expected = ", ".join(known.name for known in FORMATS)
    why = f"expected one of: {expected}"
    remedy = "Give the unchanged output file of the tool."
    return BadInputError("the result format is not known", where=str(path), why=why, remedy=remedy)

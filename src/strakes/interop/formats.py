"""Which foreign formats are read. Adding one is its reader and one line here; the first that recognises a text reads it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from strakes.errors import BadInputError
from strakes.interop.foreign import Foreign
from strakes.interop.readers import elbencho, fio, io500, ior, mdtest, postmark

# Results are small; a larger file is something else.
MOST_BYTES = 256 * 1024 * 1024


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


def read_file(path: Path) -> tuple[Format, Foreign]:
    """The results in a file. Raises BadInputError that names what was expected."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadInputError("the file is too large for a result", where=str(path), why=f"more than {MOST_BYTES >> 20} MiB")
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadInputError("the file cannot be read", where=str(path), why=error.strerror or str(error)) from error
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    for one in FORMATS:
        if one.recognises(text):
            return one, _read(one, text, path)
    raise _unknown(path, text)


def _read(chosen: Format, text: str, path: Path) -> Foreign:
    try:
        foreign = chosen.read(text)
    except BadInputError as error:
        where = f"{path}, {error.where}" if error.where else str(path)
        raise BadInputError(f"{error.what} ({chosen.name})", where=where, why=error.why, remedy=error.remedy) from error
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        # The text of others: whatever is missing or of another kind in it is the file's fault.
        why = f"{type(error).__name__}: {error}"
        raise BadInputError(f"the file looks like {chosen.name} but cannot be read as that", where=str(path), why=why) from error
    if not foreign.figures:
        raise BadInputError(
            f"the file is {chosen.name} but holds no figure", where=str(path), why="nothing was measured, or every figure in it is 0 or nan"
        )
    return foreign


def _unknown(path: Path, text: str) -> BadInputError:
    if elsewhere := re.match(r"\s*Writing output to (\S+)\s*$", text):
        return BadInputError("the file only names another one", where=str(path), remedy=f"Import that one: strakes import {elsewhere[1]}")
    if re.match(r"\s*\d+\s*$", text):
        why = "a single number, as the stonewall status of IOR and mdtest is: it holds no result"
        return BadInputError("the file holds no result", where=str(path), why=why, remedy="Import the output of that run.")
    if re.search(r"^(\d;)?fio-\d", text, re.MULTILINE):
        what = "the printed text of fio is not read, only its JSON"
        return BadInputError(what, where=str(path), remedy="Write it with fio --output=FILE --output-format=json.")
    expected = ", ".join(one.name for one in FORMATS)
    return BadInputError(
        "no known result format", where=str(path), why=f"expected one of: {expected}", remedy="Give the file as the tool wrote it."
    )

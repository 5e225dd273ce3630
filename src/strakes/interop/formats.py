"""Formats of other tools that strakes can import.

To add a format, write a reader, and add a line to TABLES (CSV or ini), JSON or PRINTED (printed text).
"""

from __future__ import annotations

import gzip
import io
import re
import shlex
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from pathlib import Path

from strakes.base.errors import BadInputError, EnvironmentLacksError
from strakes.base.file_kinds import OTHER_KINDS, refuse_other_kind
from strakes.base.files import read_regular
from strakes.base.foreign_text import for_shell
from strakes.base.interrupts import limited
from strakes.base.units import format_bytes
from strakes.interop import reader_elbencho as elbencho
from strakes.interop import reader_fio as fio
from strakes.interop import reader_io500 as io500
from strakes.interop import reader_ior as ior
from strakes.interop import reader_mdtest as mdtest
from strakes.interop.command_options import table_of
from strakes.interop.foreign import Foreign, without_secrets_in
from strakes.interop.reader_blocks import MIXED, Block, Printed, Result, Unread, cut, json_documents, without
from strakes.interop.reader_pasted import UTF_16, plain_texts

_MOST_VALUES = 2_000_000  # Maximum number of JSON values in a file. Each needs 100 bytes of memory or more.
MOST_BYTES = 64 << 20  # Maximum size of a file in bytes, also unpacked. Its text may take 4 bytes per character.
_MOST_LINES = 2_000_000  # Maximum number of lines in a file. Each takes some 100 bytes of memory.
_MOST_S = 120.0  # Maximum processor time for a file in seconds. 10 MB of fio JSON take 5 s.
# Maximum number of results in a file. Each becomes a run in the store: 1,000 take about a minute (measured).
_MOST_RESULTS = 1000
_MOST_RATES = 50_000  # Maximum number of rates in a file. Each takes 5 kB of memory when it is stored (measured).
_MOST_CHARACTERS = 1 << 17  # Maximum length of a command, path or name. getopt() takes quadratic time: 1 s (measured).
_MOST_SHOWN = 10  # Maximum number of unreadable results that a message lists. The message grows in proportion.


# Formats of tables: name, pattern and reader. A table begins where its pattern matches, and ends before ordinary text.
TABLES = (
    (
        "IO500 ini",
        re.compile(r"(?ms)\A(?=.*^[ \t]*\[(?:ior|mdtest)-(?:easy|hard)-\w+\] *$)(?=.*^[ \t]*score\s*=)"),
        io500.read_ini,
    ),
    ("IOR CSV", re.compile(r"(?m)^ *access,bw\(MiB/s\),"), ior.read_csv),
    ("elbencho CSV", re.compile(r"(?m)^ *ISO date,.*operation,"), elbencho.read_csv),
)
# Formats of JSON objects, each with a pattern that occurs anywhere in the object.
JSON = (
    ("elbencho JSON", re.compile(r'"phase_type"'), elbencho.read_json),
    ("fio JSON", re.compile(r'"fio version"'), fio.read_json),
    ("IOR JSON", re.compile(r'"bwM[iI]B"'), ior.read_json),
)
# Formats of printed output. A file may contain several outputs.
PRINTED: tuple[Printed, ...] = (
    *(io500.TEXT, ior.TEXT, mdtest.TEXT, elbencho.TEXT),
    *(Printed(name, re.compile(one["opens"]), remedy=one["remedy"]) for name, one in table_of("refused").items()),
)
FORMATS = (*(name for name, _, _ in (*TABLES, *JSON)), *(tool.name for tool in PRINTED if tool.read))
# Exceptions that readers raise if a part of the file is missing or has an unexpected type.
_FAULTS = (BadInputError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
# A number at the end of a file without a line end may have been cut off.
_MAY_GO_ON = re.compile(r"[\d.,] *\Z")
# Lines that IOR and mdtest print once per run.
_ONCE = (re.compile(r"(?m)^ *Command line(?: used)? *:.*$"), re.compile(r"(?m)^ *mdtest-\S+ was launched .*$"))
# A file is binary, and no result, if it has NUL bytes but no line of text in its first 64 KiB.
_BEGINNING_BYTES, _TEXT = 1 << 16, re.compile(rb"[ -~]{12}[\r\n]")


@dataclass(frozen=True)
class ResultFile:
    """The tests in a file, in order, and the results that could not be read."""

    tests: tuple[Foreign, ...]
    unread: tuple[Unread, ...] = ()

    def left_out(self) -> str:
        """Return a text on the unread results: number, lines and reasons. Empty if all results were read.

        >>> ResultFile((Foreign("ior", ()),), (Unread(12, 16, "the test has no results"),)).left_out()
        '1 of 2 results was not read: lines 12-16 (the test has no results)'
        """
        if not self.unread:
            return ""
        left_out = len(self.unread)
        more = f"; and {left_out - _MOST_SHOWN} more" if left_out > _MOST_SHOWN else ""
        places = "; ".join(map(str, self.unread[:_MOST_SHOWN]))
        verb = "was" if left_out == 1 else "were"
        return f"{left_out} of {left_out + len(self.tests)} results {verb} not read: {places}{more}"


def read_file(path: Path) -> ResultFile:
    """Read the results in a file. Raises BadInputError that lists the known formats if the file has no results."""
    # The error is not a BadInputError, because readers catch BadInputError.
    what, remedy = "the file takes too long to read or is too large", "Import parts of it."
    with limited(_MOST_S, lambda why: EnvironmentLacksError(what, where=str(path), why=why, remedy=remedy)):
        return _read_results(path)


def _read_results(path: Path) -> ResultFile:
    if path.is_dir():
        refuse_other_kind(path, "result", OTHER_KINDS["result"].name)
    content = _unpacked(path, read_regular(path, MOST_BYTES, remedy="Give the output file of the tool."))
    if not content.startswith(UTF_16) and b"\0" in content:
        # A log may contain NUL bytes after a crash or if the disk was full.
        if not _TEXT.search(content[:_BEGINNING_BYTES].lstrip(b"\0")):
            raise _unknown(path, "")
        content = content.replace(b"\0", b"")
    if content.count(b"\n") + content.count(b"\r") > _MOST_LINES:
        why, remedy = f"the file has more than {_MOST_LINES} lines", "Import parts of it."
        raise BadInputError("the file is too large", where=str(path), why=why, remedy=remedy)
    parts, results = list[tuple[str, list[Result], str]](), list[Result]()
    for part in (part for text in plain_texts(content, PRINTED) for part in _parts(text, path)):
        parts.append(part)
        results += part[1]
        if len(results) > _MOST_RESULTS:
            why, remedy = f"the file has more than {_MOST_RESULTS} results", "Import parts of it."
            raise BadInputError("the file is too large", where=str(path), why=why, remedy=remedy)
    found = [one for one in results if isinstance(one, Foreign) and one.figures]
    if sum(len(figure.values) for test in found for figure in test.figures) > _MOST_RATES:
        why, remedy = f"the file has more than {_MOST_RATES} rates", "Import parts of it."
        raise BadInputError("the file is too large", where=str(path), why=why, remedy=remedy)
    if any(len(text) > _MOST_CHARACTERS for one in found for text in (one.command, one.path, one.host, one.version)):
        why, remedy = f"a command, path or name has more than {_MOST_CHARACTERS} characters", "Shorten it."
        raise BadInputError("the file is too large", where=str(path), why=why, remedy=remedy)
    # Quote commands as in a shell, so that the search for secrets finds all of them.
    tests = tuple(without_secrets_in(replace(one, command=for_shell(one.command))) for one in found)
    unread = tuple(one for one in results if isinstance(one, Unread))
    if not tests:
        name = next((name for name, _, _ in parts if name), "")
        if not name:
            raise _unknown(path, content[:_BEGINNING_BYTES].decode(errors="replace"))
        remedy = next((remedy for _, _, remedy in parts if remedy), "")
        why = ResultFile((), unread).left_out() or "nothing was measured, or every value is 0 or nan"
        raise BadInputError(f"the {name} output contains no result", where=str(path), why=why, remedy=remedy)
    return ResultFile(tests, unread)


def _unpacked(path: Path, content: bytes) -> bytes:
    if not content.startswith(b"\x1f\x8b"):
        return content
    remedy = "Unpack it with gunzip, and import the file in it."
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            content = packed.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInputError("the file cannot be unpacked", where=str(path), why=str(error), remedy=remedy) from error
    if len(content) > MOST_BYTES:
        why = f"unpacked, it has more than {format_bytes(MOST_BYTES)}"
        raise BadInputError("the file is too large", where=str(path), why=why, remedy="Import parts of it.")
    return content


def _parts(text: str, path: Path) -> Iterator[tuple[str, list[Result], str]]:
    if text.lstrip("> \n")[:1] in ("{", "[") and sum(map(text.count, ",[{")) > _MOST_VALUES:
        why = f"the file is JSON with more than {_MOST_VALUES} values"
        raise BadInputError("the file contains no result", where=str(path), why=why)
    cut_line = text.count("\n") + 1 if _MAY_GO_ON.search(text) else 0
    for name, pattern, read in TABLES:
        if found := pattern.search(text):
            lines = text[found.start() :].split("\n")
            rows = takewhile(lambda line: not any(tool.opens.match(line) for tool in PRINTED), lines)
            block = Block(text.count("\n", 0, found.start()) + 1, list(rows))
            yield name, _read_lines(name, read, block, cut_line), ""
            text = without(text, [block])
    documents = json_documents(text)
    for name, pattern, read_json in JSON:
        if mine := [document for document in documents if pattern.search(document.text)]:
            yield name, list(_read(name, read_json(mine), mine[0])), ""
            text = without(text, mine)
    for tool, block in cut(text, PRINTED):
        if any(len(set(pattern.findall(block.text))) > 1 for pattern in _ONCE):
            yield tool.name if tool else "", [block.unread(MIXED)], ""
        elif tool and tool.read:
            yield tool.name, _read_lines(tool.name, tool.read, block, cut_line), ""
        else:
            why = tool.name if tool else "rates of an unknown tool"
            yield tool.name if tool else "", [block.unread(why)], tool.remedy if tool else ""


def _read_lines(name: str, read: Callable[[Block], Iterator[Result]], block: Block, cut_line: int) -> list[Result]:
    results = list(_read(name, read(block), block))
    if block.first + len(block.lines) - 1 != cut_line:
        return results
    line = block.lines[-1].rstrip()
    last_word = line.rsplit(maxsplit=1)[-1:]
    cut_off = Block(block.first, [*block.lines[:-1], line.removesuffix("".join(last_word)) + "?"])
    certain = list(_read(name, read(cut_off), cut_off))
    named = certain == results or any(isinstance(one, Unread) and one.last == cut_line for one in certain)
    return certain if named else [*certain, Unread(cut_line, cut_line, "the file ends within this line")]


def _read(name: str, results: Iterator[Result], block: Block) -> Iterator[Result]:
    try:
        for result in islice(results, _MOST_RESULTS + 1):
            yield replace(result, form=name) if isinstance(result, Foreign) else result
    except _FAULTS as error:
        why = error.what if isinstance(error, BadInputError) else "a part is missing, or has an unexpected form"
        yield block.unread(f"{name}: {why}")


def _unknown(path: Path, text: str) -> BadInputError:
    if elsewhere := re.match(r"\s*Writing output to (\S+)\s*$", text):
        remedy = f"Import that file instead: strakes import {shlex.quote(elsewhere[1])}"
        return BadInputError("the file contains only the name of another result file", where=str(path), remedy=remedy)
    refuse_other_kind(path, "result", OTHER_KINDS["result"].name)
    why = f"expected one of: {', '.join(FORMATS)}"
    remedy = "Give the unchanged output file of the tool."
    return BadInputError("the result format is not known", where=str(path), why=why, remedy=remedy)

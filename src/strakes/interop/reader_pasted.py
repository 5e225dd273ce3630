"""Undo the changes that terminals, launchers, mailers and editors make to printed results."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from strakes.base.errors import BadInputError
from strakes.interop.reader_blocks import Printed

# Long runs of spaces, line ends or digits. They are shortened, because some patterns take quadratic time on them.
_LONG = re.compile(r"[^\S\n]{65,}|\n{65,}|\d{65,}")
_LONGEST = 64  # Length of a shortened run. Double the length can make the matching time four times longer.
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Colours, cursor movements and window titles (ECMA-48).
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?)")
# A row of IOR or mdtest that a mailer has wrapped at 72 to 80 columns: two lines.
_WRAPPED = re.compile(
    r"^( *(?:write |read |Operation |(?:File|Directory|Tree) \w+ ).{45,})\n"
    r" *((?:[-+.\d]+|nan|Dev|Std Dev)(?: +[-+.\d]+)*) *$",
    re.MULTILINE,
)
# Maximum length of a prefix before each line, from a launcher, logger or mailer. Search time grows in proportion.
_LONGEST_PREFIX = 80
_MOST_MIXED = 64  # Maximum number of programs whose lines alternate in a file. The reading time grows in proportion.
_MOST_LINES = 2_000_000  # Maximum number of lines of all these texts. Their reading takes about a minute (estimated).

# Bytes at the beginning of a file to search for prefixes. The search time is proportional to this number.
_BEGINNING = 1 << 20
_TIME = re.compile(r"\S*\d:\d\d:\d\d\S*|\d{10}\S*")  # Time in a prefix, which differs between lines of one program.


def plain_texts(content: bytes, tools: Iterable[Printed]) -> Iterator[str]:
    """Yield the text of a file as the tool printed it: without line prefixes, colours and foreign line ends.

    If lines of several programs alternate, yield one text for each program, with empty lines in place of other
    programs' lines. Raises BadInputError if there are too many programs.
    """
    text = content.decode("utf-16" if content.startswith(UTF_16) else "utf-8", errors="replace")
    text = _ESCAPES.sub("", text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))
    text = text.replace("\t", " ").replace("\N{NO-BREAK SPACE}", " ")
    text = _LONG.sub(lambda long: long[0][:_LONGEST], text)
    shapes = dict.fromkeys(_prefixes(text[:_BEGINNING].split("\n"), tools))
    for lines in _programs(text.split("\n"), "|".join(shapes), tools) if shapes else [[text]]:
        text = "\n".join(lines)
        if any(shape.endswith('" {0,0}') for shape in shapes):
            # Ansible and notebooks store lines as JSON strings, so remove quotation marks and backslashes.
            text = re.sub(r'(?:\\n)?",?$', "", text, flags=re.MULTILINE).replace('\\"', '"')
        yield _WRAPPED.sub(r"\1 \2", text)


def _programs(lines: list[str], prefix: str, tools: Iterable[Printed]) -> Iterator[list[str]]:
    """Yield the lines of each program without prefixes, and finally the lines that have no known prefix.

    Different prefixes mean different programs if results begin with each prefix and the lines alternate. All services
    of elbencho count as one program.
    """
    prefixes = [found[0] if (found := re.match(prefix, line)) else "" for line in lines]
    tagged = [(_TIME.sub("", one).strip(), line[len(one) :]) for one, line in zip(prefixes, lines, strict=True)]
    begins = re.compile("|".join(tool.opens.pattern for tool in tools))
    programs = dict.fromkeys(tag for tag, line in tagged if tag and begins.match(line))
    turns = sum(1 for _ in groupby(tag for tag, _ in tagged if tag in programs))
    if turns <= len(programs) or any("ervice now listening" in line for line in lines):
        programs = {}
    if len(programs) > _MOST_MIXED:
        remedy = "Write the output of each program to a file of its own."
        raise BadInputError(f"the file mixes the lines of more than {_MOST_MIXED} programs", remedy=remedy)
    if len(programs) * len(lines) > _MOST_LINES:
        remedy = "Write the output of each program to a file of its own."
        raise BadInputError(f"the file mixes too many lines of {len(programs)} programs", remedy=remedy)
    for program in [*programs, None]:
        yield [line if (tag if tag in programs else None) == program else "" for tag, line in tagged]


def _prefixes(lines: list[str], tools: Iterable[Printed]) -> Iterator[str]:
    """Yield a pattern for each prefix, such as a time stamp, that begins all lines of a result."""
    begins = [pattern.pattern for tool in tools for pattern in (tool.opens, tool.table) if pattern]
    opening = re.compile(rf"(.{{1,{_LONGEST_PREFIX}}}?)(?:{'|'.join([*begins, '{ *$'])})")
    found = [(index, match[1]) for index, line in enumerate(lines) if (match := opening.match(line))]
    tags = dict.fromkeys(_shape(prefix) for _, prefix in found if prefix.strip() and not prefix[-1].isalnum())
    any_tag = "|".join([*tags][:_MOST_MIXED])
    for index, prefix in found:
        shape, below = _shape(prefix), lines[index + 1 : index + 6]
        own, tagged = (2 * sum(bool(re.match(one, line)) for line in below) for one in (shape, any_tag))
        again = shape in tags and any(re.match(shape, line) for line in lines[index + 1 : index + _MOST_MIXED])
        if own > len(below) > 0 or (tagged > len(below) and again):
            yield shape


def _shape(prefix: str) -> str:
    words = [re.sub(r"\d+", r"\\d+", re.escape(word)) for word in prefix.split()]
    end = len(prefix) - len(prefix.rstrip())
    return rf" *{' +'.join(words)} {{0,{end}}}" if words else rf" {{1,{end}}}"

"""Undo changes to printed results by terminals, launchers, mailers and editors."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from strakes.interop.reader_blocks import Printed

# Longer runs of white space or digits are shortened, because some patterns take quadratic time on them. The node maps
# of mdtest, for example, have a digit for each rank.
_LONG = re.compile(r"[^\S\n]{65,}|\n{65,}|\d{65,}")
_LONGEST = 64  # characters; twice the value takes up to four times the time
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Colours, cursor movements and window titles (ECMA-48).
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?)")
# A row of IOR or mdtest that a mailer wrapped at 72 to 80 columns, with its rest on the next line.
_WRAPPED = re.compile(
    r"^( *(?:write |read |Operation |(?:File|Directory|Tree) \w+ ).{45,})\n"
    r" *((?:[-+.\d]+|nan|Dev|Std Dev)(?: +[-+.\d]+)*) *$",
    re.MULTILINE,
)
# Maximum length of a prefix before each line, from a launcher, logger or mailer. The time grows in proportion.
_LONGEST_PREFIX = 80
# Search only the first 1 MiB for prefixes: the time grows in proportion, and a live log may have millions of lines.
_BEGINNING = 1 << 20


def plain_text(content: bytes, tools: Iterable[Printed]) -> str:
    """Return the text of a file as the tool printed it: without prefixes of lines, colours and foreign line ends."""
    text = content.decode("utf-16" if content.startswith(UTF_16) else "utf-8", errors="replace")
    text = _ESCAPES.sub("", text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))
    text = text.replace("\t", " ").replace("\N{NO-BREAK SPACE}", " ")
    text = _LONG.sub(lambda long: long[0][:_LONGEST], text)
    shapes = dict.fromkeys(_prefixes(text[:_BEGINNING].split("\n"), tools))
    if shapes:
        text = re.sub(rf"^(?:{'|'.join(shapes)})", "", text, flags=re.MULTILINE)
    if any(shape.endswith('" {0,0}') for shape in shapes):
        # Ansible and notebooks store lines as JSON strings.
        text = re.sub(r'(?:\\n)?",?$', "", text, flags=re.MULTILINE).replace('\\"', '"')
    return _WRAPPED.sub(r"\1 \2", text)


def _prefixes(lines: list[str], tools: Iterable[Printed]) -> Iterator[str]:
    """Yield patterns of line prefixes that the first line of a result shares with most lines below it."""
    begins = [pattern.pattern for tool in tools for pattern in (tool.opens, tool.table) if pattern]
    opening = re.compile(rf"(.{{1,{_LONGEST_PREFIX}}}?)(?:{'|'.join([*begins, '{ *$'])})")
    for index, line in enumerate(lines):
        if (found := opening.match(line)) and (shape := _shape(found[1])):
            below = lines[index + 1 : index + 6]
            if below and 2 * sum(bool(re.match(shape, other)) for other in below) > len(below):
                yield shape


def _shape(prefix: str) -> str:
    """Return a pattern for the prefix with any numbers. Trailing spaces are optional, as in empty lines."""
    words = [re.sub(r"\d+", r"\\d+", re.escape(word)) for word in prefix.split()]
    end = len(prefix) - len(prefix.rstrip())
    return rf" *{' +'.join(words)} {{0,{end}}}" if words else rf" {{1,{end}}}"

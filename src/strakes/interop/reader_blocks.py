"""Split a result file into the output of each tool run: blocks of printed text, JSON documents and CSV rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from strakes.interop.foreign import Foreign, number

# A line with a rate, except the progress lines of fio, which contain "[eta".
_RATE = re.compile(
    r"^(?!.*\[eta ).*?(?:\d\s*(?:[KMGT]i?B/s(?:ec)?|[kK]?IOPS|ops/s(?:ec)?)\b|files/sec = \d|\bi/o +MB/sec\b"
    r"|Throughput MiB/s +: +\d)"
)
REPEATED = "the row repeats an earlier one"
MIXED = "the lines of several programs are mixed: write the output of each to a file of its own"


@dataclass(frozen=True)
class Unread:
    """A result that could not be read: lines ``first`` to ``last`` of its file, and the reason."""

    first: int
    last: int
    why: str

    def __str__(self) -> str:
        lines = f"lines {self.first}-{self.last}" if self.last > self.first else f"line {self.first}"
        return f"{lines} ({self.why})"


Result = Foreign | Unread


@dataclass(frozen=True)
class Block:
    """Consecutive lines of a file. ``first``: number of the first line."""

    first: int
    lines: Sequence[str]

    @property
    def text(self) -> str:
        """Return the lines as one text."""
        return "\n".join(self.lines)

    def unread(self, why: str) -> Unread:
        """Return an unread result: the lines of this block, with a reason."""
        return Unread(self.first, self.first + len(self.lines) - 1, why)

    def line_unread(self, index: int, why: str) -> Unread:
        """Return an unread result: one line of this block, with a reason."""
        return Unread(self.first + index, self.first + index, why)

    def parts(self, opens: Callable[[str], object]) -> tuple[Block, list[Block]]:
        """Split before each line that ``opens`` accepts. Return the lines before the first split, and the parts."""
        starts = [index for index, line in enumerate(self.lines) if opens(line)]
        ends = [*starts[1:], len(self.lines)]
        head = Block(self.first, self.lines[: starts[0]] if starts else self.lines)
        return head, [
            Block(self.first + start, self.lines[start:end]) for start, end in zip(starts, ends, strict=False)
        ]

    def pairs(self, pattern: re.Pattern[str]) -> dict[str, str]:
        """Return key -> value from the lines that match (groups 1 and 2). The first line with a key counts."""
        return {pair[1]: pair[2] for line in reversed(self.lines) if (pair := pattern.match(line))}

    def search(self, pattern: str) -> str:
        """Return the first group of the first match of the pattern, or "" without a match."""
        found = re.search(pattern, self.text, re.MULTILINE)
        return found[1].strip() if found else ""


@dataclass(frozen=True)
class Printed:
    """A tool that prints results as text.

    ``opens``, ``ends``: patterns of the first and the last line. ``table``: pattern of results that were copied without
    the first line. ``read``: reader, or None for an unsupported tool.
    """

    name: str
    opens: re.Pattern[str]
    table: re.Pattern[str] | None = None
    ends: re.Pattern[str] | None = None
    read: Callable[[Block], Iterator[Result]] | None = None
    remedy: str = ""


def cut(text: str, tools: Iterable[Printed]) -> Iterator[tuple[Printed | None, Block]]:
    """Yield (tool, block of its output) pairs, and (None, block) for other text that contains a rate."""
    known, lines = tuple(tools), text.split("\n")
    starts: list[tuple[int, Printed | None]] = [(0, None)]
    only_opened = True
    for index, line in enumerate(lines):
        current = starts[-1][1]
        opened = next((tool for tool in known if tool.opens.match(line)), None)
        found = opened or next((tool for tool in known if tool.table and tool.table.match(line)), None)
        # If several successive lines match the pattern of a first line, they begin only one run.
        if found and not (found is current and (only_opened or not opened)):
            starts.append((index, found))
            current, only_opened = found, True
        only_opened = only_opened and (opened is not None or not line.strip())
        if current and current.ends and current.ends.match(line):
            starts.append((index + 1, None))
            only_opened = True
    for (start, tool), (end, _) in pairwise([*starts, (len(lines), None)]):
        if tool or any(map(_RATE.match, lines[start:end])):
            yield tool, Block(start + 1, lines[start:end])


@dataclass(frozen=True)
class Document(Block):
    """A JSON object in a text. ``value``: the parsed object, or the text of the error if it is invalid."""

    value: Mapping[str, Any] | str


def json_documents(text: str) -> list[Document]:
    """Return the JSON objects that start at the beginning of a line. An invalid object extends to the end of the text.

    A ">" may precede an object, as in quoted mail. nan and inf are read as null.
    """
    text = re.sub(r"(:\s*)-?(?:nan|inf)\b", lambda found: f"{found[1]}null".ljust(len(found[0])), text)
    decoder, line, end = json.JSONDecoder(), 1, 0
    documents: list[Document] = []
    for match in re.finditer(r'^[ >]*\{(?=\s*["}])', text, re.MULTILINE):
        start = match.start()
        if start < end:
            continue
        line += text.count("\n", end, start)
        value: Mapping[str, Any] | str
        try:
            value, end = decoder.raw_decode(text, match.end() - 1)
        except (ValueError, RecursionError) as error:
            value, end = str(error), len(text)
        documents.append(Document(line, text[start:end].split("\n"), value))
        line += text.count("\n", start, end)
    return documents


def without(text: str, blocks: Iterable[Block]) -> str:
    """Return the text with the lines of the blocks replaced by empty lines."""
    lines = text.split("\n")
    for block in blocks:
        lines[block.first - 1 : block.first - 1 + len(block.lines)] = [""] * len(block.lines)
    return "\n".join(lines)


def csv_rows(block: Block, *rates: str) -> Iterator[dict[str, str] | Unread]:
    """Yield the rows of a CSV with a header. A truncated row, or a copy of an earlier row, becomes an unread result.

    ``rates``: columns with rates. The last column may contain unquoted commas, and may be missing if it is "command".
    """
    header = next(line for line in block.lines if line.strip())
    columns, seen = header.strip().split(","), {header}
    for index, line in enumerate(block.lines):
        cells = line.strip().split(",", len(columns) - 1)
        row = dict(zip(columns, cells, strict=False))
        is_shifted = any(row.get(name, "")[:1].isdigit() for name in ("access", "operation"))
        if (len(cells) < len(columns) - (columns[-1] == "command") or is_shifted) and line.strip():
            yield block.line_unread(index, "the row has fewer columns than the header")
        elif line in seen and line != header and any(number(row.get(rate, "")) for rate in rates):
            yield block.line_unread(index, REPEATED)
        elif line not in seen and line.strip():
            yield row
        seen.add(line)

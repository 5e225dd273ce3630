"""Cut a file into the runs of tools in it: blocks of printed text, JSON documents and CSV rows."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from strakes.errors import BadInputError
from strakes.interop.foreign import Foreign

UPPER_BOUND = (
    "computed from the ranks' own times without their start times, which the file lacks, so the rates are upper bounds"
)
# A line with a rate; outside of every known tool it belongs to a result that is not read.
_RATE = re.compile(r"\d\s*(?:[KMGT]i?B/s(?:ec)?|[kK]?IOPS|ops/s(?:ec)?)\b")


@dataclass(frozen=True)
class Unread:
    """Lines ``first`` to ``last`` of the file, which belong to a result that was not understood; ``why`` in words."""

    first: int
    last: int
    why: str


Result = Foreign | Unread


@dataclass(frozen=True)
class Block:
    """Consecutive lines of a file; ``first`` is the number of the first one."""

    first: int
    lines: Sequence[str]

    @property
    def text(self) -> str:
        """Return the lines as one text."""
        return "\n".join(self.lines)

    def unread(self, why: str) -> Unread:
        """Return the block as one that was not understood."""
        return Unread(self.first, self.first + len(self.lines) - 1, why)

    def line_unread(self, line: str, why: str) -> Unread:
        """Return one of the lines as not understood."""
        number = self.first + list(self.lines).index(line)
        return Unread(number, number, why)

    def parts(self, opens: Callable[[str], object]) -> tuple[Block, list[Block]]:
        """Return the lines before the first part, and the parts; each begins with a line that ``opens`` accepts."""
        starts = [index for index, line in enumerate(self.lines) if opens(line)]
        ends = [*starts[1:], len(self.lines)]
        head = Block(self.first, self.lines[: starts[0]] if starts else self.lines)
        return head, [
            Block(self.first + start, self.lines[start:end]) for start, end in zip(starts, ends, strict=False)
        ]

    def search(self, pattern: str) -> str:
        """Return the first group of the pattern, or "" without a match."""
        found = re.search(pattern, self.text, re.MULTILINE)
        return found[1].strip() if found else ""


@dataclass(frozen=True)
class Printed:
    """A tool that prints results as text.

    ``opens``: its first line. ``table``: a line of its results, which may have been copied without the first line.
    ``ends``: its last line. ``read``: its reader, None for a tool that is recognised but not supported.
    """

    name: str
    opens: re.Pattern[str]
    table: re.Pattern[str] | None = None
    ends: re.Pattern[str] | None = None
    read: Callable[[Block], Iterator[Result]] | None = None
    remedy: str = ""


@dataclass
class _OpenBlock:
    tool: Printed | None
    first: int
    lines: list[str] = field(default_factory=list)
    only_opened: bool = True


def cut(text: str, tools: Iterable[Printed]) -> Iterator[tuple[Printed | None, Block]]:
    """Yield the blocks of each tool in the text, and with None the lines between them that have a rate."""
    known = tuple(tools)
    block = _OpenBlock(None, 1)
    for number, line in enumerate(text.split("\n"), start=1):
        opened = next((tool for tool in known if tool.opens.match(line)), None)
        # Several first lines below each other belong to one run.
        if opened and not (opened is block.tool and block.only_opened):
            yield from _closed(block)
            block = _OpenBlock(opened, number)
        elif tool := next(
            (tool for tool in known if tool is not block.tool and tool.table and tool.table.match(line)), None
        ):
            yield from _closed(block)
            block = _OpenBlock(tool, number)
        block.lines.append(line)
        block.only_opened = block.only_opened and (opened is not None or not line.strip())
        if block.tool and block.tool.ends and block.tool.ends.match(line):
            yield from _closed(block)
            block = _OpenBlock(None, number + 1)
    yield from _closed(block)


def _closed(block: _OpenBlock) -> Iterator[tuple[Printed | None, Block]]:
    if block.tool or any(_RATE.search(line) for line in block.lines):
        yield block.tool, Block(block.first, block.lines)


def json_documents(text: str) -> Iterator[dict[str, Any] | Unread]:
    """Yield the JSON objects that begin a line of the text, and the rest of the text after an invalid one.

    Other lines are skipped. nan and inf, which printf writes for an empty mean, are read as null.
    """
    for start, _, document in _json_spans(text):
        if isinstance(document, str):
            yield Unread(text.count("\n", 0, start) + 1, text.count("\n") + 1, f"not valid JSON ({document})")
        else:
            yield document


def outside_json(text: str) -> str:
    """Return the text with empty lines in the place of its JSON documents, and without an invalid one to the end."""
    kept, end = "", 0
    for start, after, _ in _json_spans(text):
        kept += text[end:start] + "\n" * text.count("\n", start, after)
        end = after
    return kept + text[end:]


def _json_spans(text: str) -> Iterator[tuple[int, int, dict[str, Any] | str]]:
    """Yield beginning, end and value of each JSON object; for an invalid one, the end of the text and the error."""
    text = re.sub(r"(:\s*)-?(?:nan|inf)\b", lambda found: f"{found[1]}null".ljust(len(found[0])), text)
    decoder, end = json.JSONDecoder(), 0
    for match in re.finditer(r'^ *\{(?=\s*["}])', text, re.MULTILINE):
        if match.start() >= end:
            try:
                document, end = decoder.raw_decode(text, match.end() - 1)
            except (ValueError, RecursionError) as error:
                yield match.start(), len(text), str(error)
                return
            yield match.start(), end, document


def csv_rows(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV with a header, which files that were appended to repeat. Raises BadInputError."""
    reader = csv.DictReader(text.strip().splitlines())
    for row in reader:
        if None in row or None in row.values():
            where = f"line {reader.line_num}"
            raise BadInputError("a row and the header have different numbers of columns", where=where)
        if any(key != value for key, value in row.items()):
            yield row


def repetitions(rows: Iterable[Mapping[str, str]], phase: str = "") -> list[list[Mapping[str, str]]]:
    """Return the rows of each repetition. A new one begins when a rank recurs or ``phase`` changes."""
    found: list[list[Mapping[str, str]]] = []
    ranks: set[str] = set()
    for row in rows:
        if not found or row["rank"] in ranks or row.get(phase) != found[-1][0].get(phase):
            found.append([])
            ranks = set()
        found[-1].append(row)
        ranks.add(row["rank"])
    return found


def joint_rate(rates: Sequence[float | None], times_s: Sequence[float | None]) -> float | None:
    """Return the rate of all ranks over the time of the slowest, or None if a rate or a time is unknown."""
    pairs = [(rate, time_s) for rate, time_s in zip(rates, times_s, strict=True) if rate and time_s]
    if not pairs or len(pairs) < len(rates):
        return None
    return sum(rate * time_s for rate, time_s in pairs) / max(time_s for _, time_s in pairs)

"""Postmark: the report it prints at the end of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strakes.interop.foreign import Foreign, ForeignFigure, number
from strakes.interop.readers.blocks import Block, Printed, Result
from strakes.units import KIB, MIB

_FILES = {
    "created": "create",
    "Creation alone": "create-alone",
    "Mixed with transactions": "mixed",
    "read": "read-files",
    "appended": "append",
    "deleted": "delete",
    "Deletion alone": "delete-alone",
}
_TRANSACTIONS = re.compile(r".*seconds? of transactions \(([\d.]+) per second\)")
_ALONE = re.compile(r"\s*([A-Z][a-z ]+): \d+ files \(([\d.]+) per second\)")
_ALL = re.compile(r"\s*\d+ (created|read|appended|deleted) \(([\d.]+) per second\)")
_DATA = re.compile(r"\s*[\d.]+ \w+ (read|written) \(([\d.]+) (bytes|kilobytes|megabytes) per second\)")
_SCALE = {"bytes": 1, "kilobytes": KIB, "megabytes": MIB}


def read_text(block: Block) -> Iterator[Result]:
    """Read the reports of a session. Postmark counts whole seconds, so short runs give rough rates."""
    version = block.search(r"PostMark v(\S+)")
    _, reports = block.parts(re.compile(r"\s*\d+ seconds? total").match)
    for report in reports or [block]:
        figures = list(_figures(report))
        seconds = report.search(r"(\d+) seconds? total")
        note = f"Postmark counts whole seconds and ran for only {seconds}, so rates may be wrong by half"
        if figures:
            notes = (note,) if seconds and int(seconds) < 20 else ()
            yield Foreign("postmark", tuple(figures), version=version, notes=notes)
        else:
            yield report.unread("the report has no rates")


def _figures(report: Block) -> Iterator[ForeignFigure]:
    group = ""
    for line in report.lines:
        name, scale, rate = "", 0, None
        if match := _TRANSACTIONS.match(line):
            name, rate = "transactions", number(match[1])
        elif match := _ALL.match(line):
            name = group = _FILES[match[1]]
            rate = number(match[2])
        elif (match := _ALONE.match(line)) and match[1] in _FILES:
            name = f"{group}-mixed" if match[1] == "Mixed with transactions" else _FILES[match[1]]
            rate = number(match[2])
        elif match := _DATA.match(line):
            name, scale, rate = "read" if match[1] == "read" else "write", _SCALE[match[3]], number(match[2])
        if rate is not None:
            yield ForeignFigure(name, "bytes_per_s" if scale else "operations_per_s", (rate * (scale or 1),))


TEXT = Printed(
    "Postmark text",
    opens=re.compile(r".*PostMark v"),
    table=re.compile(rf"\s*\d+ seconds? total|{_TRANSACTIONS.pattern}"),
    read=read_text,
)

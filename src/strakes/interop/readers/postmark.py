"""Postmark: the report it prints at the end of a run."""

from __future__ import annotations

import re

from strakes.interop.foreign import Foreign, ForeignFigure, number
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
_ALONE = re.compile(r"^\s*([A-Z][a-z ]+): \d+ files \(([\d.]+) per second\)")
_ALL = re.compile(r"^\s*\d+ (created|read|appended|deleted) \(([\d.]+) per second\)")
_DATA = re.compile(r"^\s*[\d.]+ \w+ (read|written) \(([\d.]+) (bytes|kilobytes|megabytes) per second\)")
_SCALE = {"bytes": 1, "kilobytes": KIB, "megabytes": MIB}


def is_text(text: str) -> bool:
    """Return whether the text is a report of Postmark."""
    return "PostMark v" in text or ("seconds of transactions (" in text and "per second)" in text)


def read_text(text: str) -> Foreign:
    """Read the rates of transactions, files and data. Postmark counts whole seconds, so short runs give rough rates."""
    figures = []
    if (transactions := re.search(r"seconds of transactions \(([\d.]+) per second\)", text)) and (
        rate := number(transactions[1])
    ):
        figures.append(ForeignFigure("transactions", "operations_per_s", (rate,)))
    last = ""
    for line in text.splitlines():
        if match := _ALL.match(line):
            last = _FILES[match[1]]
            _add(figures, last, match[2])
        elif (match := _ALONE.match(line)) and match[1] in _FILES:
            _add(figures, f"{last}-mixed" if match[1] == "Mixed with transactions" else _FILES[match[1]], match[2])
        elif (match := _DATA.match(line)) and (rate := number(match[2])):
            figures.append(
                ForeignFigure("read" if match[1] == "read" else "write", "bytes_per_s", (rate * _SCALE[match[3]],))
            )
    version = re.search(r"PostMark v(\S+)", text)
    seconds = re.search(r"(\d+) seconds? total", text)
    rough = (
        (f"Postmark counts whole seconds and ran for only {seconds[1]}, so rates may be wrong by half",)
        if seconds and int(seconds[1]) < 20
        else ()
    )
    return Foreign("postmark", tuple(figures), version=version[1] if version else "", notes=rough)


def _add(figures: list[ForeignFigure], name: str, rate: str) -> None:
    value = number(rate)
    if value is not None:
        figures.append(ForeignFigure(name, "operations_per_s", (value,)))

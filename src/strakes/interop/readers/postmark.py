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
    return "PostMark v" in text or ("seconds of transactions (" in text and "per second)" in text)


def read_text(text: str) -> Foreign:
    """Rates of transactions, files and data. Postmark counts whole seconds: what took few of them is rough."""
    figures = []
    if (transactions := re.search(r"seconds of transactions \(([\d.]+) per second\)", text)) and (
        rate := number(transactions[1])
    ):
        figures.append(ForeignFigure("transactions", "operations_per_s", (rate,)))
    last = ""
    for line in text.splitlines():
        if found := _ALL.match(line):
            last = _FILES[found[1]]
            _add(figures, last, found[2])
        elif (found := _ALONE.match(line)) and found[1] in _FILES:
            _add(figures, f"{last}-mixed" if found[1] == "Mixed with transactions" else _FILES[found[1]], found[2])
        elif (found := _DATA.match(line)) and (rate := number(found[2])):
            figures.append(
                ForeignFigure("read" if found[1] == "read" else "write", "bytes_per_s", (rate * _SCALE[found[3]],))
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

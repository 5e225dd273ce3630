"""Parse sizes, times and rates that users write, and format them in binary units."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated

from strakes.base.errors import BadInputError

# Numbers with their range. strakes.model.record checks the range when it reads a record.
UnixTime = Annotated[float, (0.0, 2.5e11)]  # The year 9892. Python's dates end with the year 9999.
Share = Annotated[float, (0.0, 1.0)]

KIB = 1024
MIB = 1024**2
GIB = 1024**3
TIB = 1024**4

_SIZE_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_SIZE_UNITS |= {"k": KIB, "m": MIB, "g": GIB, "t": TIB, "kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB}
_COUNT_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_TIME_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_TIME_UNITS |= {unit: _TIME_UNITS[unit[0]] for unit in ("sec", "second", "min", "minute", "hour", "day", "week")}
_TIME_UNITS |= {f"{unit}s": seconds for unit, seconds in _TIME_UNITS.items() if len(unit) > 2}
# Maximum number of bytes, bytes per second, seconds or files: more than any file system needs.
MOST = 2.0**60
_NUMBER = re.compile(r"^\s*([0-9]+(?:\.[0-9]+)?)\s*+([a-zA-Z]*(?:/s)?)\s*$")
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": KIB, "Mi": MIB, "Gi": GIB, "Ti": TIB}
# "B" is a byte and "b" a bit.
_RATE_UNITS = {
    f"{prefix}{unit}{per}": factor / bits
    for prefix, factor in _PREFIXES.items()
    for unit, bits in (("B", 1), ("b", 8), ("bit", 8), ("Bit", 8))
    for per in ("/s", "ps")
}


def _parse(text: str, units: Mapping[str, float], kind: str, example: str) -> float:
    match = _NUMBER.match(text)
    factor = units.get(match[2], units.get(match[2].lower())) if match else None
    amount = float(match[1]) * factor if match and factor else 0.0
    if factor is None or amount > MOST:
        shown, why = text if len(text) <= 60 else f"{text[:60]}...", " is too much" if factor else ""
        raise BadInputError(f"not a valid {kind}: {shown!r}{why}", remedy=f"Write, for example, {example}.")
    return amount


def parse_bytes(text: str) -> int:
    """Return a size in bytes. K, M, ... are powers of 1024, and KB, MB, ... powers of 1000. Raises BadInputError.

    >>> parse_bytes("64KiB"), parse_bytes("1.5m"), parse_bytes("1KB")
    (65536, 1572864, 1000)
    """
    return int(_parse(text, _SIZE_UNITS, "size", "64KiB, 8MiB or 1GiB"))


def parse_seconds(text: str) -> float:
    """Return a duration in seconds. Raises BadInputError.

    >>> parse_seconds("90"), parse_seconds("2m"), parse_seconds("250ms"), parse_seconds("2 hours")
    (90.0, 120.0, 0.25, 7200.0)
    """
    return _parse(text, _TIME_UNITS, "duration", "90s, 2m or 1h")


def parse_rate(text: str) -> float:
    """Return a rate in bytes per second. The unit may be bytes (B) or bits (b, bit). Raises BadInputError.

    >>> parse_rate("12GB/s"), parse_rate("100Gb/s"), parse_rate("100 Gbit/s"), parse_rate("1GiB/s"), parse_rate("8kb/s")
    (12000000000.0, 12500000000.0, 12500000000.0, 1073741824.0, 1000.0)
    """
    return _parse(text, _RATE_UNITS, "rate", "12GB/s or 11GiB/s in bytes, 100Gb/s or 100Gbit/s in bits")


def parse_count(text: str) -> float:
    """Return a number without unit, such as a number of files. k, M, G and T are powers of 1000. Raises BadInputError.

    >>> parse_count("2000"), parse_count("1.5M"), parse_count("40k")
    (2000.0, 1500000.0, 40000.0)
    """
    return _parse(text, _COUNT_UNITS, "number", "2000, 40k or 1.5M")


def _significant(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def counted(number: float, noun: str, several: str = "") -> str:
    """Return a number with a noun, such as "2 files". ``several``: the plural, if it is irregular.

    >>> counted(1, "file"), counted(1.08, "file"), counted(2000, "file"), counted(0, "directory", "directories")
    ('1 file', '1 file', '2,000 files', '0 directories')
    """
    rounded = f"{number:,.0f}"
    return f"{rounded} {noun if rounded == '1' else several or f'{noun}s'}"


def format_bytes(count: float) -> str:
    """Return a size in binary units as text.

    >>> format_bytes(65536), format_bytes(1536), format_bytes(GIB - 4096)
    ('64 KiB', '1.50 KiB', '1.00 GiB')
    """
    value = float(count)
    if not math.isfinite(value):
        return "unknown"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1023.5 or unit == "TiB":
            break
        value /= 1024
    text = f"{value:.0f}" if value == int(value) else _significant(value)
    return f"{text} {unit}"


def typed_bytes(count: float) -> str:
    """Return a size, rounded down, in the form that options accept.

    >>> typed_bytes(64 * MIB), typed_bytes(3.7 * GIB), typed_bytes(26.4 * GIB), typed_bytes(GIB)
    ('64MiB', '3788MiB', '26GiB', '1GiB')
    """
    for factor, unit in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= 4 * factor or (count >= factor and count % factor == 0):
            return f"{count // factor:.0f}{unit}"
    return f"{count:.0f}"


def typed_seconds(seconds: float, *, up: bool = False) -> str:
    """Return a duration in the form that options accept. ``up``: round up.

    >>> typed_seconds(120), typed_seconds(90.0), typed_seconds(612.3, up=True), typed_seconds(0.25)
    ('2m', '90s', '11m', '250ms')
    """
    if up:
        seconds = math.ceil(seconds / 60) * 60 if seconds > 120 else math.ceil(seconds)
    if seconds >= 60 and seconds % 60 == 0:
        return f"{seconds // 60:.0f}m"
    return f"{seconds:.0f}s" if seconds >= 1 and seconds == int(seconds) else f"{1000 * seconds:.0f}ms"


def format_seconds(seconds: float) -> str:
    """Return a duration with three significant digits as text.

    >>> format_seconds(0.0000123), format_seconds(0.25), format_seconds(90)
    ('12.3 us', '250 ms', '90.0 s')
    """
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= factor:
            return f"{_significant(seconds / factor)} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


def format_duration(seconds: float) -> str:
    """Return a duration in one or two units as text.

    >>> format_duration(0.25), format_duration(5.234), format_duration(83.94), format_duration(129.2)
    ('250 ms', '5.2 s', '84 s', '2 min 9 s')
    >>> format_duration(3600), format_duration(5430), format_duration(100000)
    ('1 h', '1 h 30 min', '1 d 4 h')
    """
    if seconds < 1:
        return format_seconds(seconds)
    if seconds < 120:
        return f"{seconds:.0f} s" if round(seconds, 1) >= 10 else f"{seconds:.1f} s"
    seconds = round(seconds)
    hours, minutes = round(seconds / 3600), round(seconds / 60)
    if seconds < 3600:
        whole, unit, more, smaller = seconds // 60, "min", seconds % 60, "s"
    elif minutes < 1440:
        whole, unit, more, smaller = minutes // 60, "h", minutes % 60, "min"
    else:
        whole, unit, more, smaller = hours // 24, "d", hours % 24, "h"
    return f"{whole:,} {unit} {more} {smaller}" if more else f"{whole:,} {unit}"


def format_value(value: float, unit: str) -> str:
    """Return a measured value with its unit as text.

    >>> format_value(1048576 * 1234.0, "B/s"), format_value(612345.0, "op/s"), format_value(0.25, "s")
    ('1,234 MiB/s', '612,345 op/s', '250 ms')
    """
    if unit == "B/s":
        return f"{_significant(value / MIB)} MiB/s"
    if unit == "s":
        return format_seconds(value)
    if unit == "B":
        return format_bytes(value)
    return f"{_significant(value)} {unit}".rstrip()

"""Values in Pacemaker's configuration: booleans, times, scores, roles."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

# Pacemaker's units of time in seconds.
_FACTORS = {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 1e-3, "msec": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0, "hr": 3600.0}
# Maximum time in seconds, so that sums are finite.
_MOST_S = 1e12
TRUE = ("true", "yes", "on", "1", "y")


@cache
def read_table(name: str) -> Mapping[str, Any]:
    """Return the contents of a TOML file of this package. ``name``: path without suffix, such as ``options/drbd``."""
    return tomllib.loads((files("strakes.failover") / f"{name}.toml").read_text(encoding="utf-8"))


def renamed(kind: str) -> Mapping[str, str]:
    """Return the table of names in other releases -> names in Pacemaker 2. ``kind``: ``properties`` or ``roles``."""
    names: Mapping[str, str] = read_table("options/renamed")[kind]
    return names


def is_true(text: str) -> bool:
    """Return whether Pacemaker reads the text as true."""
    return text.strip().lower() in TRUE


def seconds(text: str) -> float:
    """Parse a time such as 10s, 500ms or PT1M30S as Pacemaker does. Return seconds; 0 for an invalid text."""
    iso = re.fullmatch(r"PT(?:(\d{1,18})H)?(?:(\d{1,18})M)?(?:(\d{1,18})S)?", text.strip())
    if iso:
        return sum(int(part or 0) * factor for part, factor in zip(iso.groups(), (3600.0, 60.0, 1.0), strict=True))
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([a-z]*)\s*", text)
    return min(float(match[1]), _MOST_S) * _FACTORS.get(match[2], 0.0) if match else 0.0


def score(text: str) -> float:
    """Parse a score. As in Pacemaker, a million or more counts as infinite. An invalid text is 0."""
    if text.lstrip("+-").upper() in ("INFINITY", "INF"):
        return float("-inf") if text.startswith("-") else float("inf")
    value = float(text) if re.fullmatch(r"[+-]?\d+", text) else 0.0
    return value if abs(value) < 1_000_000 else value * float("inf")


def role_of(text: str) -> str:
    """Return the current name of a role, such as Promoted for the older name Master."""
    text = text[:1].upper() + text[1:].lower()
    return renamed("roles").get(text, text)

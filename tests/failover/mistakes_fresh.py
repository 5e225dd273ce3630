"""Mistakes that were written down before the rules about them were; the lists are data."""

from __future__ import annotations

import tomllib
from pathlib import Path

from failover.mistakes import Planted

_HERE = Path(__file__).parent
_LISTS = [
    tomllib.loads((_HERE / f"mistakes_{name}.toml").read_text(encoding="utf-8"))["mistake"]
    for name in ("fresh", "known", "later", "last")
]
_ROWS = [row for rows in _LISTS for row in rows]
# Each with all rules that may tell of it; the first one is the one that is asked for. Without rules: known, and missed.
RULES = {row["name"]: tuple(row["rules"]) for row in _ROWS}
MISSED = tuple(name for name, rules in RULES.items() if not rules)
PLANTED = {
    row["name"]: Planted(row["rules"][0], row["base"], row["file"], row["old"], row["new"])
    for row in _ROWS
    if row["rules"]
}

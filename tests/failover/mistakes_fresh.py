"""Mistakes that were written down before the rules about them were; the list is data."""

from __future__ import annotations

import tomllib
from pathlib import Path

from failover.mistakes import Planted

_LIST = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["mistake"]
# Each with all rules that may tell of it; the first one is the one that is asked for.
RULES = {row["name"]: tuple(row["rules"]) for row in _LIST}
PLANTED = {row["name"]: Planted(row["rules"][0], row["base"], row["file"], row["old"], row["new"]) for row in _LIST}

"""Mistakes that were written down before the rules about them were; the lists are data."""

from __future__ import annotations

import tomllib
from pathlib import Path

from failover.mistakes import Planted

# In place of a rule: one of the cluster's own programs refuses the file.
REFUSED = "refused by its program"
_HERE = Path(__file__).parent
_LISTS = (
    *("fresh", "known", "later", "last", "public", "services", "sites", "others", "nodes", "fields", "operators"),
    *("strangers", "settings", "words", "manuals", "answers"),
)
_ROWS = {}
for _name in _LISTS:
    for _row in tomllib.loads((_HERE / f"mistakes_{_name}.toml").read_text(encoding="utf-8"))["mistake"]:
        _ROWS[_row["name"] if _row["name"] not in _ROWS else f"{_row['name']} ({_row['base']})"] = _row
# Each with all rules that may tell of it; the first one is the one that is asked for. Without rules: known, and missed.
RULES = {name: tuple(row["rules"]) for name, row in _ROWS.items()}
MISSED = tuple(name for name, rules in RULES.items() if not rules)
PLANTED = {
    name: Planted(row["rules"][0], row["base"], row["file"], row["old"], row["new"])
    for name, row in _ROWS.items()
    if row["rules"]
}

"""Results of detectors, kept so that a long contest can be run in parts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from bench.watch.contest import Contestant
from bench.watch.yardstick import AsItIs, Score


def keep(path: Path | None, contestants: Iterable[Contestant]) -> None:
    """Write all of them to ``path``; nothing where there is none."""
    if path is None:
        return
    rows = [
        {
            "name": each.name,
            "settings": each.settings,
            "as_it_is": asdict(each.as_it_is),
            "scores": [[kind, ratio, asdict(score)] for (kind, ratio), score in each.scores.items()],
        }
        for each in contestants
    ]
    path.write_text(json.dumps({"contestants": rows}, indent=1))


def read_kept(path: Path | None) -> dict[str, Contestant]:
    """Return by name what ``path`` holds."""
    if path is None or not path.exists():
        return {}
    document = json.loads(path.read_text())
    return {
        row["name"]: Contestant(
            row["name"],
            row["settings"],
            AsItIs(**row["as_it_is"]),
            {
                (kind, ratio): Score(**{**score, "delays_s": tuple(score["delays_s"])})
                for kind, ratio, score in row["scores"]
            },
        )
        for row in document["contestants"]
    }

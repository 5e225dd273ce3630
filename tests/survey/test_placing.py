"""Creation of directories on chosen metadata targets, in order of priority and within the budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from strakes.model.cell import Cell
from strakes.model.place import Place
from strakes.runs.records import CellSkipped, DirectoryPlaced, RunEvent
from strakes.survey.placing import place_cells
from strakes.targets.calls import call, mount_of
from strakes.targets.description import Placement
from strakes.targets.local import LocalTarget


class Placing(LocalTarget):
    """A file system on which the placement of a directory takes 20 s, a third of the budget."""

    spent_s = 0.0

    def make_directory(self, parent: Path, name: str, wanted: Placement) -> Placement:
        call("mkdir", str(parent / name))
        self.spent_s += 20.0
        return wanted


def session_on(target: LocalTarget, events: list[RunEvent]) -> Any:
    return SimpleNamespace(
        sides={"": SimpleNamespace(target=target, workspace=SimpleNamespace(path=target.path))},
        request=SimpleNamespace(budget_s=60.0, directory=target.path),
        writer=SimpleNamespace(append_event=events.append),
        progress=SimpleNamespace(update=lambda *_: None),
        elapsed_s=lambda: target.spent_s if isinstance(target, Placing) else 0.0,
    )


CELLS = [
    Cell("s", f"s/{name}", {}, priority=priority, place=Place(placement=Placement("manual", (0,)), kept=name))
    for name, priority in (("spare", 2), ("a", 1), ("b", 1))
]


def test_cells_of_a_lower_priority_are_left_out_where_placing_takes_long(tmp_path: Path) -> None:
    events: list[RunEvent] = []
    kept = place_cells(session_on(Placing(tmp_path, mount_of(tmp_path)), events), CELLS)
    assert [cell.key for cell in kept] == ["s/a", "s/b"]
    assert [event.cell for event in events if isinstance(event, DirectoryPlaced)] == ["s/a", "s/b"]
    (skipped,) = [event for event in events if isinstance(event, CellSkipped)]
    assert "a larger --budget" in skipped.reason
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize(("moves", "waits"), [(True, 1), (False, 0)])
def test_only_directories_that_move_are_waited_for(
    moves: bool, waits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("strakes.survey.placing.time.sleep", slept.append)
    target = Placing(tmp_path, mount_of(tmp_path))
    target.moves_directories = moves
    place_cells(session_on(target, []), [replace(CELLS[1], key="s/c")])
    assert len(slept) == waits

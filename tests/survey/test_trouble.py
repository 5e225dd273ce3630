"""Trouble of servers before or after a measurement is stored with the run and reported."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from strakes.runs.records import InterruptionsEnded, RunEvent, TroubleSeen
from strakes.survey.analysis_warnings import as_known_last
from strakes.survey.session import note_ends, note_trouble
from strakes.targets.description import Interruption


@pytest.mark.parametrize(("remote", "kept"), [(True, True), (False, False)])
def test_trouble_of_remote_servers_is_stored_and_reported(remote: bool, kept: bool) -> None:
    sentences = ("labfs-MDT0001 is in recovery: its clients are reconnecting (RECOVERING).",)
    events: list[RunEvent] = []
    notes: list[str] = []

    def side(trouble: tuple[str, ...]) -> Any:
        return SimpleNamespace(target=SimpleNamespace(trouble=lambda: trouble, mount=SimpleNamespace(remote=remote)))

    session: Any = SimpleNamespace(
        sides={"": side(sentences), "against": side(())},
        writer=SimpleNamespace(append_event=events.append),
        progress=SimpleNamespace(note=notes.append),
    )
    note_trouble(session, "before")
    assert events == ([TroubleSeen("before", sentences)] if kept else [])
    assert notes == ([sentences[0]] if kept else [])


def test_an_interruption_that_outlasts_its_run_is_stored_later_with_end_and_eviction() -> None:
    lasting, over = Interruption("OST0", 100, None), Interruption("OST0", 100, 102, evicted=True)
    older = Interruption("OST0", 10, 12)
    events: list[RunEvent] = []

    def session(*met: Interruption) -> Any:
        return SimpleNamespace(
            visits=[SimpleNamespace(interruptions=met)],
            sides={"": SimpleNamespace(target=SimpleNamespace(interruptions=lambda: (older, over)))},
            writer=SimpleNamespace(append_event=events.append),
        )

    note_ends(session(older))
    assert events == []
    note_ends(session(lasting))
    assert events == [InterruptionsEnded((older, over))]
    # The run did not meet the older interruption.
    assert as_known_last([lasting], [older, over]) == [over]

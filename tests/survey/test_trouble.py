"""Servers that are not well before or after a measurement are kept with the run, and told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from strakes.store.records import RunEvent, TroubleSeen
from strakes.survey.session import note_trouble


@pytest.mark.parametrize(("remote", "kept"), [(True, True), (False, False)])
def test_what_servers_complain_of_is_kept_and_told_once_for_each_side(remote: bool, kept: bool) -> None:
    sentences = ("labfs-MDT0001 takes its clients back at the moment (RECOVERING).",)
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

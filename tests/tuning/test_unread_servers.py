"""A search reports servers whose counters cannot be read, as a survey does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from strakes.runs.records import CountersUnread
from strakes.studies.measure_visit import note_unread
from strakes.survey.analysis_warnings import unread_servers

SENTENCE = "The counters of server 10.0.0.2 cannot be read: ssh 10.0.0.2 (Connection refused)."


def test_a_server_that_becomes_unreadable_is_stored_noted_and_a_warning_of_the_run() -> None:
    events, notes, left = list[CountersUnread](), list[str](), [(SENTENCE,), ()]
    site: Any = SimpleNamespace(watch=SimpleNamespace(unread=lambda: left.pop(0)))
    writer: Any = SimpleNamespace(append_event=events.append)
    for _ in range(2):
        note_unread(site, writer, notes.append)
    assert events == [CountersUnread((SENTENCE,))] and notes == [SENTENCE]
    run: Any = SimpleNamespace(events_of=lambda kind: events if kind is CountersUnread else [])
    (told,) = unread_servers(run)
    assert told.code == "counters-unread" and told.text == SENTENCE

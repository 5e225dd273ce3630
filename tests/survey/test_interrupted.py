"""A fail-over during a survey: disturbed runs are marked and repeated, and the report names the interruption."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from strakes.base.errors import MeasurementError
from strakes.model.cell import PLAIN, Cell, Place
from strakes.runs.records import (
    CountersUnread,
    InterruptionsEnded,
    RunEvent,
    TroubleSeen,
    Visit,
    event_from_record,
    event_to_record,
)
from strakes.runs.run import Run
from strakes.runs.store import Store
from strakes.studies import measure_watch
from strakes.studies.measure_visit import MOST_INTERRUPTED, note_unread
from strakes.studies.measure_watch import TargetWatch
from strakes.studies.open_close import OpenClose
from strakes.studies.registry import study_named
from strakes.survey import analysis_warnings
from strakes.survey.analysis_warnings import as_known_last
from strakes.survey.request import Request
from strakes.survey.runner import perform
from strakes.survey.session import note_ends, note_trouble
from strakes.targets.calls import mount_of
from strakes.targets.description import CLIENT, LOST, SERVER, Interruption, Observation, TargetRecovery
from strakes.targets.local import LocalTarget
from strakes.tuning.portraits import build_portrait
from survey import test_places as places


class Silent:
    def update(self, text: str, fraction: float, detail: str) -> None:
        pass

    def resumed(self, spent_s: float) -> None:
        pass

    def note(self, text: str) -> None:
        pass


class FailingOver(LocalTarget):
    """A file system that reports a new interruption in ``looks`` queries, beginning with query ``first``."""

    looked = 0
    first, looks = 3, 1

    def interruptions(self) -> tuple[Interruption, ...]:
        self.looked += 1
        if not self.first <= self.looked < self.first + self.looks:
            return ()
        return (Interruption("MDT0001", time.time() - 0.001, time.time(), evicted=True),)


def survey(target: LocalTarget, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr("strakes.survey.runner.detect", lambda *_: target)
    monkeypatch.setattr("strakes.survey.session._SETTLED_S", 0.1)
    request = Request("study", "open-close", target.path, (study_named("open-close"),), 2.0, 0.9, 0.1, 1, "strakes")
    store = Store()
    return store.open(perform(request, store, Silent()).id)


@pytest.mark.parametrize("place", [PLAIN, Place(kept="drawn", drawn=True)], ids=["plain", "drawn"])
def test_a_run_during_a_fail_over_is_marked_and_repeated(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = OpenClose.cells
    monkeypatch.setattr(
        OpenClose,
        "cells",
        lambda *words: [replace(cell, place=place) for cell in cells(*words) if isinstance(cell, Cell)],
    )
    target = FailingOver(tmp_path, mount_of(tmp_path))
    target.first = 6
    run = survey(target, monkeypatch)
    (number,) = [visit.visit for visit in run.visits if visit.ended == "interrupted"]
    disturbed, again = run.visits[number], run.visits[number + 1]
    assert disturbed.purpose == "measure"
    assert (again.cell, again.block, again.ended) == (disturbed.cell, disturbed.block, "ok")
    (lost,) = disturbed.interruptions
    assert lost.target == "MDT0001" and lost.evicted and not again.interruptions
    (warning,) = [one for one in build_portrait(run).warnings if one.code == "service-interrupted"]
    assert "MDT0001 did not serve this client" in warning.text and "which was evicted" in warning.text
    assert "Disturbed runs that were repeated: 1." in warning.text


def test_repeated_interruptions_of_the_service_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = FailingOver(tmp_path, mount_of(tmp_path))
    # One interruption in each visit, and one before the next visit.
    target.looks = 2 * MOST_INTERRUPTED
    with pytest.raises(MeasurementError, match="interrupted in all") as caught:
        survey(target, monkeypatch)
    assert "MDT0001 did not serve this client" in caught.value.why


class Counting(LocalTarget):
    """A file system whose counters are set by the test."""

    sign, value = SERVER, 1.0

    def observe(self) -> Observation:
        return {"mds.0": {"md.requests": 1.0, self.sign: self.value}}


@pytest.mark.parametrize("sign", [SERVER, CLIENT + LOST])
def test_a_server_that_was_taken_over_or_lost_shows_in_its_counters(sign: str, tmp_path: Path) -> None:
    target = Counting(tmp_path, mount_of(tmp_path))
    target.sign = sign
    watch = TargetWatch(target)
    watch.begin()
    watch.end()
    assert watch.interruptions(10.0, 20.0) == ()
    watch.begin()
    target.value = 2.0
    watch.end()
    assert watch.interruptions(10.0, 20.0) == (Interruption("mds.0", 10.0, 20.0),)


def test_only_interruptions_during_the_run_count(tmp_path: Path) -> None:
    class Remembering(LocalTarget):
        def interruptions(self) -> tuple[Interruption, ...]:
            return (Interruption("a", 100, 110), Interruption("b", 200, None))

    watch = TargetWatch(Remembering(tmp_path, mount_of(tmp_path)))
    for began, ended, names in (
        (50, 90, ""),
        (90, 101, "a"),
        (109, 120, "a"),
        (112, 190, ""),
        (195, 201, "b"),
        (250, 260, "b"),
    ):
        assert "".join(lost.target for lost in watch.interruptions(began, ended)) == names


class SlowToRead(places.Counting):
    """A file system whose servers take 0.1 s to answer, as a small machine does over ssh."""

    def observe(self) -> Observation:
        time.sleep(0.1)
        return super().observe()


def test_servers_that_are_slow_to_read_are_read_only_when_needed(tmp_path: Path) -> None:
    target = SlowToRead(tmp_path, mount_of(tmp_path))
    watch = TargetWatch(target)
    watch.begin()
    assert watch.end()[0]
    watch.begin()
    assert watch.end() == ({}, ())  # reading the servers would take too much of the time
    watch.begin(needed=True)
    assert watch.end()[0] == {"mds": {"md.requests": 1.0}}


@pytest.mark.parametrize(
    ("started_s", "began_s", "ended_s", "ahead_s"), [(1010, 1010, 1030, 0), (1130, 1000, 1060, 70)]
)
def test_a_server_whose_clock_is_wrong_does_not_date_an_interruption(
    started_s: float, began_s: float, ended_s: float, ahead_s: float
) -> None:
    recovery = TargetRecovery("lus-MDT0000", "COMPLETE", duration_s=20, evicted=1, started_unix_s=started_s)
    found = measure_watch._as_counted(Interruption("lus-MDT0000", 1000, 1060), recovery, whole=True)
    assert (found.began_unix_s, found.ended_unix_s, found.evicted_clients) == (began_s, ended_s, 1)
    assert found.clock_ahead_s == ahead_s
    assert ("the clock of its server is at least 70.0 s ahead" in str(found)) == bool(ahead_s)


def test_a_server_that_becomes_unreadable_is_reported_once(tmp_path: Path) -> None:
    target = LocalTarget(tmp_path, mount_of(tmp_path))
    watch = TargetWatch(target)
    target.observe = lambda: {"mds.0": {"md.requests": 1.0}}  # type: ignore[method-assign]
    watch.begin(needed=True)
    assert watch.unread() == ()
    target.unread = {"10.0.0.2": "The counters of server 10.0.0.2 cannot be read: ssh (Connection refused)."}
    watch.end()
    assert watch.unread() == tuple(target.unread.values())
    watch.begin(needed=True)
    watch.end()
    assert watch.unread() == ()


def test_a_server_that_could_not_be_read_is_stored_and_has_its_own_warning() -> None:
    sentence = "The counters of server 10.0.0.2 cannot be read: ssh 10.0.0.2 (Connection refused)."
    event, lines = CountersUnread((sentence,)), ("MDT0001: no counters from after the measurement",)
    assert event_from_record(event_to_record(event)) == event
    events, notes, left = list[CountersUnread](), list[str](), [(sentence,), ()]
    site: Any = SimpleNamespace(watch=SimpleNamespace(unread=lambda: left.pop(0)))
    writer: Any = SimpleNamespace(append_event=events.append)
    for _ in range(2):
        note_unread(site, writer, notes.append)
    assert events == [event] and notes == [sentence]
    run: Any = SimpleNamespace(
        events=[],
        cells=[],
        visits=[Visit(servers_disturbed=lines)],
        events_of=lambda kind: [event] if kind is CountersUnread else [],
    )
    (told,) = analysis_warnings._target(run)
    assert told.code == "counters-unread" and told.text == sentence


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
    # The older interruption did not occur during the run.
    assert as_known_last([lasting], [older, over]) == [over]

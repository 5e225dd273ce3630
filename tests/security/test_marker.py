"""The format of the workspace marker, and the decision whether its run is alive."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mounts import other_user
from strakes.targets import marker as module
from strakes.targets.marker import MARKER_NAME, Marker, NoMarker, are_live, read_marker

RUN = "20260101-000000-demo-1a2b"
OURS = Marker.of_this_process(RUN)
THEIRS = replace(OURS, host="elsewhere", boot="another")


@pytest.fixture
def directory(tmp_path: Path) -> int:
    place = tmp_path / f"strakes-{RUN}"
    place.mkdir()
    return os.open(place, os.O_RDONLY)


def test_a_heartbeat_is_stale_after_60_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    for age_s, lives in ((59.9, True), (60.0, False)):
        monkeypatch.setattr(time, "time", lambda age_s=age_s: 1000.0 + age_s)
        assert replace(THEIRS, heartbeat_unix_s=1000.0).seems_live() is lives


def test_every_marker_has_the_same_length_and_ends_with_a_newline() -> None:
    for marker in (OURS, replace(OURS, user="u" * 30)):
        assert len(marker.to_bytes()) == 512 and marker.to_bytes().endswith(b" \n")


def test_a_marker_that_is_too_large_is_invalid(tmp_path: Path, directory: int) -> None:
    path = tmp_path / f"strakes-{RUN}" / MARKER_NAME
    for size, good in ((8192, True), (8193, False)):
        path.write_bytes(OURS.to_bytes().rstrip().rjust(size))
        assert isinstance(read_marker(directory, path.parent.name), Marker) is good
    os.close(directory)


def test_only_stale_markers_of_invisible_processes_are_watched(directory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    dead = replace(OURS, pid=1 << 30)
    fresh = replace(THEIRS, heartbeat_unix_s=time.time())
    assert are_live([(directory, "x", OURS), (directory, "x", dead), (directory, "x", fresh)]) == [True, False, True]
    assert waited == []
    are_live([(directory, "x", replace(THEIRS, heartbeat_unix_s=0.0))])
    assert waited == [module.WATCH_S]
    os.close(directory)


def test_a_marker_that_proves_nothing_is_reported_with_the_reason(directory: int) -> None:
    place = Path(os.readlink(f"/proc/self/fd/{directory}"))
    (place / MARKER_NAME).write_bytes(b"[" * 8000)
    assert read_marker(directory, "strakes-a") == NoMarker("its marker was not written by strakes")
    (place / MARKER_NAME).write_bytes(Marker.of_this_process("a").to_bytes())
    (place / MARKER_NAME).chmod(0o600)
    with other_user():
        assert read_marker(directory, "strakes-a") == NoMarker("its marker cannot be read: Permission denied")
    os.chown(place / MARKER_NAME, 4_000_000, 0)
    assert read_marker(directory, "strakes-a") == NoMarker("its marker belongs to user 4000000")
    os.chown(place, 65534, 0)
    assert read_marker(directory, "strakes-a") == NoMarker("it belongs to user nobody")

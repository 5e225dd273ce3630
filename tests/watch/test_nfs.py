"""An NFS server watched by the counters of its client: response times and outages."""

from __future__ import annotations

from pathlib import Path

import pytest

from strakes.targets.mountinfo import Mount
from strakes.targets.nfs import NfsTarget
from strakes.watch.sources import NfsSource, TargetSource, sources_of
from strakes.watch.values import WatchEvent
from strakes.watch.watch import Watch

LINES = """device filer:/home mounted on /home with fstype nfs4 statvers=1.1
\txprt:\ttcp 832 1 {connected} 0 4 {sent} {received} 0 500 3 2 17 9
\tper-op statistics
\t        READ: {reads} {reads} 0 600 4700 {queue} {rtt} 150 0
\t       WRITE: 20 {writes_sent} 2 9000 300 1000 400 1500 1
"""
USUAL = {"connected": 1, "sent": 100, "received": 100, "reads": 30, "queue": 10, "rtt": 90, "writes_sent": 20}


class Kernel:
    """Mountstats text with counters that the test sets."""

    def __init__(self) -> None:
        self.counted: dict[str, int] = dict(USUAL)

    def __call__(self) -> str:
        return LINES.format(**self.counted)


def test_times_are_averages_since_the_last_reading() -> None:
    kernel = Kernel()
    source = NfsSource("/home", "filer", kernel)
    first = source.read(100.0)
    kernel.counted |= {"reads": 40, "queue": 60, "rtt": 290, "sent": 110, "received": 110, "writes_sent": 23}
    second = source.read(110.0)
    assert not first.figures and not first.missing and not second.waits
    assert second.figures == {
        "answer to read on /home": pytest.approx(0.02),
        "queue of read on /home": pytest.approx(0.005),
    }
    assert source.lacking(second) == ()


def events_of(silent_s: range, connected: int = 1) -> list[WatchEvent]:
    """Return the outages in ten minutes of readings from a server that does not answer during ``silent_s``."""
    kernel, watch, events = Kernel(), Watch(), []
    source = NfsSource("/home", "filer", kernel)
    for second in range(1000, 1600, 10):
        away = second in silent_s
        # The request sent at the start of the silence is answered after its end.
        kernel.counted["sent"] += 5 if not away else second == silent_s.start
        kernel.counted["received"] = kernel.counted["received"] if away else kernel.counted["sent"]
        kernel.counted["connected"] = connected if second >= silent_s.start else 1
        events += watch.add(source.read(float(second)))
    return [event for event in events if event.kind == "outage"]


def test_an_outage_of_the_server_is_reported_at_its_begin_and_end() -> None:
    begins, ends = events_of(range(1200, 1350, 10), connected=4)
    assert begins.text.startswith("filer is unavailable, for at least ") and begins.ended_s is None
    assert 1220 <= begins.told_s <= 1250 and begins.alarm
    assert begins.key == ends.key and ends.low is not None and ends.high is not None
    assert 120 <= ends.low <= 150 <= ends.high <= 180


def test_a_short_silence_is_reported_once_and_a_single_slow_answer_is_not() -> None:
    (event,) = events_of(range(1200, 1230, 10))
    assert event.ended_s is not None and event.low is not None and event.low <= 30 <= (event.high or 0) <= 60
    assert not events_of(range(1200, 1210, 10))


def test_an_idle_mount_is_not_an_outage() -> None:
    watch, source = Watch(), NfsSource("/home", "filer", Kernel())
    assert not [event for second in range(1000, 2000, 10) for event in watch.add(source.read(float(second)))]


def test_unreadable_counters_are_reported() -> None:
    def refuse() -> str:
        raise PermissionError(13, "Permission denied")

    assert NfsSource("/home", "filer", refuse).read(1.0).missing == (
        "/proc/self/mountstats cannot be read: Permission denied",
    )
    assert "has no entry for /away" in NfsSource("/away", "filer", Kernel()).read(1.0).missing[0]


def test_a_directory_on_nfs_is_watched_by_its_client_and_the_limits_are_stated() -> None:
    mount = Mount(1, 0, 0, 1, "/", "/home", (), "nfs4", "filer:/home", ("rw", "vers=4.2"))
    client, rest = sources_of(NfsTarget(Path("/home"), mount), None)
    assert isinstance(client, NfsSource) and isinstance(rest, TargetSource)
    lacking = rest.lacking(NfsSource("/home", "filer", Kernel()).read(1.0))
    assert [line.partition(":")[0] for line in lacking] == ["slow targets", "who causes the load"]
    assert "those of this client are read" in lacking[0]

"""The source for any target: heavy clients, fullness, fail-overs, slow disks, and missing counters."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from strakes.targets.calls import Quota, Sizes
from strakes.targets.description import SERVER, DataTargetState, Interruption, Observation
from strakes.targets.mountinfo import Mount
from strakes.targets.target import Target
from strakes.watch.alerts import AlertSender
from strakes.watch.live import LiveWatch
from strakes.watch.reading import CounterReading
from strakes.watch.ring import Ring
from strakes.watch.sources import TargetSource
from strakes.watch.values import WatchEvent
from strakes.watch.watch import Watch


class Served(Target):
    """A target with counters and states that the test sets."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Mount(1, 0, 1, "/", str(path), (), "served", "s", ()))
        self.observation: Observation = {}
        self.requests: dict[str, float] = {}
        self.states: dict[str, DataTargetState] = {}

    @classmethod
    def claims(cls, mount: Mount) -> bool:
        return mount.file_system == "served"

    def observe(self) -> Observation:
        return self.observation

    def data_target_states(self) -> dict[str, DataTargetState]:
        return self.states

    def client_requests(self) -> dict[str, float]:
        return self.requests


def test_fullness_is_the_value_of_df_for_an_ordinary_user(tmp_path: Path) -> None:
    told = TargetSource("/fs", Served(tmp_path)).read(1000.0).full
    words = ["df", "--output=pcent,ipcent", str(tmp_path)]
    space, files = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[-2:]
    # df rounds up to a whole per cent.
    assert 0 <= int(space[:-1]) - 100 * told[str(tmp_path)] < 1.01
    if files != "-":
        assert 0 <= int(files[:-1]) - 100 * told.get(f"{tmp_path} (files)", 0.0) < 1.01


def test_space_of_root_or_beyond_a_quota_counts_as_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quota = Quota("user 7", 95, 100, 3, 0)
    # 90 of 100 blocks are used and 5 are reserved for root; 40 of 50 inodes are used.
    told = ((4096, 4096, 100, 10, 5, 50, 10, 10, 0, 255), ())
    sizes = Sizes.of(*told)
    monkeypatch.setattr(Served, "_sizes", lambda _: sizes.within([quota]))
    target = Served(tmp_path)
    assert target.fullness() == {
        str(tmp_path): pytest.approx(90 / 95),
        f"{tmp_path} (files)": 0.8,
        f"{tmp_path} (quota of user 7)": 0.95,
    }
    source = TargetSource("/fs", target)
    assert [second for second in range(1000, 1300, 30) if source.read(float(second)).full] == [1000, 1120, 1240]


def test_a_rank_that_moves_to_another_server_has_a_new_start_time(tmp_path: Path) -> None:
    target, serving = Served(tmp_path), list[object]()
    source = TargetSource("/fs", target)
    for time_s, number in ((100.0, 4.0), (130.0, 7.0)):
        target.observation = {"rank 0": {SERVER: number}}
        serving.append(source.read(time_s).serving)
    assert serving == [{"rank 0": 0.0}, {"rank 0": 130.0}]


def test_a_client_that_becomes_heavy_is_named(tmp_path: Path) -> None:
    target, watch, events = Served(tmp_path), Watch(), list[WatchEvent]()
    source = TargetSource("/fs", target)
    for second in range(1000, 1600, 30):
        target.requests = {f"client.{number}": 5.0 * second for number in range(8)}
        target.requests["client.9 on node"] = 400.0 * min(max(second - 1300, 0), 150)
        events += watch.add(source.read(float(second)))
    begins, ends = (event for event in events if event.kind == "heavy")
    assert begins.text.startswith("client.9 on node causes 91% of the load: 400 requests a second")
    assert 1330 <= begins.told_s <= 1400 and ends.ended_s is not None
    assert watch.top["requests of clients"][0][0] == "client.9 on node"


def test_the_log_of_the_servers_is_read_seldom_except_after_a_fail_over(tmp_path: Path) -> None:
    class Remembering(Served):
        asked = 0

        def interruptions(self) -> tuple[Interruption, ...]:
            self.asked += 1
            return ()

    target = Remembering(tmp_path)
    source = TargetSource("/fs", target)
    for second in range(1000, 3000, 30):
        target.observation = {"rank 0": {SERVER: 1.0 if second < 2200 else 2.0}}
        source.read(float(second))
        if second == 2170:
            before = target.asked
    assert 10 <= before <= 15  # in 40 readings of the source
    assert 8 <= target.asked - before <= 12  # in 27 readings, four of them right after the fail-over


def test_an_expensive_target_is_read_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = [0.0]

    def took(seconds: float, readings: int) -> float:
        for _ in range(readings):
            target.costs = seconds
            source.read(1000.0)
        return source.every_s

    class Costly(Served):
        costs = 0.0

        def observe(self) -> Observation:
            spent[0] += self.costs
            return {}

    target = Costly(tmp_path)
    monkeypatch.setattr("strakes.watch.sources._spent_s", lambda: spent[0])
    source = TargetSource("/fs", target)
    assert took(0.1, 20) == 30
    assert took(1.4, 40) == pytest.approx(200, rel=0.01)
    assert took(9.0, 20) == 300
    assert took(0.1, 40) == 30


def test_a_source_with_a_longer_interval_is_not_read_sooner(tmp_path: Path) -> None:
    class Slower(TargetSource):
        asked = 0

        def read(self, time_s: float) -> CounterReading:
            self.asked += 1
            self.every_s = 30.0 if self.asked % 2 else 200.0
            return CounterReading(self.name, time_s)

    source, now = Slower("/fs", Served(tmp_path)), [1000.0]
    live = LiveWatch([], [source], Ring(tmp_path / "store"), AlertSender([]), clock=lambda: now[0])
    for _ in range(230):
        live.step()
        now[0] += 1
    assert source.asked == 2
    live.step()
    assert source.asked == 3


def test_nearly_full_and_unavailable_osds_are_reported(tmp_path: Path) -> None:
    target, watch, events = Served(tmp_path), Watch(), list[WatchEvent]()
    source = TargetSource("/fs", target)
    for second in range(1000, 2200, 30):
        target.observation = {"rank 0": {SERVER: 4.0}}
        away = 1300 <= second < 1600
        target.states = {
            f"osd.{number}": DataTargetState(not away or number == 2, None if away else 0.5 + 0.42 * (second > 1180))
            for number in range(3)
        }
        if second < 1100:
            target.states["osd.2"] = DataTargetState(serving=True, used=0.5)
        events += watch.add(source.read(float(second)))
    full, away_events = ([event for event in events if event.kind == kind] for kind in ("saturation", "outage"))
    assert [event.text for event in full] == [f"osd.{number} is 92% full" for number in range(3)]
    # The first reading after 1180 is at 1210.
    assert {event.began_s for event in full} == {1210.0}
    begins, ends = away_events
    assert begins.text == "2 targets of /fs are unavailable, for at least 30 s: osd.0, osd.1"
    assert begins.key == ends.key
    assert ends.text == "2 targets of /fs were unavailable: osd.0, osd.1 for 4 min 30 s to 5 min 30 s"


def test_osds_of_unknown_state_are_not_unavailable(tmp_path: Path) -> None:
    target, watch, events = Served(tmp_path), Watch(), list[WatchEvent]()
    source = TargetSource("/fs", target)
    for second in range(1000, 2200, 30):
        known = not 1300 <= second < 1600
        target.observation = {"rank 0": {SERVER: 4.0}} if known else {}
        target.states = {"osd.0": DataTargetState(serving=True)} if known else {}
        events += watch.add(source.read(float(second)))
    assert not events


def test_without_a_probe_outages_are_listed_as_lacking(tmp_path: Path) -> None:
    source = TargetSource("/fs", Served(tmp_path), probed=False)
    assert "outages: no counters show which targets are in service" in source.lacking(source.read(1000.0))


def test_what_cannot_be_watched_is_reported_once(tmp_path: Path) -> None:
    target, told, now = Served(tmp_path), list[WatchEvent](), [1000.0]
    source = TargetSource("/fs", target)
    live = LiveWatch([], [source], Ring(tmp_path / "store"), AlertSender([]), say=told.append, clock=lambda: now[0])
    for _ in range(10):
        live.step()
        now[0] += 30
    assert [event.text.split(":")[2].strip() for event in told] == ["slow targets", "outages", "who causes the load"]
    assert len(Ring(tmp_path / "store").events()) == 3
    assert "cannot do this on served" in told[0].text and not any(event.alarm for event in told)
    assert 0 < live.metrics.now["full"][str(tmp_path)] < 1


def test_a_target_with_all_counters_lacks_nothing_and_has_service_times(tmp_path: Path) -> None:
    target, watch = Served(tmp_path), Watch()
    source = TargetSource("/fs", target)
    for second, waited_s in ((1000, 10.0), (1030, 11.0)):
        counted = {"data.waited_s": waited_s, "data.waited_requests": waited_s * 100, "data.write_requests": 7.0}
        target.observation = {"osd.0": counted, "osd.1": counted, "rank 0": {SERVER: 4.0}}
        target.requests = {"client.1": 2.0}
        reading = source.read(float(second))
        watch.add(reading)
    assert source.lacking(reading) == () and watch.service_s == {
        "osd.0": pytest.approx(0.01),
        "osd.1": pytest.approx(0.01),
    }

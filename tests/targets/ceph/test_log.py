"""Interruptions of ranks and evictions of clients, from the log of a real cluster (16.2.15).

A metadata server was killed at 18:16:34 while client 4116 was stopped, and client 4112 was evicted by hand at 18:17:25.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from strakes.studies.measure_watch import TargetWatch
from strakes.targets.ceph_cluster import Eviction, evictions_in, interruptions_in
from strakes.targets.ceph_target import CephTarget
from strakes.targets.command import Completed
from strakes.targets.description import Interruption
from strakes.targets.mountinfo import parse_mountinfo

RECORDED = Path(__file__).parent / "recorded"
LOG: list[dict[str, Any]] = json.loads((RECORDED / "log_last.json").read_text())
BLOCKLIST: dict[str, str] = json.loads((RECORDED / "osd_dump_blocklist.json").read_text())["blocklist"]
MOUNT = parse_mountinfo("48 27 0:43 / /lab/mnt rw,relatime - fuse.ceph-fuse ceph-fuse rw,user_id=0")[0]
MAP = {"fs_name": "cephfs", "created": "2026-11-22T18:16:25.6+0000"}
KILLED, STOPPED, BY_HAND = 1795371393.77, 4116, 4112


def until(moment: str) -> list[dict[str, Any]]:
    return [entry for entry in LOG if entry["stamp"][11:19] <= moment]


def unix(moment: str) -> float:
    return datetime.fromisoformat(f"2026-11-22T{moment}+00:00").timestamp()


def test_a_killed_server_is_one_interruption_with_the_evictions_of_its_successor() -> None:
    (lost,) = interruptions_in(LOG, MAP, STOPPED)
    assert lost.target == "cephfs:0" and lost.evicted and lost.evicted_clients == 1
    assert KILLED < lost.began_unix_s < KILLED + 15 and lost.ended_unix_s == pytest.approx(unix("18:16:42.547561"))
    assert str(lost).endswith("which was evicted; 1 client was evicted: client.4116 (node7, 127.0.0.1).")


def test_a_later_eviction_is_not_part_of_the_interruption() -> None:
    endless = {**LOG[0], "name": "mds.a", "message": "evicting unresponsive client " + "a" * 260_000}
    assert [eviction.number for eviction in evictions_in([*LOG, endless])] == [STOPPED, BY_HAND]
    (lost,) = interruptions_in(LOG, MAP, BY_HAND)
    assert not lost.evicted and "4112" not in str(lost)


def test_the_addresses_are_those_that_the_cluster_has_blocked() -> None:
    assert {eviction.address for eviction in evictions_in(LOG)} < set(BLOCKLIST)


def test_a_rank_that_is_still_without_a_server_has_no_end() -> None:
    (lost,) = interruptions_in(until("18:16:38"), MAP)
    assert lost.ended_unix_s is None and lost.evicted_clients is None
    assert not interruptions_in(until("18:16:30"), MAP)


@pytest.mark.parametrize(
    "words",
    [
        ("daemon mds.a restarted", "Standby daemon mds.a assigned to filesystem cephfs as rank 0"),
        ("daemon mds.a restarted", "Standby daemon mds.b assigned to filesystem cephfs as rank 0"),
    ],
)
def test_a_restart_or_an_ordered_failure_of_a_server_is_an_interruption(words: tuple[str, ...]) -> None:
    new = words[-1].split()[2]
    messages = ["daemon mds.a is now active in filesystem cephfs as rank 0", *words]
    messages.append(f"daemon {new} is now active in filesystem cephfs as rank 0")
    log = [
        {"stamp": f"2026-11-22T18:20:0{second}.0+0000", "name": "mon.a", "message": message}
        for second, message in enumerate(messages)
    ]
    (lost,) = interruptions_in(log, MAP)
    assert lost == Interruption("cephfs:0", unix("18:20:01"), unix("18:20:03"), evicted_clients=0)
    # A log that begins after the first two messages.
    assert interruptions_in(log[2:], MAP) == (replace(lost, began_unix_s=unix("18:20:02")),)
    assert not interruptions_in(log[2:], {**MAP, "created": "2026-11-22T18:20:02.0+0000"})


def test_other_file_systems_of_the_cluster_are_left_out() -> None:
    assert not interruptions_in(LOG, {**MAP, "fs_name": "archive"})
    with pytest.raises(ValueError, match="no time"):
        interruptions_in(LOG, {**MAP, "created": "0001-01-01T00:00:00+14:00"})


def test_older_messages_and_evictions_without_blocklisting_are_understood() -> None:
    words = (
        "evicting unresponsive client node8 (77), after 301.5 seconds",
        "Evicting (and blacklisting) client session 78 (10.0.0.8:0/9)",
        "Evicting client session 79 (10.0.0.9:0/9)",
    )
    log = [{"stamp": "2026-11-22T18:00:00.0+0000", "name": "mds.a", "message": message} for message in words]
    expected = ["client.77 (node8)", "client.78 (10.0.0.8)", "client.79 (10.0.0.9)"]
    assert [str(eviction) for eviction in evictions_in(log)] == expected


class Cluster:
    """A runner that answers for the cluster and for a mount with this client number."""

    def __init__(self, number: int, log: Sequence[dict[str, Any]]) -> None:
        self.number, self.log = number, log
        self.asked: list[str] = []

    def __call__(self, argv: Sequence[str], timeout_s: float = 10.0) -> Completed:
        words = " ".join(map(str, argv))
        self.asked.append(words)
        if "getxattr" in words:
            values = {"ceph.client_id": f"client{self.number}", "ceph.cluster_fsid": "f"}
            told = {name: value for name, value in values.items() if name in words}
            return Completed(tuple(argv), 0, repr(told), "")
        if "ceph-conf" in words:
            return Completed(tuple(argv), 0, "/nowhere/asok", "")
        answers = {
            " fsid ": {"fsid": "f"},
            " log last ": self.log,
            " fs dump ": json.loads((RECORDED / "fs_dump.json").read_text()),
            " osd dump ": {**json.loads((RECORDED / "osd_dump.json").read_text()), "blocklist": BLOCKLIST},
            " health detail ": {"checks": {}},
            " version ": {"version": "16.2.15"},
        }
        answer: object = next((answer for name, answer in answers.items() if name in words), {})
        return Completed(tuple(argv), 0, json.dumps(answer), "")


def target(number: int, log: Sequence[dict[str, Any]] = LOG) -> tuple[CephTarget, Cluster]:
    cluster = Cluster(number, log)
    return CephTarget(Path("/lab/mnt"), MOUNT, runner=cluster), cluster


def test_the_interruption_of_a_visit_names_the_evicted_clients() -> None:
    (lost,) = TargetWatch(target(1)[0]).interruptions(unix("18:16:30"), unix("18:16:50"))
    assert not lost.evicted and lost.evicted_names == ("client.4116 (node7, 127.0.0.1)",)
    assert not TargetWatch(target(1)[0]).interruptions(unix("18:16:50"), unix("18:18:00"))


def test_the_eviction_of_this_client_is_reported_until_it_is_mounted_again() -> None:
    mounted, cluster = target(BY_HAND)
    *_, lost = mounted.interruptions()
    assert lost.evicted and lost.began_unix_s == pytest.approx(unix("18:17:25.115412")) and lost.ended_unix_s is None
    assert "client.4112 (127.0.0.1)" in str(lost)
    (blocked,) = [line for line in mounted.trouble() if "blocklisted" in line]
    assert "client.4112 (127.0.0.1), was evicted and is blocklisted until 2026-11-22T19:17:25" in blocked
    cluster.number = 4711
    *_, over = mounted.interruptions()
    assert over == replace(lost, ended_unix_s=lost.began_unix_s)
    assert not any(one.evicted for one in target(4711)[0].interruptions())


ODD = ("null", "[]", "{}", "5", '"x"', "[null]", '{"a": NaN}', '[{"a": 1e999}]', "9" * 6000, "9" * 400)


@pytest.mark.parametrize("question", [" fsid ", " fs dump ", " osd dump ", " log last ", " health detail ", " tell "])
def test_an_answer_of_an_unexpected_form_is_named(question: str) -> None:
    for odd in (*ODD, '{"fsid": "\\ud800"}', "[" * 200_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000):
        mounted, cluster = target(BY_HAND)

        def ask(argv: Sequence[str], timeout_s: float = 10.0, odd: str = odd, cluster: Cluster = cluster) -> Completed:
            asked = f" {' '.join(map(str, argv))} "
            return Completed(tuple(argv), 0, odd, "") if question in asked else cluster(argv, timeout_s)

        mounted.run = ask
        assert "is not understood" in mounted.describe().notes[0]
        for call in (mounted.observe, mounted.data_target_states, mounted.client_requests, mounted.interruptions):
            assert len(call()) >= 0
        assert all(map(str, (*mounted.trouble(), *mounted.limits(), mounted.striping())))


def test_many_evicted_clients_are_counted_and_ten_are_named() -> None:
    names = tuple(str(Eviction(0, "mds.a", number)) for number in range(12))
    text = str(Interruption("cephfs:0", 0, 1, evicted_clients=12, evicted_names=names))
    assert "12 clients were evicted: client.0, " in text and text.endswith("client.9 and 2 more.")

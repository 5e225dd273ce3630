"""How often the monitors are queried if the servers' administration sockets are on this machine."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from strakes.targets.ceph_target import CephTarget
from strakes.targets.command import DEFAULT_TIMEOUT_S, Completed
from strakes.targets.description import SERVER
from strakes.targets.mountinfo import parse_mountinfo

RECORDED = Path(__file__).parent / "recorded"


@contextmanager
def daemon(path: Path, answers: Mapping[str, Any]) -> Iterator[None]:
    """Serve an administration socket like a Ceph daemon: a JSON query up to a zero byte, a length and a JSON answer."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection, connection.makefile("rb") as asked:
                    question = b""
                    while not question.endswith(b"\0"):
                        question += asked.read(1)
                    answer = json.dumps(answers[json.loads(question[:-1])["prefix"]]).encode()
                    connection.sendall(struct.pack(">I", len(answer)) + answer)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)


class Cluster:
    """A runner that answers the Ceph programs and records their command lines."""

    def __init__(self, sockets: Path) -> None:
        self.fs_dump = json.loads((RECORDED / "fs_dump.json").read_text())
        self.started: list[str] = []
        self._sockets = sockets

    def __call__(self, argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
        words = " ".join(argv)
        self.started.append(words)
        answer = "{}"
        if argv[0] == "ceph-conf":
            answer = str(self._sockets / argv[argv.index("--name") + 1])
        elif "fs dump" in words:
            answer = json.dumps(self.fs_dump)
        elif "osd dump" in words:
            answer = json.dumps(json.loads((RECORDED / "osd_dump.json").read_text()) | {"osds": []})
        elif argv[0] == "ceph":
            answer = json.dumps({"fsid": "a"} if "fsid" in argv else [])
        return Completed(tuple(argv), 0, answer, "")

    def asked(self, words: str) -> int:
        return sum(words in started for started in self.started)


def test_the_monitors_are_queried_again_only_when_the_servers_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strakes.targets.ceph_target._MAP_FRESH_S", 0.0)
    cluster = Cluster(tmp_path)
    mdsmap = cluster.fs_dump["filesystems"][0]["mdsmap"]
    status = {one["name"]: {"whoami": one["rank"], "id": one["gid"]} for one in mdsmap["info"].values()}
    dump = json.loads((RECORDED / "mds_perf_dump.json").read_text())
    (mount,) = parse_mountinfo("48 27 0:43 / /lab/mnt rw - ceph 10.0.0.1:/ rw")
    target = CephTarget(Path("/lab/mnt"), mount, runner=cluster)
    with ExitStack() as stack:
        for name, answer in status.items():
            stack.enter_context(daemon(tmp_path / f"mds.{name}", {"status": answer, "perf dump": dump}))
        for _ in range(3):
            assert target.interruptions() == ()
            served = {name: counters[SERVER] for name, counters in target.observe().items()}
        assert served == {"cephfs:0": status["c"]["id"], "cephfs:1": status["a"]["id"]}
        assert (cluster.asked("fs dump"), cluster.asked("log last"), cluster.asked("tell")) == (1, 3, 0)
        # The same daemon after a restart has a new number (gid).
        holder = next(one for one in mdsmap["info"].values() if one["name"] == "a")
        holder["gid"] = status["a"]["id"] = 9999
        assert target.interruptions() == () and target.observe()["cephfs:1"][SERVER] == 9999
        assert target.interruptions() == () and cluster.asked("fs dump") == 2


def test_osds_report_their_usage_and_the_monitors_report_which_silent_osds_are_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = [{"osd": number, "up": 1, "in": 1, "state": ["exists"]} for number in range(4)]

    class WithStores(Cluster):
        def __call__(self, argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Completed:
            done = super().__call__(argv, timeout_s)
            if "osd dump" in " ".join(argv):
                return Completed(tuple(argv), 0, json.dumps(json.loads(done.stdout) | {"osds": stores}), "")
            if "osd df" in " ".join(argv):
                return Completed(tuple(argv), 0, (RECORDED / "osd_df.json").read_text(), "")
            return Completed(tuple(argv), 2, "", "ENXIO") if "tell" in argv else done

    cluster = WithStores(tmp_path)
    (mount,) = parse_mountinfo("48 27 0:43 / /lab/mnt rw - ceph 10.0.0.1:/ rw")
    target = CephTarget(Path("/lab/mnt"), mount, runner=cluster)
    dump = json.loads((RECORDED / "osd_perf_dump.json").read_text())
    assert target.data_target_states() == {}
    with ExitStack() as stack:
        for number in range(4):
            stack.enter_context(daemon(tmp_path / f"osd.{number}", {"perf dump": dump}))
        for _ in range(2):
            target.observe()
            states = target.data_target_states()
        assert {name: state.serving for name, state in states.items()} == dict.fromkeys(states, True) and len(
            states
        ) == 4
        assert states["osd.0"].used == pytest.approx(0.0709, abs=1e-4) and cluster.asked("osd dump") == 1
    # No OSD answers: two are down, one was removed, and the monitors have not yet noticed the failure of one.
    stores[0]["up"] = stores[1]["up"] = 0
    del stores[2]
    target.observe()
    states = target.data_target_states()
    assert [states[f"osd.{number}"].serving for number in range(4)] == [False, False, True, True]
    assert states["osd.3"].used is None and cluster.asked("osd dump") == 2
    # Too many OSDs to query one by one.
    monkeypatch.setattr("strakes.targets.ceph_target.MOST_ELSEWHERE", 1)
    for number in range(4):
        (tmp_path / f"osd.{number}").unlink()
    target.observe()
    assert target.data_target_states() == target.data_target_states() and cluster.asked("osd df") == 1
    assert target.data_target_states()["osd.0"].used == pytest.approx(0.0709, abs=1e-4)

"""Requests of clients, computed from the MDS load average, which decays with a half-life of one minute."""

from __future__ import annotations

from itertools import pairwise

import pytest

from strakes.base.errors import MeasurementError
from strakes.targets.ceph_tool import ClientRequests, loads_of_clients


class Server:
    """An MDS whose load average decays as in Ceph, in steps of 0.1 s."""

    def __init__(self) -> None:
        self.load = 0.0

    def works(self, seconds: float, rate: float) -> None:
        for _ in range(round(seconds * 10)):
            self.load = self.load * 0.5 ** (0.1 / 60) + rate / 10

    @property
    def told(self) -> dict[str, float]:
        return {"client.1": float(int(self.load))}


def test_loads_are_read_from_sessions() -> None:
    sessions = [
        {"id": 4114, "request_load_avg": 600, "client_metadata": {"hostname": "node1"}},
        {"id": 4115, "request_load_avg": 0},
        {"id": 4116},
    ]
    assert loads_of_clients(sessions) == {"client.4114 on node1": 600, "client.4115": 0}
    assert loads_of_clients(MeasurementError("no answer")) is None


@pytest.mark.parametrize("each_s", [5, 30, 90])
def test_a_change_of_the_rate_is_seen_at_once_in_spite_of_the_decay(each_s: int) -> None:
    server, requests, sent = Server(), ClientRequests(), [0.0]
    for reading in range(9):
        server.works(each_s, 100.0 if 3 < reading < 6 else 10.0)
        sent.append(requests.add(reading * each_s, {"mds.a": server.told})["client.1"])
    rates = [(after - before) / each_s for before, after in pairwise(sent[1:])]
    assert rates == pytest.approx([10, 10, 10, 100, 100, 10, 10, 10], abs=1)


def test_requests_to_two_ranks_are_added_and_another_server_counts_from_nothing() -> None:
    first, second, requests = Server(), Server(), ClientRequests()
    first.works(300, 20.0)
    requests.add(0, {"mds.a": first.told, "mds.b": {}})
    first.works(30, 20.0)
    second.works(30, 40.0)
    assert requests.add(30, {"mds.a": first.told, "mds.b": second.told})["client.1"] == pytest.approx(1800, rel=0.02)
    # Requests before the first reading of a server have no known time, so they are not counted.
    third = Server()
    third.works(10, 20.0)
    second.works(30, 0.0)
    assert requests.add(60, {"mds.c": third.told, "mds.b": second.told})["client.1"] == pytest.approx(1800, rel=0.02)
    third.works(30, 20.0)
    second.works(30, 0.0)
    sent = requests.add(90, {"mds.c": third.told, "mds.b": second.told})
    assert sent["client.1"] == pytest.approx(2400, rel=0.03)


def test_requests_during_a_silence_of_the_server_are_counted_later() -> None:
    server, requests = Server(), ClientRequests()
    server.works(300, 20.0)
    requests.add(0, {"mds.a": server.told})
    assert requests.add(30, {"mds.a": None}) == {"client.1": 0}
    server.works(60, 20.0)
    assert requests.add(60, {"mds.a": server.told})["client.1"] == pytest.approx(1200, rel=0.02)
    # A client that has left is forgotten.
    assert requests.add(90, {"mds.a": {}}) == {}

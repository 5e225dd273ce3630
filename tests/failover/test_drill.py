"""Drills: on a directory, where what is lost is lost on purpose, and on a CephFS whose metadata server is killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import StrakesRunner
from lab.running import Labs, need, own_labs
from strakes.errors import BadInputError
from strakes.failover.drill.faults import fault_of

SHORT = ("--clients", "2", "--rate", "20", "--before", "1s", "--after", "1s", "--yes-this-interrupts-service")


@pytest.fixture
def labs() -> Iterator[Labs]:
    need("ceph")
    with own_labs() as found:
        yield found


def test_nothing_is_done_without_consent_or_in_a_dry_run(strakes: StrakesRunner, tmp_path: Path) -> None:
    mark = tmp_path / "done"
    refused = strakes("failover", "drill", tmp_path, "--fault", f"touch {mark}")
    assert refused.returncode == 2 and "--yes-this-interrupts-service" in refused.stderr
    rehearsed = strakes("failover", "drill", tmp_path, "--fault", f"touch {mark}", "--dry-run", "--yes-this-interrupts-service")
    assert rehearsed.returncode == 0 and f"touch {mark}" in rehearsed.stderr
    assert not any(tmp_path.iterdir())


def test_a_fault_that_harms_nobody_loses_nothing_and_leaves_nothing(strakes: StrakesRunner, tmp_path: Path) -> None:
    done = strakes("failover", "drill", tmp_path, "--fault", "true", *SHORT, "--json", "-")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["acknowledged"] == 80 and document["lost"] == document["failed"] == 0
    assert len(document["line"]["outages"]) == 2 and all(one["back_after_s"] is not None for one in document["line"]["outages"])
    assert any(one["text"] == "true" for one in document["line"]["moments"])
    assert not any(tmp_path.iterdir())


def test_an_acknowledged_file_that_is_gone_is_counted_as_lost(strakes: StrakesRunner, tmp_path: Path) -> None:
    gone = f"sh -c 'rm {tmp_path}/strakes-*/drill/probe.1.probe/f1.000'"
    done = strakes("failover", "drill", tmp_path, "--fault", gone, *SHORT)
    assert done.returncode == 1 and "80 files acknowledged, 1 of them missing afterwards" in done.stdout, done.stdout + done.stderr
    assert not any(tmp_path.iterdir())


def test_a_fault_that_cannot_be_done_is_told_in_its_own_words(strakes: StrakesRunner, tmp_path: Path) -> None:
    done = strakes("failover", "drill", tmp_path, "--fault", "ls /nowhere", *SHORT)
    assert done.returncode == 1 and "the fault could not be done" in done.stderr and "No such file" in done.stderr
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(("text", "said"), [("cephfs-mds", "is for a CephFS lab"), ("", "is empty"), ("sh -c 'x", "not a command")])
def test_a_fault_that_is_none_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=said):
        fault_of(text, tmp_path)


@pytest.mark.lab
def test_clients_of_a_killed_metadata_server_wait_for_the_standby_and_lose_nothing(labs: Labs, strakes: StrakesRunner) -> None:
    quick = ("--beacon-interval", "0.25s", "--beacon-grace", "1.5s")
    mount = labs.up("ceph", "--osds", "1", "--mds", "1", "--standby", "1", "--store", "memstore", "--osd-size", "2GiB", *quick)
    drilled = ("failover", "drill", mount, "--fault", "cephfs-mds", "-n", "10", "--before", "3s", "--after", "15s")
    done = strakes(*drilled, "--yes-this-interrupts-service", "--json", "-", environment=labs.environment, timeout_s=300)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["acknowledged"] == 1800 and document["lost"] == 0
    first, _, last = document["back_after_s"]
    assert 1.0 < first <= last < 15
    texts = [one["text"] for one in document["line"]["moments"]]
    assert "up:active" in texts and texts.index("up:active") > next(place for place, text in enumerate(texts) if text.startswith("kill -9"))
    assert not [path for path in mount.iterdir() if path.name.startswith("strakes-")]
    again = strakes(*drilled, "--yes-this-interrupts-service", environment=labs.environment)
    assert again.returncode == 2 and "no metadata server stands by" in again.stderr

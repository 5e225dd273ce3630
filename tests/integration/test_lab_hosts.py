"""Several hosts on one machine: measurements across them, and the error when one of them fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import wait_for
from lab.running import SOURCES, Labs
from runs.test_mpi import needs_mpi
from runs.test_mpi_family import needs_open_mpi
from strakes.runs.store_files import read_json_lines

pytestmark = [pytest.mark.lab, pytest.mark.more, needs_mpi]
HOSTS = ("--launcher", "mpi", "--hosts", "n1,n2,n3,n4", "--ranks-per-node", "2")
# Debian's mpirun of Open MPI, with the engine built for it.
OPEN_MPI = (*HOSTS, "--mpiexec", "mpirun.openmpi")
ENDLESS = """
ranks = 8
[[phase]]
kind = "metadata"
name = "create"
operation = "file-create"
directory = "unique"
items = 50
[[phase]]
kind = "metadata"
name = "stat"
operation = "file-stat"
directory = "unique"
items = 50
stop = { rule = "seconds", seconds = "1h" }
"""


class Hosts:
    """A lab of hosts that share a directory to measure and a store."""

    def __init__(self, labs: Labs, kind: str, name: str = "") -> None:
        self.labs = labs
        self.directory = labs.up(kind, "--name", name or kind)
        self.home = self.directory.parent
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(SOURCES),
            "XDG_STATE_HOME": str(labs.root),
            "STRAKES_STORE": str(self.home / "store"),
        }

    def words(self, host: str, *words: str | Path) -> list[str]:
        return [str(self.home / "host.sh"), "enter", host, *map(str, words)]

    def strakes(
        self, *words: str | Path, host: str = "login", before: tuple[str, ...] = (), engine: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run strakes on a host.

        ``before`` is a command prefix; ``engine`` replaces the MPI engine that strakes would choose.
        """
        command = self.words(host, *before, sys.executable, "-m", "strakes", *words)
        environment = {**self.environment, **({} if engine is None else {"STRAKES_ENGINE_MPI": str(engine)})}
        return subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, check=False
        )

    def begin(self, *words: str | Path, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        command = self.words("login", *before, sys.executable, "-m", "strakes", *words)
        return subprocess.Popen(
            command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def measured(self, run: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        directory = self.home / "store/runs" / run
        return list(read_json_lines(directory / "cells.jsonl")), list(read_json_lines(directory / "visits.jsonl"))

    def begin_phase(self, plan: str, *words: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        path = self.home / "plan.toml"
        path.write_text(plan)
        process = self.begin("run", path, self.directory, *words, before=before)
        wait_for(lambda: [*self.directory.glob("strakes-*/v0/*")], 80)
        time.sleep(1)
        return process

    def control(self, *words: str) -> None:
        subprocess.run([self.home / "host.sh", *words], check=True)

    def left(self) -> list[str]:
        return [path.name for path in self.directory.iterdir()]


@pytest.fixture(scope="module")
def hosts(shared_labs: Labs) -> Hosts:
    return Hosts(shared_labs, "hosts")


@pytest.fixture
def own_hosts(shared_labs: Labs) -> Iterator[Hosts]:
    yield Hosts(shared_labs, "hosts", "own")
    shared_labs.down("own", "--force")


def test_each_host_has_its_own_name_processes_network_and_temporary_directory(hosts: Hosts) -> None:
    entered = hosts.labs.run(
        "exec", "hosts", "n2", "sh", "-c", "hostname; cat /proc/1/comm; touch /tmp/mine; ip -o -4 address show eth0"
    )
    name, first, address = entered.stdout.splitlines()
    assert (name, first) == ("n2", "host.sh") and "10.77.0.12" in address
    there = hosts.labs.run("exec", "hosts", "login", "ssh", "n3", "hostname; ls /tmp").stdout.split()
    assert there[0] == "n3" and "mine" not in there
    assert "hosts has no node n9" in hosts.labs.run("exec", "hosts", "n9", "true").stderr


@pytest.mark.parametrize("launcher", [HOSTS, pytest.param(OPEN_MPI, marks=needs_open_mpi)], ids=["mpich", "open-mpi"])
def test_a_survey_across_four_hosts_has_the_axis_of_nodes(hosts: Hosts, launcher: tuple[str, ...]) -> None:
    # The hosts share one machine, so each gets one rank. This option overrides the one in ``launcher``.
    done = hosts.strakes(
        "survey", hosts.directory, *launcher, "--ranks-per-node", "1", "--budget", "4s", "--json", "-", "-q"
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (
        document["scope"].startswith("4 clients (one on each node) measured")
        and "4 nodes (n1, n2, n3, n4)" in document["scope"]
    )
    assert [node["host"] for node in document["target"]["nodes"]["compared"]] == ["n1", "n2", "n3", "n4"]
    cells, _ = hosts.measured(document["run"]["id"])
    assert {"nodes/1", "nodes/2", "nodes/4"} <= {cell["key"] for cell in cells} and not hosts.left()


@pytest.mark.parametrize(
    ("study", "ranks", "launcher"),
    [
        pytest.param("writers", {8}, HOSTS, id="writers"),
        pytest.param("startup-load", {8}, HOSTS, id="startup-load"),
        pytest.param("nodes", {2, 4, 8}, HOSTS, marks=pytest.mark.long, id="nodes"),
        pytest.param("startup-load", {8}, OPEN_MPI, marks=needs_open_mpi, id="startup-load-open-mpi"),
        pytest.param("writers", {8}, OPEN_MPI, marks=needs_open_mpi, id="writers-open-mpi"),
    ],
)
def test_a_study_runs_across_four_hosts(hosts: Hosts, study: str, ranks: set[int], launcher: tuple[str, ...]) -> None:
    done = hosts.strakes("study", study, hosts.directory, *launcher, "--budget", "2s", "--json", "-", "-q")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert ("Open MPI" in document["environment"]["engine"]["mpi"]) == (launcher == OPEN_MPI)
    cells, visits = hosts.measured(document["run"]["id"])
    assert {cell["settings"]["ranks"] for cell in cells} == ranks and all(visit["ended"] == "ok" for visit in visits)
    hosts_seen = {
        node["host"]
        for visit in visits
        if visit["purpose"] == "measure"
        for one in visit["samples"]
        for node in one["nodes"]
    }
    assert hosts_seen <= {"n1", "n2", "n3", "n4"} and "n1" in hosts_seen
    assert not hosts.left()


def test_a_host_that_sees_a_different_directory_is_refused(own_hosts: Hosts) -> None:
    subprocess.run(own_hosts.words("n3", "mount", "-t", "tmpfs", "other", own_hosts.directory), check=True)
    done = own_hosts.strakes("survey", own_hosts.directory, *HOSTS, "--budget", "4s", "-q")
    assert done.returncode == 3 and "n3: the directory cannot be reached on this node" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "launcher", [pytest.param(HOSTS, id="hydra"), pytest.param(OPEN_MPI, marks=needs_open_mpi, id="open-mpi")]
)
def test_a_run_survives_a_link_failure_shorter_than_the_allowed_silence(
    own_hosts: Hosts, launcher: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(own_hosts.environment, "STRAKES_SILENCE_S", "60")
    process = own_hosts.begin_phase(ENDLESS.replace("1h", "28s"), *launcher, "--budget", "40s")
    own_hosts.control("link", "n3", "down")
    # The link is down for longer than the default limit of silence, 8 s, and shorter than the limit set above.
    time.sleep(20)
    own_hosts.control("link", "n3", "up")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert not own_hosts.left()


@pytest.mark.parametrize(
    ("victim", "how", "launcher"),
    [
        pytest.param("n3", "crash", HOSTS, marks=pytest.mark.long, id="n3-crash"),
        pytest.param("n3", "power", HOSTS, id="n3-power"),
        pytest.param("n1", "power", HOSTS, id="n1-power"),
        *(
            pytest.param(victim, how, OPEN_MPI, marks=[needs_open_mpi, pytest.mark.long], id=f"{victim}-{how}-open-mpi")
            for victim, how in (("n3", "crash"), ("n3", "power"), ("n1", "power"))
        ),
    ],
)
def test_a_host_that_fails_during_a_phase_is_named_and_the_run_cleans_up(
    own_hosts: Hosts, victim: str, how: str, launcher: tuple[str, ...]
) -> None:
    process = own_hosts.begin_phase(ENDLESS, *launcher, "--budget", "60s")
    if how == "power":
        own_hosts.control("power", victim, "off")
    else:
        os.kill(int((own_hosts.home / f"{victim}.pid").read_text().split()[0]), 9)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1, said
    assert f"host {victim}" in said and not own_hosts.left()

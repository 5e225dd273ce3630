"""A metadata server of a lab that is up, started again after it has ended."""

from __future__ import annotations

from pathlib import Path

from strakes.errors import BadInputError
from strakes.lab.ceph.config import CONFIG
from strakes.lab.cgroup import make_group
from strakes.lab.places import Place, working_in
from strakes.lab.process import is_alive
from strakes.lab.site import Site
from strakes.lab.state import Journal, read_state


def start_metadata_server(directory: Path, name: str) -> None:
    """Nothing is done where it runs. Raises BadInputError where the lab is gone, EnvironmentLacksError where it does not start."""
    state = read_state(directory)
    if state is None or not state.this_boot or state.kind != "ceph":
        raise BadInputError("there is no CephFS lab any more", where=str(directory))
    with working_in(Place(state.name, directory), make=False) as there:
        role = f"mds.{name}"
        if not there or any(one.role == role and is_alive(one) for one in state.processes):
            return
        journal = Journal.reopen(directory)
        try:
            journal.ended(role)
            site = Site(directory, state.name, state.id, journal, lambda _text: None)
            join = [make_group("cpu", state.id, role).procs] if state.options.get("mds_cpu") else []
            site.start(role, "ceph-mds", "-c", directory / CONFIG, "-i", name, "-f", join=join)
        finally:
            journal.close()

"""A metadata server of a lab that is up, started again after it has ended."""

from __future__ import annotations

from pathlib import Path

from strakes.errors import BadInputError
from strakes.lab.ceph.config import CONFIG
from strakes.lab.cgroup import make_group
from strakes.lab.lab_directory import LabDirectory, working_in
from strakes.lab.process import is_alive
from strakes.lab.site import LabSite
from strakes.lab.state import LabJournal, read_state


def start_metadata_server(directory: Path, name: str) -> None:
    """Start it where it does not run. Raises BadInputError without the lab, EnvironmentLacksError if it fails."""
    state = read_state(directory)
    if state is None or not state.this_boot or state.kind != "ceph":
        raise BadInputError("the CephFS lab no longer exists", where=str(directory))
    with working_in(LabDirectory(state.name, directory), make=False) as there:
        role = f"mds.{name}"
        if not there or any(process.role == role and is_alive(process) for process in state.processes):
            return
        journal = LabJournal.reopen(directory)
        try:
            journal.ended(role)
            site = LabSite(directory, state.name, state.id, journal, lambda _text: None)
            join = [make_group("cpu", state.id, role).procs] if state.options.get("mds_cpu") else []
            site.start(role, "ceph-mds", "-c", directory / CONFIG, "-i", name, "-f", join=join)
        finally:
            journal.close()

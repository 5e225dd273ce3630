"""Slurm on the hosts of a lab: a controller, a daemon for each host, and munge, without systemd or a data base."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strakes.base.files import write_kept
from strakes.lab.hosts import LOGIN, HostsLab, HostsOptions
from strakes.lab.options import option
from strakes.lab.packages import Package
from strakes.lab.process import run

_ASK_S = 10.0
_KEY_BYTES = 128


@dataclass(frozen=True)
class SlurmOptions(HostsOptions):
    """Options of ``lab up slurm``."""

    cpus: int = option("count", "Number of processors that each host reports to Slurm.", 8, least=1, most=64)
    mpi: str = option("choice", "MPI plugin that srun uses by default.", "none", choices=("none", "pmi2", "pmix"))


class SlurmLab(HostsLab[SlurmOptions]):
    """The partition is called main; whoever logs in is root."""

    options_type = SlurmOptions
    packages = (
        *HostsLab.packages,
        Package("munge", "munged"),
        Package("slurmctld", "slurmctld"),
        Package("slurmd", "slurmd"),
        Package("slurm-client", "srun"),
    )

    def up(self) -> None:
        site = self.site
        write_kept(site.directory / "munge.key", secrets.token_bytes(_KEY_BYTES))
        for directory in ("etc/slurm", "state", *(f"spool/{name}" for name in self.names)):
            site.make_directory(directory)
        site.write("etc/slurm/slurm.conf", self._configuration())
        site.write("etc/slurm/cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        super().up()
        site.wait_until("the hosts", super().ready)
        site.step("Slurm")
        for name in self.addresses:
            munged = ("munged", "--foreground", "--force", f"--key-file={site.directory}/munge.key")
            site.start(f"munged.{name}", *self.on(name), *munged, "--seed-file=/run/munge/seed")
        site.start("slurmctld", *self.on(LOGIN), "slurmctld", "-D", "-c")
        for name in self.names:
            site.start(f"slurmd.{name}", *self.on(name), "slurmd", "-D", "-N", name)

    def ready(self) -> str:
        asked = run(
            [*map(str, self.on(LOGIN)), "sinfo", "-h", "-N", "-t", "idle", "-o", "%N"],
            limit_s=_ASK_S,
            lab_id=self.site.id,
        )
        absent = set(self.names) - set(asked.stdout.split())
        return f"not idle yet: {', '.join(sorted(absent))}" if absent else ""

    def facts(self) -> Mapping[str, Any]:
        return {**super().facts(), "partition": "main"}

    def _configuration(self) -> str:
        directory: Path = self.site.directory
        nodes = "".join(
            f"NodeName={name} NodeAddr={self.addresses[name]} CPUs={self.options.cpus} State=UNKNOWN\n"
            for name in self.names
        )
        return f"""ClusterName=strakes
SlurmctldHost={LOGIN}({self.addresses[LOGIN]})
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault={self.options.mpi}
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=10
KillWait=30
{nodes}PartitionName=main Nodes={",".join(self.names)} Default=YES MaxTime=INFINITE State=UP
"""

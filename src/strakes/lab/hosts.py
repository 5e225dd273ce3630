"""Labs "hosts" and "slurm": emulated hosts with their own processes, network and /tmp, and a shared directory."""

from __future__ import annotations

import ipaddress
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from strakes.base.files import write_kept
from strakes.base.units import counted
from strakes.lab.kind import Lab
from strakes.lab.options import LabOptions, option
from strakes.lab.packages import table
from strakes.lab.process import run

LOGIN = "login"
# Address prefix of the emulated hosts. Their network has no route to other networks.
_NETWORK = ipaddress.ip_network("10.77.0.0/24")


@dataclass(frozen=True)
class HostsOptions(LabOptions):
    """Options of ``lab up hosts``."""

    hosts: int = option(
        "count", "Number of hosts to measure from (n1, n2, ...). There is also a login host.", 4, least=1, most=64
    )
    size: int = option("size", "Capacity of the shared directory, which is in memory.", "2GiB", least="1MiB")


class HostsLab(Lab[HostsOptions]):
    """Emulated hosts. Each has its own namespaces (pid, network, mount, IPC, UTS), an sshd and a link to a switch."""

    options_type: ClassVar[type[HostsOptions]] = HostsOptions
    packages = table("openssh-server /usr/sbin/sshd, openssh-client ssh, iproute2 ip, util-linux nsenter")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(1, self.options.hosts + 1))

    @property
    def addresses(self) -> Mapping[str, str]:
        return {name: str(_NETWORK[10 + number]) for number, name in enumerate((LOGIN, *self.names))}

    def up(self) -> None:
        site = self.site
        self._script = site.install("scripts/host.sh", "host.sh")
        site.install("scripts/common.sh", "common.sh")
        for directory in ("log", "etc/ssh"):
            site.make_directory(directory, mode=0o755)
        site.mount_memory(self.options.size)
        site.fill("etc/hosts", "hosts", addresses=self.addresses)
        site.write("kept", "".join(f"{path}\n" for path in _outermost(site.directory, Path(sys.prefix), *_sources())))
        self._prepare_ssh()
        site.step("a switch with a link for each host")
        self._connect()
        site.step(f"{counted(len(self.names), 'host')}, and one to log in to")
        for name, address in self.addresses.items():
            site.start(f"host.{name}", self._script, "host", name, address)

    def ready(self) -> str:
        absent = [name for name in self.addresses if not (self.site.directory / f"{name}.up").exists()]
        return f"not up yet: {', '.join(absent)}" if absent else ""

    def facts(self) -> Mapping[str, Any]:
        script = str(self._script)
        return {
            "hosts": list(self.names),
            "commands": {name: [script, "enter", name] for name in self.addresses},
            "power": {name: [script, "power", name] for name in self.addresses},
            "links": {name: [script, "link", name] for name in self.addresses},
        }

    def on(self, host: str) -> tuple[str | Path, ...]:
        return (self._script, "enter", host)

    def _prepare_ssh(self) -> None:
        directory = self.site.directory / "etc/ssh"
        for key in ("host", "user"):
            self.site.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / key)
        self.site.fill("sshd_config", "sshd_config")
        self.site.fill("etc/ssh/ssh_config", "ssh_config")

    def _connect(self) -> None:
        net = {name: self.site.directory / f"net.{name}" for name in ("hub", *self.addresses)}
        for path in net.values():
            self.site.make_namespace(path)
        lines = ["link add switch type bridge", "link set switch up"]
        for name in self.addresses:
            lines.append(f"link add {name} type veth peer name eth0 netns {net[name]}")
            lines.append(f"link set {name} master switch up")
        self.site.ip(net["hub"], *lines)


def _sources() -> tuple[Path, ...]:
    # On the hosts, an editable installation also needs the directory above the sources.
    source = Path(__file__).resolve().parents[3]
    return (source, source.parent) if (source.parent / "pyproject.toml").exists() else (source,)


def _outermost(*paths: Path) -> list[Path]:
    resolved = sorted({path.resolve() for path in paths})
    return [path for path in resolved if not any(other != path and path.is_relative_to(other) for other in resolved)]


_ASK_S = 10.0
_KEY_BYTES = 128
# Number of processors that each host reports to Slurm. Doubling it doubles the maximum number of ranks per host.
_CPUS = 8


class SlurmLab(HostsLab):
    """Emulated hosts with Slurm. The partition is named main, and all logins are as root."""

    packages = HostsLab.packages + table("munge munged, slurmctld slurmctld, slurmd slurmd, slurm-client srun")

    def up(self) -> None:
        site = self.site
        write_kept(site.directory / "munge.key", secrets.token_bytes(_KEY_BYTES))
        for directory in ("etc/slurm", "state", *(f"spool/{name}" for name in self.names)):
            site.make_directory(directory, mode=0o755)
        given = {"names": self.names, "addresses": self.addresses, "cpus": _CPUS}
        site.fill("etc/slurm/slurm.conf", "slurm.conf", **given)
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

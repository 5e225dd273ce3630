"""The two nodes of the lab "ha": namespaces of this machine, or User-mode Linux machines with real DRBD."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from strakes.base.errors import EnvironmentLacksError
from strakes.base.files import open_directory, write_kept
from strakes.base.units import GIB, MIB
from strakes.failover.cluster import Cluster
from strakes.failover.plan import drbd_files
from strakes.lab.device import make_file, require_space
from strakes.lab.ha_configuration import NODES, cluster, machine_cib, namespace_cib
from strakes.lab.packages import table
from strakes.lab.process import run
from strakes.lab.site import READY_LIMIT_S, LabSite

ADMIN = "10.9.0.100"
# Each node has its own copy of these directories. The contents survive a power cut.
DISKS = (
    "etc/corosync/uidgid.d",
    "var/lib/corosync",
    *(f"var/lib/pacemaker/{part}" for part in ("cib", "cores", "blackbox", "pengine")),
    "var/log",
)


class Namespaces:
    """Two nodes as namespaces of this machine, without DRBD. ``program``: script that starts the nodes."""

    program = "namespaces.sh"
    look_every_s = 0.2
    ready_limit_s = READY_LIMIT_S

    def __init__(self, site: LabSite) -> None:
        self.site = site

    def plan(self) -> Cluster:
        return cluster(self.site.directory, 1.0, device="/dev/null", mount="/none", drbd="9")

    def cib(self, planned: Cluster) -> str:
        return namespace_cib(planned, self.site.directory, str(self.site.mount_point))

    def connect(self) -> None:
        site, nets = self.site, [self.site.directory / f"net.{name}" for name in NODES]
        for net in nets:
            site.make_namespace(net)
        rings = (f"link add ring{ring} type veth peer name ring{ring} netns {nets[1]}" for ring in (0, 1))
        site.ip(nets[0], *rings)
        for number, (name, net) in enumerate(zip(NODES, nets, strict=True), 1):
            link = f"link add to-{name} type veth peer name management netns {net}"
            site.ip(self.hub, link, f"link set to-{name} up")
            addresses = {"ring0": f"10.1.0.{number}", "ring1": f"10.2.0.{number}", "management": f"10.9.{number}.1"}
            for link, address in addresses.items():
                site.ip(net, f"address add {address}/24 dev {link}", f"link set {link} up")
            site.ip(net, f"route add 10.9.0.0/24 via 10.9.{number}.254")

    def furnish(self, planned: Cluster) -> None:
        """Prepare the disks of the nodes. Namespaces have none."""

    def start(self) -> None:
        for name in NODES:
            self.site.start(f"node.{name}", self.site.directory / "ha.sh", "node", name)

    def facts(self) -> Mapping[str, object]:
        return {}

    @property
    def hub(self) -> Path:
        return self.site.directory / "net.hub"


MACHINE_PACKAGES = table("user-mode-linux linux.uml, gcc cc, drbd-utils drbdadm, e2fsprogs mkfs.ext4, kmod modprobe")
_MODULES = ("overlay", "drbd", "hmac")
_KERNELS = Path("/usr/lib/uml/modules")
# Sizes of the sparse disk files of a machine. The study replication-cost writes 1 GiB.
_SIZES = {"own": 256 * MIB, "replicated": GIB, "plain": GIB}
# ext4's default of 65,536 inodes is too small for the study replication-cost, which creates 100,000 files.
_INODES = 262_144
# Without nodiscard, DRBD would copy discarded blocks after a power cut. Without prezeroed, the kernel would zero inode
# tables later, and DRBD would send these 64 MiB. Without -b 1024, DRBD would send 29 kB instead of 9 kB for a file.
_MAKE = f"mkfs.ext4 -q -b 1024 -N {_INODES} -E nodiscard,assume_storage_prezeroed=1"
_COMMAND_S = 300.0
# Time-outs of DRBD: ping-timeout and timeout in tenths of a second, ping-int and connect-int in seconds. By default,
# DRBD closes a connection if an answer takes more than 0.5 s, which happens on a busy machine.
_PATIENT_NET = "ping-timeout 100; timeout 150; ping-int 20; connect-int 20;"
# Fast resynchronisation of DRBD after a power cut (about 40 MiB).
_QUICK_RESYNC = "c-plan-ahead 0; resync-rate 100M; c-min-rate 0;"
JOURNAL, PLAIN = "/srv/journal", "/srv/plain"


class Machines(Namespaces):
    """Two nodes as User-mode Linux machines, with kernel, disks and networks. They can read this machine's files."""

    program = "machines.sh"
    look_every_s = 2.0
    # Time limit for the start of both machines. They need 20 s on an idle host, but much more at a load average of 40.
    ready_limit_s = 900.0

    @classmethod
    def check(cls, directory: Path) -> None:
        require_space(directory, len(NODES) * sum(_SIZES.values()), "--size")
        if not Path("/dev/net/tun").exists():
            what, why = "virtual machines (User-mode Linux) cannot be connected", "the device does not exist"
            remedy = "Load the module: modprobe tun. A container needs access to the device."
            raise EnvironmentLacksError(what, where="/dev/net/tun", why=why, remedy=remedy)

    def plan(self) -> Cluster:
        # Corosync's token time-out is 5 s, because a healthy node on a busy machine may be silent for some seconds.
        return cluster(self.site.directory, 5.0, device="/dev/vdb", mount=JOURNAL, drbd="8.4")

    def cib(self, planned: Cluster) -> str:
        return machine_cib(planned, self.site.directory)

    def connect(self) -> None:
        self.site.install("scripts/user_mode.sh", "user_mode.sh")
        for ring in ("ring0", "ring1"):
            self.site.ip(self.hub, f"link add {ring} type bridge", f"link set {ring} up")
        for name in NODES:
            for link, master in (("ring0", "master ring0"), ("ring1", "master ring1"), ("to", "")):
                tap = f"{link}-{name}"
                self.site.ip(self.hub, f"tuntap add dev {tap} mode tap", f"link set {tap} up {master}")

    def furnish(self, planned: Cluster) -> None:
        site = self.site
        self.make_kernel()
        secret = secrets.token_hex(16)
        for name in NODES:
            own = site.directory / name
            for file in drbd_files(planned):
                path = own / file.path
                os.close(open_directory(path.parent, make=0o755))
                write_kept(path, file.text, mode=0o644)
            authentication = own / "etc/drbd.d/authentication.secret"
            net = f'cram-hmac-alg sha1; shared-secret "{secret}"; {_PATIENT_NET}'
            write_kept(authentication, f"common {{ net {{ {net} }} disk {{ {_QUICK_RESYNC} }} }}\n")
            (own / "var/lib/drbd").mkdir()
            write_kept(own / "etc/hosts", (site.directory / "hosts").read_bytes(), mode=0o644)
            for what, size in _SIZES.items():
                make_file(site.directory / f"{name}.{what}", size)
            site.run("mkfs.ext4", "-q", "-d", own, site.directory / f"{name}.own")
            site.run(*_MAKE.split(), site.directory / f"{name}.plain")

    def make_kernel(self) -> None:
        site = self.site
        site.step("modules of User-mode Linux")
        kernels = sorted(path.parents[4].name for path in _KERNELS.glob("*/kernel/drivers/block/drbd/drbd.ko"))
        if not kernels:
            what, why = "the virtual machines have no kernel", "no kernel there has a DRBD module"
            raise EnvironmentLacksError(what, where=str(_KERNELS), why=why)
        # modprobe --dirname DIR searches DIR/lib/modules, so make this directory.
        root = site.make_directory("uml", "lib", mode=0o755)
        (root / "modules").symlink_to(_KERNELS)
        words = ("--dirname", root.parent, "--set-version", kernels[-1], "--all", "--show-depends", *_MODULES)
        listed = site.run("modprobe", *words)
        paths = dict.fromkeys(line.split()[1] for line in listed.splitlines() if line.startswith("insmod"))
        site.write("modules", "".join(f"{path}\n" for path in paths))
        site.install("scripts/user_mode_init.sh", "init")
        source = site.install("scripts/xstate.c", "xstate.c")
        site.run("cc", "-O2", "-shared", "-fPIC", "-o", site.directory / "xstate.so", source)
        for part in ("own", "node"):
            site.make_directory("machine", part, mode=0o755)

    def start(self) -> None:
        site = self.site
        super().start()
        site.wait_until("the machines to start", self._silent, limit_s=_COMMAND_S)
        site.step("DRBD")
        for name in NODES:
            self._on(name, f"mount /dev/vdc {PLAIN} && drbdadm create-md --force journal && drbdadm up journal")
        first = NODES[0]
        # Both disks are empty, so --clear-bitmap lets DRBD skip the initial copy of 1 GiB.
        self._on(
            first,
            "drbdadm wait-connect journal && drbdadm -- --clear-bitmap new-current-uuid journal/0"
            f" && drbdadm primary journal && {_MAKE} /dev/drbd0 && drbdadm secondary journal",
        )
        site.step("the cluster")
        for name in NODES:
            self._on(name, f"touch /var/lib/drbd/made && sync && {site.directory}/ha.sh cluster")

    def facts(self) -> Mapping[str, object]:
        return {"replicated": JOURNAL, "plain": PLAIN}

    def _silent(self) -> str:
        time.sleep(1.0)
        silent = [name for name in NODES if run(self._enter(name, "true"), limit_s=30.0).status != 0]
        return f"not started yet: {', '.join(f'mds-{name}' for name in silent)}" if silent else ""

    def _on(self, name: str, script: str) -> None:
        self.site.run(*self._enter(name, "sh", "-c", script), limit_s=_COMMAND_S)

    def _enter(self, name: str, *words: str) -> list[str]:
        return [str(self.site.directory / "ha.sh"), "enter", name, *words]

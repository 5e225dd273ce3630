"""Execution of a run-book on two fresh nodes of the lab: each block of commands runs on the nodes that it names.

Stubs replace what the lab lacks: ``systemctl`` starts Corosync and Pacemaker, and ``scp`` copies from the other node's
disk. drbdadm, mkfs.lustre, zpool, zgenhostid, modprobe and lctl, used in blocks marked ``hardware``, only log their
arguments. The agents drbd, Lustre, ZFS and healthLNET are replaced by Pacemaker's Stateful and Dummy. The software BMCs
support cipher suite 3 only. Blocks marked ``site`` (packages, firewall) are left out.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

_BLOCK = re.compile(r"^```sh on=(\S+)((?: \w+)*)\n(.*?)^```$", re.M | re.S)
_PATIENCE_S = 180.0
_NOTED = ("drbdadm", "mkfs.lustre", "zpool", "zgenhostid", "modprobe", "lctl")
_NOTE = '#!/bin/sh\necho "${0##*/} $*" >>"$STAND_INS"\n'
_SYSTEMCTL = """\
#!/bin/sh
[ "$1" = start ] || exit 0
corosync -f >/var/log/corosync.out 2>&1 </dev/null &
tries=0
until corosync-cfgtool -s >/dev/null 2>&1 || [ $tries -gt 100 ]; do sleep 0.2; tries=$((tries + 1)); done
PCMK_logfile=/var/log/pacemaker.log setsid pacemakerd -f >/var/log/pacemakerd.out 2>&1 </dev/null &
"""
_SCP = """\
#!/bin/sh
# scp -p root@NODE:FILE FILE
node=${{2%%:*}}
disk="{lab}/${{node##*-}}" file=${{2#*:}}
[ -e "$disk$file" ] || disk=$disk/root
exec cp -p "$disk$file" "$3"
"""
_IPMITOOL = """\
#!/bin/sh
exec /usr/bin/ipmitool.real $(printf '%s ' "$@" | sed 's/-C 17/-C 3/')
"""


@dataclass(frozen=True)
class BookStep:
    """A block of the run-book: its commands, the nodes on which they run, and its marks."""

    nodes: tuple[str, ...]
    marks: frozenset[str]
    commands: str


def steps(text: str) -> list[BookStep]:
    return [
        BookStep(tuple(found[1].split(",")), frozenset(found[2].split()), found[3]) for found in _BLOCK.finditer(text)
    ]


class FreshNodes:
    """The two nodes of the lab, set up again without a configuration and with the names of a plan."""

    def __init__(self, facts: Mapping[str, Any], names: Sequence[str], plan: Path) -> None:
        self._facts, self._plan = facts, plan
        self._letters = dict(zip(names, ("a", "b"), strict=True))
        self.lab = Path(facts["bmc_log"]).parent
        self._links = [facts["links"][number] for number in facts["links"]]
        for name in self._letters:
            self._make(name)

    def _make(self, name: str) -> None:
        letter = self._letters[name]
        self._power(letter, "off")
        disk = self.lab / letter
        for used in ("etc/corosync", "var/lib/corosync", "var/lib/pacemaker/cib", "var/lib/pacemaker/pengine"):
            for path in (disk / used).glob("*"):
                if path.is_file():
                    path.unlink()
        root = disk / "root"
        shutil.copytree(
            "/etc", root / "etc", symlinks=True, ignore=shutil.ignore_patterns("corosync", "ssl", "alternatives")
        )
        for missing in ("etc/corosync", "etc/ssl", "etc/alternatives", "etc/modprobe.d"):
            (root / missing).mkdir(parents=True, exist_ok=True)
        agents = root / "agents"
        shutil.copytree("/usr/lib/ocf/resource.d", agents, symlinks=True)
        (agents / "lustre").mkdir(exist_ok=True)
        stateful, dummy = (agents / "pacemaker" / agent for agent in ("Stateful", "Dummy"))
        for agent, source in (
            ("linbit/drbd", stateful),
            ("lustre/Lustre", dummy),
            ("lustre/healthLNET", dummy),
            ("heartbeat/ZFS", dummy),
        ):
            (agents / agent).unlink(missing_ok=True)
            shutil.copy(source, agents / agent)
        shutil.copytree(self._plan, root / "plan")
        programs = root / "bin"
        programs.mkdir()
        texts = dict.fromkeys(_NOTED, _NOTE)
        texts |= {"systemctl": _SYSTEMCTL, "scp": _SCP.format(lab=self.lab), "ipmitool": _IPMITOOL}
        for program, text in texts.items():
            (programs / program).write_text(text)
            (programs / program).chmod(0o755)
        shutil.copy("/usr/bin/ipmitool", programs / "ipmitool.real")
        (disk / "at-boot").write_text(
            f"hostname {name}\n"
            f"mkdir -p /run/bin\n"
            # The node shares this machine's etc/ssl and etc/alternatives, as their links lead to its files.
            f"for part in ssl alternatives; do mount --bind /etc/$part {root}/etc/$part; done\n"
            f"mount --rbind {root}/etc /etc\nmount --bind {agents} /usr/lib/ocf/resource.d\n"
            f"export PATH={programs}:$PATH STAND_INS={disk}/stand-ins\n"
            f"cp {programs}/ipmitool.real /run/bin/ipmitool.real\n"
            f"sed 's,/usr/bin/ipmitool.real,/run/bin/ipmitool.real,' {programs}/ipmitool >/run/bin/ipmitool\n"
            f"chmod 755 /run/bin/ipmitool\nmount --bind /run/bin/ipmitool /usr/bin/ipmitool\n"
        )
        hosts = self.lab / "hosts"
        number = 1 + list(self._letters).index(name)
        hosts.write_text(f"{hosts.read_text()}10.1.0.{number} {name}\n")
        self._power(letter, "on")

    def _power(self, letter: str, how: str) -> None:
        subprocess.run([*self._facts["power"][f"mds-{letter}"], how], check=True, capture_output=True, timeout=60)
        wanted = f"is {how}"
        self.wait(f"power {how} of {letter}", lambda: wanted in self._asked(letter, "status"))

    def _asked(self, letter: str, what: str) -> str:
        words = [*self._facts["power"][f"mds-{letter}"], what]
        return subprocess.run(words, capture_output=True, text=True, timeout=60).stdout

    def has_power(self, name: str) -> bool:
        return "is on" in self._asked(self._letters[name], "status")

    def power_on(self, name: str) -> None:
        self._power(self._letters[name], "on")

    def run(self, name: str, commands: str) -> subprocess.CompletedProcess[str]:
        disk = self.lab / self._letters[name]
        home = disk / "root"
        path = f"{home / 'bin'}:{self.lab}/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = [f"PATH={path}", f"STAND_INS={disk}/stand-ins", "LC_ALL=C", "HOME=/root"]
        words = [*self._facts["commands"][f"mds-{self._letters[name]}"], "env", "-i", *environment]
        script = f"cd {home / 'plan'} && set -e\n{commands}"
        return subprocess.run([*words, "sh", "-c", script], capture_output=True, text=True, timeout=900)

    def noted(self, name: str) -> str:
        path = self.lab / self._letters[name] / "stand-ins"
        return path.read_text() if path.exists() else ""

    def follow(self, step: BookStep) -> None:
        """Execute a step of the run-book with the secrets of the lab; raises AssertionError if a command fails."""
        commands = step.commands.replace("PASSWORD", "lab").replace("URL", "http://10.9.0.100:7002/webhook")
        for name in step.nodes:
            done = self.run(name, commands)
            assert done.returncode == 0, (name, commands, done.stdout, done.stderr)

    def places(self, name: str) -> dict[str, str]:
        """Return primitive -> node on which it is started or promoted, as seen by a node.

        The result is empty unless both nodes are online.
        """
        asked = self.run(name, "crm_mon -1 --output-as=xml")
        if asked.returncode:
            return {}
        document = Xml.fromstring(asked.stdout)
        if len([node for node in document.iterfind("./nodes/node") if node.get("online") == "true"]) < 2:
            return {}
        return {
            str(resource.get("id")): str(node.get("name"))
            for resource in document.iter("resource")
            if resource.get("role") in ("Started", "Promoted") and not resource.get("pending")
            for node in resource.iterfind("./node")
        }

    def _seen(self) -> str:
        return "\n".join(f"{name}: {self.run(name, 'crm_mon -1 -r -f -A').stdout}" for name in self._letters)

    def wait(self, what: str, condition: Any) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"waited {_PATIENCE_S:.0f} s for {what}:\n{self._seen()}"
            time.sleep(0.5)

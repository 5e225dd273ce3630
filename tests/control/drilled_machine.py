"""Stubs of a Lustre client and its server: programs for the PATH that answer as the recorded ones did."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from strakes.targets.mountinfo import Mount, parse_mountinfo
from targets.lustre.recorded import recording

SERVERS = "at {host}"
HOST = "192.168.77.1"
# The recorded /proc/mounts of the server.
SERVED = recording("server/proc_mounts.txt").done.stdout

_PROGRAM = r'''#!@PYTHON@ -I
"""One program for all names: state in files, a line of the log for each change."""
import os, re, sys, time
from pathlib import Path

state, name, words = Path("@STATE@"), Path(sys.argv[0]).name, sys.argv[1:]
mounts, log = state / "mounts", state / "log"

def serving():
    return re.findall(r"svname=([^,]+)", mounts.read_text())

def note(*what):
    with log.open("a") as lines:
        print(time.time(), *what, file=lines)

def history(target):
    """As the kernel's: how this client's connection to a target went, in whole seconds."""
    states = [(1795231205, "CONNECTING"), (1795231206, "FULL")]
    forced = False
    for line in log.read_text().splitlines():
        at, what, which = line.split()[:3]
        at = int(float(at))
        if which == target and what.startswith("umount"):
            forced = what == "umount-f"
            states.append((at, "DISCONN"))
        elif which == target and what == "mount":
            ways = ("EVICTED", "RECOVER") if forced else ("REPLAY", "REPLAY_LOCKS", "REPLAY_WAIT", "RECOVER")
            states += [(at, each) for each in ("CONNECTING", *ways, "FULL")]
    return states[-16:]

def parameter(target, kind):
    if kind == "state":
        states = history(target)
        lines = "".join(f" - [ {at}, {each} ]\n" for at, each in states)
        return f"\ncurrent_state: {states[-1][1]}\nstate_history:\n{lines}"
    if kind.endswith("conn_uuid"):
        told = state / "addresses"
        known = dict(line.split() for line in told.read_text().splitlines()) if told.exists() else {}
        return known.get(target, "@HOST@@tcp") + "\n"
    starts = [line.split()[0] for line in log.read_text().splitlines() if line.split()[1:3] == ["mount", target]]
    if not starts:
        return "status: INACTIVE\n"
    began = int(float(starts[-1]))
    return f"\nstatus: COMPLETE\nrecovery_start: {began}\nrecovery_duration: 5\ncompleted_clients: 3/4\nreplayed_requests: 7\n"

def get_param(patterns):
    status = 0
    for pattern in patterns:
        kind = pattern.rpartition(".")[2]
        if kind == "health_check":
            print("health_check=" + (state / "health").read_text(), end="")
            continue
        metadata = pattern.startswith(("mdc.", "mdt."))
        targets = [f"labfs-{'MDT' if metadata else 'OST'}{number:04x}" for number in range(4)]
        if pattern.startswith(("mdt.", "obdfilter.")):
            there = [target for target in targets if target in serving() and os.environ.get("ON_SERVER")]
            if not there:
                print(f"error: get_param: param_path '{pattern.replace('.', '/')}': No such file or directory", file=sys.stderr)
                status = 2
            for target in there:
                print(f"{pattern.partition('.')[0]}.{target}.{kind}={parameter(target, kind)}", end="")
        else:
            device = "mdc" if metadata else "osc"
            for target in targets:
                print(f"{device}.{target}-{device}-ffff8880083a1800.{kind}={parameter(target, kind)}", end="")
    return status

if name == "at":
    words = [word.replace("/proc/mounts", str(mounts)).replace("/run/", f"{state}/") for word in words]
    os.environ["ON_SERVER"] = "1"
    os.execvp(words[1], words[1:])
if name == "lctl" and words[0] == "get_param":
    sys.exit(get_param(words[1:]))
if name == "lctl" and words[0] == "list_nids":
    own = state / "nids"
    print(own.read_text() if own.exists() else "192.168.77.9@tcp")
    sys.exit(0)
if name == "lctl":
    if words[0] == "net_drop_del" and (state / "kept").exists() and (state / "kept").read_text() in " ".join(words):
        sys.exit("net_drop_del: no such rule")
    rules = state / "rules"
    had = rules.read_text().splitlines() if rules.exists() else []
    if words[0] == "net_drop_list":
        print("LNet drop rules:", *(f"{each.split()[1]}->{each.split()[3]} (1/1 | 0)" for each in had), sep="\n")
        print(f"found total {len(had)}")
    rule = " ".join(words[1:]).removesuffix(" --rate 1")
    if words[0] == "net_drop_del" and rule not in had:
        sys.exit("net_drop_del: No such file or directory")
    had = [each for each in had if each != rule] + ([rule] if words[0] == "net_drop_add" else [])
    rules.write_text("".join(f"{each}\n" for each in had))
if name == "lfs":
    os.execv("@PYTHON@", ["python", "-c", "import sys; sys.exit(19)"])
if name == "umount":
    lines = mounts.read_text().splitlines(keepends=True)
    gone = [line for line in lines if line.split()[1] == words[-1]]
    if not gone:
        sys.exit(f"umount: {words[-1]}: not mounted.")
    mounts.write_text("".join(line for line in lines if line not in gone))
    note("umount-f" if "-f" in words else "umount", re.search(r"svname=([^,]+)", gone[0])[1])
if name == "mount":
    device, place = words[-2:]
    line = next(line for line in (state / "disks").read_text().splitlines() if line.split()[:2] == [device, place])
    target = re.search(r"svname=([^,]+)", line)[1]
    assert target not in serving(), "mounted twice"
    mounts.write_text(mounts.read_text() + line + "\n")
    note("mount", target)
if name == "systemctl":
    print((state / "pacemaker").read_text())
'''
_NAMES = ("at", "lctl", "lfs", "umount", "mount", "systemctl")


class LustreMachine:
    """A stub client and server: ``programs`` is the directory to put first on the PATH, ``state`` holds their files."""

    def __init__(self, root: Path) -> None:
        self.state, self.programs = root / "state", root / "programs"
        self.state.mkdir()
        self.programs.mkdir()
        program = _PROGRAM.replace("@PYTHON@", sys.executable).replace("@STATE@", str(self.state))
        for name in _NAMES:
            path = self.programs / name
            path.write_text(program.replace("@HOST@", HOST))
            path.chmod(0o755)
        for name, text in (("mounts", SERVED), ("disks", SERVED), ("log", ""), ("pacemaker", "inactive\ninactive")):
            (self.state / name).write_text(text)
        (self.state / "health").write_text("healthy\n")

    @property
    def path(self) -> str:
        return f"{self.programs}{os.pathsep}{os.environ['PATH']}"

    @property
    def mounts(self) -> list[str]:
        return sorted((self.state / "mounts").read_text().splitlines())

    @property
    def log(self) -> list[tuple[str, ...]]:
        return [tuple(line.split()[1:]) for line in (self.state / "log").read_text().splitlines()]


def lustre_mount(root: Path) -> Mount:
    (recorded,) = parse_mountinfo(recording("client/mountinfo.txt").done.stdout)
    return replace(recorded, mount_point=str(root))

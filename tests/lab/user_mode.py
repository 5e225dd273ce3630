"""User-mode Linux: a virtual machine with another kernel on this machine's files, for features this kernel lacks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

_KERNELS = Path("/usr/lib/uml/modules")
_SOURCES = Path(__file__).resolve().parents[2] / "src/strakes/lab/scripts"
# An overlay sends all writes to the virtual disk; the lower layer is this machine's root file system.
_INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
here=$(dirname "$0")
node=$here/node
mount -t proc proc /proc
while read -r module; do insmod "$module"; done <"$here/modules"
mount -t ext4 -o noatime /dev/ubda "$here/own"
mkdir -p "$here/own/over" "$here/own/work"
mount -t overlay -o "lowerdir=/,upperdir=$here/own/over,workdir=$here/own/work" node "$node"
mount -n --move /dev "$node/dev"
mount -t proc proc "$node/proc"
mount -t sysfs sys "$node/sys"
for place in run dev/shm; do mkdir -p "$node/$place" && mount -t tmpfs tmpfs "$node/$place"; done
mkdir -p "$node/dev/pts" && mount -t devpts devpts "$node/dev/pts" && ln -sfn /proc/self/fd "$node/dev/fd"
umount /proc
chroot "$node" ip link set lo up
chroot "$node" /bin/sh "$here/script" 2>&1
echo "the script ended with status $?"
echo o >"$node/proc/sysrq-trigger"
while :; do sleep 1; done
"""
# Runs in its own namespaces, with all files read-only except the files of the test, and ends with the test.
_OUTSIDE = """
mount --bind "$1" "$1" && mount -o remount,bind,ro / || exit 1
export TMPDIR=/dev/shm LD_PRELOAD="$1/xstate.so"
exec linux.uml mem=1536M root=/dev/root rootfstype=hostfs rootflags=/ ro "init=$1/init" "uml_dir=$1" umid=machine \\
    con0=null,fd:1 con=null quiet panic=1 random.trust_cpu=on "ubda=$1/disk"
"""


def run_in_machine(directory: Path, script: str, modules: tuple[str, ...], limit_s: float) -> str:
    """Boot a virtual machine, run a shell script in it as root, and return the output.

    A line of the output has the exit status of the script. Skip the test without User-mode Linux, and fail it if the
    machine runs longer than ``limit_s`` seconds.
    """
    lacking = [name for name in ("linux.uml", "modprobe", "mkfs.ext4", "cc") if shutil.which(name) is None]
    if os.geteuid() != 0 or lacking:
        pytest.skip(f"a machine of User-mode Linux needs root and {', '.join(lacking) or 'nothing else'}")
    kernel = max(path.name for path in _KERNELS.iterdir())
    (directory / "lib").mkdir()
    (directory / "lib/modules").symlink_to(_KERNELS)
    listing = ["modprobe", "--dirname", str(directory), "--set-version", kernel, "--all", "--show-depends"]
    listed = subprocess.run([*listing, "overlay", *modules], capture_output=True, text=True, check=True).stdout
    paths = dict.fromkeys(line.split()[1] for line in listed.splitlines() if line.startswith("insmod"))
    (directory / "modules").write_text("".join(f"{path}\n" for path in paths))
    for name in ("own", "node"):
        (directory / name).mkdir()
    (directory / "init").write_text(_INIT)
    (directory / "init").chmod(0o755)
    (directory / "script").write_text(script)
    with (directory / "disk").open("wb") as disk:
        disk.truncate(4 << 30)
    subprocess.run(["mkfs.ext4", "-q", str(directory / "disk")], check=True)
    library = ["cc", "-O2", "-shared", "-fPIC", "-o", str(directory / "xstate.so"), str(_SOURCES / "xstate.c")]
    subprocess.run(library, check=True)
    apart = ["unshare", "--mount", "--propagation", "slave", "--net", "--pid", "--fork", "--kill-child=KILL"]
    with subprocess.Popen(
        ["nice", *apart, "sh", "-c", _OUTSIDE, "sh", str(directory)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as machine:
        try:
            return machine.communicate(timeout=limit_s)[0]
        except subprocess.TimeoutExpired:
            os.killpg(machine.pid, signal.SIGKILL)
            pytest.fail(f"the machine has not ended after {limit_s:.0f} s:\n{machine.communicate()[0][-8000:]}")
        finally:
            if machine.poll() is None:
                os.killpg(machine.pid, signal.SIGKILL)

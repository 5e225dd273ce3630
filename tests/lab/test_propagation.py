"""A lab keeps no mount of the machine alive: an unmount on the machine reaches the lab's mount namespaces."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import strakes.lab
from conftest import wait_for
from mounts import tmpfs_mounted
from strakes.base.errors import EnvironmentLacksError
from strakes.lab.device import detach_below, loops_below
from strakes.lab.mounts import mounts_below, unmount

LAB = Path(strakes.lab.__file__).parent
# A program that keeps writing the mounts of its namespace to a file.
_STUB = """#!/bin/sh
while :; do
    cat /proc/self/mountinfo >{seen}.next
    mv {seen}.next {seen}
    sleep 0.2
done
"""


@contextmanager
def running(command: list[str], path: str) -> Iterator[None]:
    process = subprocess.Popen(command, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def namespaces_node(site: Path, program: Path) -> list[str]:
    """Return the command that starts a node of the lab, with ``program`` in place of Corosync and Pacemaker."""
    shutil.copy(LAB / "scripts/namespaces.sh", site / "ha.sh")
    shutil.copy(LAB / "scripts/common.sh", site / "common.sh")
    (site / "ha.sh").chmod(0o755)
    (site / "bin").mkdir(exist_ok=True)
    for name in ("corosync", "pacemakerd"):
        shutil.copy(program, site / "bin" / name)
    for place in ("etc/corosync", "var/lib/corosync", "var/lib/pacemaker", "var/log"):
        (site / "a" / place).mkdir(parents=True)
        if not Path("/", place).exists():
            pytest.skip(f"there is no /{place} to mount over")
    shutil.copy("/etc/hosts", site / "hosts")
    return [str(site / "ha.sh"), "node", "a"]


def user_mode_node(site: Path, program: Path) -> list[str]:
    """Return the command that starts a virtual machine of the lab, with ``program`` in place of its kernel."""
    shutil.copy(LAB / "scripts/user_mode.sh", site / "machine.sh")
    shutil.copy(program, site / "linux.uml")
    script = 'here=$1; number_of() { echo 1; }; . "$here/machine.sh"; power_on a'
    return ["sh", "-c", script, "sh", str(site)]


@pytest.mark.parametrize("node", [namespaces_node, user_mode_node])
def test_a_node_of_a_lab_releases_mounts_that_are_unmounted_outside(
    tmp_path: Path, node: Callable[[Path, Path], list[str]]
) -> None:
    site = tmp_path / "lab"
    site.mkdir()
    (site / "net.a").symlink_to("/proc/self/ns/net")
    (site / "net.hub").symlink_to("/proc/self/ns/net")
    program, seen = site / "program", site / "seen"
    program.write_text(_STUB.format(seen=seen))
    program.chmod(0o755)
    shared, disk = tmp_path / "shared", tmp_path / "shared" / "disk"
    shared.mkdir()
    with tmpfs_mounted(place=shared):
        # Mounts are shared as under systemd, so an unmount propagates to other namespaces.
        subprocess.run(["mount", "--make-shared", str(shared)], check=True)
        disk.mkdir()
        with ExitStack() as stack, ExitStack() as before:
            before.enter_context(tmpfs_mounted(place=disk))
            stack.enter_context(running(node(site, program), f"{site}:{os.environ['PATH']}"))
            wait_for(lambda: seen.exists() and str(disk) in seen.read_text())
            before.close()
            wait_for(lambda: str(disk) not in seen.read_text())


def test_a_process_with_the_number_of_a_node_that_has_ended_is_not_taken_for_the_node(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("namespaces need root")
    (tmp_path / "net.a").symlink_to("/proc/self/ns/net")
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)

    def enter() -> int:
        return subprocess.run([str(tmp_path / "ha.sh"), "enter", "a", "true"], capture_output=True).returncode

    with running(namespaces_node(tmp_path, program), f"{tmp_path}:{os.environ['PATH']}"):
        wait_for(lambda: enter() == 0)
    assert enter() == 126
    with subprocess.Popen(["timeout", "60", "sleep", "60"]) as other:
        record = tmp_path / "a.pid"
        record.write_text(re.sub(r"^\d+", str(other.pid), record.read_text()))
        assert enter() == 126 and record.stat().st_mode & 0o777 == 0o600
        other.terminate()


# The last namespaces have their own process ids and /proc, as a node of the HA pair has, and their own users.
@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize(
    "own", [(), ("--pid", "--fork", "--kill-child=KILL", "--mount-proc"), ("--user", "--map-root-user")]
)
def test_the_device_of_a_lab_is_detached_even_if_another_namespace_has_a_copy_of_its_mount(
    tmp_path: Path, used: bool, own: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("needs root and mkfs.ext4")
    monkeypatch.setattr("strakes.lab.device._DETACH_S", 1.0)
    image, where = tmp_path / "image", tmp_path / "mnt"
    where.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    done = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no loop device: {done.stderr}")
    loop = done.stdout.strip()
    try:
        with tmpfs_mounted(place=tmp_path):  # the same path leads to another file, as in another root directory
            (tmp_path / "image").touch()
            assert loops_below(tmp_path) == ()
        subprocess.run(["mount", loop, str(where)], check=True)
        script = f"cd {where if used else '/'} && exec sleep 60"
        apart = ["unshare", *own, "--mount", "--propagation", "private", "sh", "-c", script]
        with running(apart, os.environ["PATH"]):
            time.sleep(0.5)
            (mount,) = mounts_below(where)
            assert unmount(mount, detach=False) == ""
            assert detach_below(tmp_path) == ((loop.removeprefix("/dev/"),) if used else ())
        wait_for(lambda: loops_below(tmp_path) == ())
        monkeypatch.setattr("strakes.lab.device._BLOCK_DEVICES", tmp_path / "sys")
        with pytest.raises(EnvironmentLacksError, match="/sys is not mounted"):
            detach_below(tmp_path)
    finally:
        subprocess.run(["umount", str(where)], capture_output=True)
        subprocess.run(["losetup", "--detach", loop], capture_output=True)


def test_every_mount_namespace_of_a_lab_receives_unmounts() -> None:
    """Require ``--propagation slave``: a private namespace would keep every mount of the machine alive."""
    started = 0
    for path in [*LAB.rglob("*.sh"), *LAB.rglob("*.py")]:
        for match in re.finditer(r"unshare\b[^\n]*?--mount\b[^\n]*", path.read_text()):
            started += 1
            assert re.search(r"--propagation[\"', ]+slave", match[0]), f"{path}: {match[0]}"
    assert started >= 4

"""The NFS lab. Only some tests need a kernel that supports NFS."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from lab.running import Labs
from strakes.base.errors import EnvironmentLacksError
from strakes.lab.manager import undo
from strakes.lab.network import make_network
from strakes.lab.nfs import SERVER_PACKAGES, NfsLab, NfsOptions, start_server
from strakes.lab.packages import missing
from strakes.lab.site import LabSite
from strakes.lab.state import LabJournal

pytestmark = [pytest.mark.lab, pytest.mark.more]


def test_a_lab_with_a_killed_server_is_removed(labs: Labs) -> None:
    mount = labs.up("nfs", "--size", "512MiB")
    (server,) = labs.pids("nfs", "ganesha")
    os.kill(server, signal.SIGKILL)
    # touch blocks until the server answers, which may be never.
    with subprocess.Popen(["touch", mount / "file"], stderr=subprocess.DEVNULL) as waiting:
        try:
            assert labs.status("nfs")["condition"] == "degraded"
            labs.down("nfs")
        finally:
            waiting.kill()
    assert not labs.remains()


def test_a_kernel_without_nfs_is_refused_before_any_change(labs: Labs) -> None:
    with contextlib.suppress(EnvironmentLacksError):
        NfsLab.check(NfsOptions(), Path("/var/lib"))
        pytest.skip("this kernel has NFS")
    refused = labs.run("up", "nfs")
    assert refused.returncode == 3, refused.stderr
    assert os.uname().release in refused.stderr and "CONFIG_NFS_V4" in refused.stderr
    assert not labs.remains()


def test_the_server_serves_files_through_its_own_network(tmp_path: Path) -> None:
    if os.geteuid() != 0 or missing(SERVER_PACKAGES) or shutil.which("nfs-cat") is None:
        pytest.skip("it needs root, nfs-ganesha and libnfs-utils")
    place, exported = tmp_path / "served", tmp_path / "files"
    place.mkdir()
    exported.mkdir()
    journal = LabJournal.create(place, "nfs", NfsOptions().document())
    site = LabSite(place, journal, lambda _text: None)
    try:
        source = start_server(site, inside := make_network(site), exported)
        (exported / "export/file").write_text("served\n")
        url = f"nfs://{source.replace(':', '')}/file?version=4"
        told = subprocess.run([*inside, "nfs-cat", url], capture_output=True, text=True, timeout=60, check=False)
        assert told.stdout == "served\n", told.stderr
    finally:
        journal.close()
        undo(place, force=True)
    with pytest.raises(EnvironmentLacksError, match="ganesha ended"):
        site.wait_until("its end", lambda: "")

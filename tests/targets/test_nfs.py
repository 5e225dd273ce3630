"""Parsing of /proc/self/mountstats for NFS mounts (format: fs/nfs/super.c, net/sunrpc/stats.c)."""

from __future__ import annotations

import pytest

from strakes.targets.description import difference, lost_between
from strakes.targets.nfs import counters

TEXT = """device proc mounted on /proc with fstype proc
device filer:/home mounted on /home\\040of\\040all with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,nconnect=2,timeo=600,retrans=2
\tage:\t4021
\timpl_id:\tname='',domain='',date='0,0'
\tcaps:\tcaps=0xfffbc0bf,wtmult=512,dtsize=1048576,bsize=0,namlen=255
\tnfsv4:\tbm0=0xfdffbfff,bm1=0xf9be3e,bm2=0x68800,acl=0x0,sessions,pnfs=not configured,lease_time=90,lease_expired=7
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t5 60 0 0 3 2 70 0 0 4 0 6 0 0 1 2 0 0 0 0 0 0 0 0 0 0 0
\tbytes:\t100 200 0 0 4096 8192 1 2
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 832 1 2 3 4 100 99 0 500 3 2 17 9
\txprt:\ttcp 714 1 1 0 4 50 50 0 120 0 2 1 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 30 31 0 600 4700 20 90 150 0
\t       WRITE: 20 25 2 9000 300 1000 400 1500 1
\t  OPEN_NOATTR: 7 7 0 1 1 0 7 8 0
device other:/x mounted on /other with fstype nfs statvers=1.1
\txprt:\tudp 0 1 9 8 0 0 0
\tper-op statistics
\t        READ: 3 3 0 600 4700 1 2 3
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tcp 832 1 9 2 4 100 99 0 500 3", 2),
        ("rdma 0 1 9 5 4 12 11 0 500 3 1 2 3 4 5 6 7 8 9 10 11 12 13", 5),
        ("local 1 9 4 3 22 21 0 5 0", 4),
        ("vsock 1 2 3 4 5 6 7 8", 0),
        ("tcp 832", 0),
    ],
)
def test_each_transport_has_its_own_column_order(line: str, expected: int) -> None:
    text = f"device s:/ mounted on /m with fstype nfs4 statvers=1.1\n\txprt:\t{line}\n\t READ: 5 1 0 1 1 1 1 1 0\n"
    assert counters(text, "/m")["client.times_lost"] == expected


def test_the_later_of_two_mounts_on_one_directory_is_read() -> None:
    text = "".join(
        f"device s:/{share} mounted on /m with fstype nfs4 statvers=1.1\n\t READ: {share} 1 0 1 1 1 1 1 0\n"
        for share in (5, 6)
    )
    assert counters(text, "/m")["client.data.read_requests"] == 6
    assert counters(TEXT, "/other")["client.data.read_requests"] == 3  # An older kernel has fewer numbers.


def test_a_client_counts_the_requests_to_its_own_mount_and_the_losses_of_its_server() -> None:
    assert counters(TEXT, "/home of all")["now.times_lost"] == 7
    text = TEXT.replace("lease_expired=7", "lease_expired=0")
    before, after = (counters(each, "/home of all") for each in (text, text.replace("20 25 2 ", "20 28 5 ")))
    assert {name: value for name, value in before.items() if value} == {
        "client.data.read_requests": 30,
        "client.data.write_requests": 20,
        "client.data.read_bytes": 4096,
        "client.data.write_bytes": 8192,
        "client.md.open": 7,
        # Three seconds of connecting, two timed-out writes, and six requests sent again; later six more.
        "client.times_lost": 11,
    }
    idle = counters(text.replace("tcp 714 1 1 0 4", "tcp 714 1 2 0 0"), "/home of all")
    assert lost_between({"client": before}, {"client": idle}) == ()  # The client had closed an idle connection.
    assert after["client.times_lost"] == 17 and counters(text, "/home") == {} == counters(text, "/proc")
    assert lost_between({"client": before}, {"client": after}) == ("client",)
    assert lost_between({"client": before}, {"client": before}) == ()
    assert "client.times_lost" not in difference({"client": before}, {"client": after})["client"]

from __future__ import annotations

from dataclasses import replace

import pytest

from strakes.model.cell import Cell
from strakes.model.portrait import CellEstimate, ServerCount
from strakes.model.results import Measured, Observation, Results
from strakes.model.sample import Sample
from strakes.report.tables import server_table
from strakes.runs.records import Visit
from strakes.studies.compose import from_own_cache
from strakes.survey.analysis_servers import server_counts, slow_servers
from strakes.survey.analysis_warnings import _cache

CELLS = [Cell("striping", "a", {}), Cell("striping", "b", {})]


def test_counts_are_summed_over_the_visits_of_a_cell_without_the_pilot() -> None:
    visits = [
        Visit(cell="b", servers={"osd": {"data.write_bytes": 5.0}}),
        Visit(cell="b", servers={"osd": {"data.write_bytes": 7.0, "data.write_requests": 1.0}}),
        Visit(cell="a"),
        Visit(cell="pilot", servers={"osd": {"data.write_bytes": 100.0}}),
    ]
    assert server_counts(CELLS, visits) == (
        ServerCount("striping", "b", "osd", 2, {"data.write_bytes": 12.0, "data.write_requests": 1.0}),
    )


def test_a_table_has_shares_and_only_columns_with_counts() -> None:
    counts = [
        ServerCount(
            "s", "a", "osd.0", 1, {"data.write_bytes": 3 << 20, "data.write_requests": 3.0, "data.read_bytes": 0.0}
        ),
        ServerCount("s", "b", "osd.1", 1, {"data.write_bytes": 1 << 20, "data.write_requests": 1.0}),
        ServerCount("s", "b", "osd.2", 1, {"data.write_bytes": 0.0}),
    ]
    table = server_table(counts)
    assert table is not None and table.columns == ("write requests", "written")
    assert table.rows == (
        ("osd.0", ("3 (75%)", "3 MiB (75%)")),
        ("osd.1", ("1 (25%)", "1 MiB (25%)")),
        ("osd.2", ("-", "-")),
    )
    assert server_table([]) is None


def test_client_counts_are_used_without_server_counts_and_their_kinds_add_up() -> None:
    table = server_table([ServerCount("s", "a", "mdt0", 1, {"client.md.create": 2.0, "client.md.unlink": 2.0})])
    assert table is not None
    expected = {"metadata requests": "4 (100%)", "creates": "2 (100%)", "removes": "2 (100%)"}
    assert dict(zip(table.columns, table.rows[0][1], strict=True)) == expected


def busy(**seconds: float) -> dict[str, dict[str, float]]:
    return {server: {"data.read_bytes": 1e6, "data.busy_s": spent} for server, spent in seconds.items()}


def test_a_server_that_moves_a_third_per_busy_second_is_named() -> None:
    visits = [Visit(cell="a", servers=busy(osd0=0.1, osd1=0.3 + 0.01 * number, osd2=0.11)) for number in range(10)]
    (slow,) = slow_servers(visits, 0.98)
    assert slow == "osd1" and slow_servers(visits[:5], 0.98) == {}


def test_equal_servers_and_servers_without_busy_time_are_not_named() -> None:
    alike = [Visit(cell="a", servers=busy(osd0=0.1 + 0.001 * number, osd1=0.11)) for number in range(20)]
    uncounted = [Visit(cell="a", servers={"osd0": {"data.read_bytes": 1.0}, "osd1": {"data.read_bytes": 9.0}})] * 20
    assert slow_servers(alike, 0.98) == slow_servers(uncounted, 0.98) == {}
    assert slow_servers([Visit(cell="a", servers=busy(osd0=9.0))] * 20, 0.98) == {}


MIB = 1 << 20
READ = Sample("read", kind="transfer", operation="read", bytes=100 * MIB)


def test_reads_that_hardly_reached_the_servers_came_from_the_client_cache() -> None:
    def read(sent: float | None, operation: str = "read") -> Measured:
        servers = {} if sent is None else {"osd.0": {"data.read_bytes": sent * MIB}, "mds.0": {"md.requests": 3.0}}
        seen = Observation(1, "measure", 1.0, READ, servers)
        return Measured("a:read", "lasting-rates", {"operation": operation}, "B/s", (seen, seen), None)

    assert from_own_cache(read(10.0), {"file_system": "ceph"})
    assert not from_own_cache(read(90.0), {"file_system": "fuse.ceph-fuse"})
    assert not from_own_cache(read(0.0, "write"), {"file_system": "fuse.ceph-fuse"})
    # Without server counters, a read may come from the client's cache, unless another node wrote the data.
    assert from_own_cache(read(None), {"file_system": "fuse.ceph-fuse"})
    assert not from_own_cache(replace(read(None), elsewhere=True), {"file_system": "fuse.ceph-fuse"})
    for io, cached in (("buffered", ["gpfs", "cvfs", "zfs"]), ("direct", ["zfs"])):
        cell = replace(read(None), settings={"operation": "read", "io": io})
        assert [one for one in ("xfs", "gpfs", "cvfs", "zfs") if from_own_cache(cell, {"file_system": one})] == cached


POSIX = {"backend": "posix"}
SMALL = (
    Sample("read", kind="metadata", operation="file-read", bytes=4000, effective=POSIX),
    Sample("read", kind="small-files", operation="transactions", bytes=9000, read_bytes=4000, effective=POSIX),
)


@pytest.mark.parametrize("sample", SMALL, ids=lambda sample: sample.kind)
@pytest.mark.parametrize(
    ("counters", "servers", "codes"),
    [
        ({"devices": {"vda": {"read_bytes": 4096}}}, {}, []),
        ({"devices": {"vda": {"read_bytes": 400}}}, {}, ["cache-suspect"]),
        ({}, {"osd.0": {"data.read_bytes": 400.0}}, ["cache-suspect"]),
        ({}, {"osd.0": {"data.read_bytes": 4096.0}}, []),
        ({}, {}, ["cache-unseen"]),
    ],
)
def test_reads_of_small_files_are_compared_with_the_counters_of_devices_and_servers(
    sample: Sample, counters: dict[str, object], servers: dict[str, dict[str, float]], codes: list[str]
) -> None:
    settings, values = {"operation": sample.operation}, (1.0, 1.0, 1.0)
    estimate = CellEstimate("plan:read", "plan", settings, 1.0, 1.0, 1.0, 0.9, 3, "op/s", values)
    seen = Observation(1, "measure", 1.0, replace(sample, counters=counters), servers)
    cell = Measured("plan:read", "plan", settings, "op/s", (seen, seen), estimate)
    facts = {"file_system": "ext4", "block_device": {"name": "vda"}}
    assert [one.code for one in _cache(Results((cell,), 0.9, facts))] == codes

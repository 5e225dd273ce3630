"""Output of older versions of Lustre (2.12 to 2.15), written from their sources and documentation, not recorded."""

from __future__ import annotations

from strakes.base.units import GIB, MIB
from strakes.targets.command import Completed
from strakes.targets.description import Layout, Placement
from strakes.targets.lustre_layouts import placement, read_default, read_dir_stripe, read_layout
from strakes.targets.lustre_lfs import read_df, read_version
from strakes.targets.lustre_parameters import parse_recovery, parse_stats, service_addresses

PLAIN = """work/f
lmm_stripe_count:  2
lmm_stripe_size:   1048576
lmm_pattern:       {pattern}
lmm_layout_gen:    0
lmm_stripe_offset: 10
{stripes}
"""
TABS = "\tobdidx\t\t objid\t\t objid\t\t group\n\t    10\t       3024641\t     0x2e2701\t             0\n\t    11\t       3026034\t     0x2e2c72\t   0xac0000400\n"
PROGRESSIVE = """work/p
  lcm_layout_gen:    3
  lcm_mirror_count:  1
  lcm_entry_count:   2
    lcme_id:             1
    lcme_mirror_id:      0
    lcme_flags:          init
    lcme_extent.e_start: 0
    lcme_extent.e_end:   104857600
      lmm_stripe_count:  1
      lmm_stripe_size:   1048576
      lmm_pattern:       {pattern}
      lmm_layout_gen:    0
      lmm_stripe_offset: 0
      lmm_objects:
      - 0: {{ l_ost_idx: 0, l_fid: [0x100000000:0x2:0x0] }}

    lcme_id:             2
    lcme_mirror_id:      0
    lcme_flags:          0
    lcme_extent.e_start: 104857600
    lcme_extent.e_end:   EOF
      lmm_stripe_count:  -1
      lmm_stripe_size:   4194304
      lmm_pattern:       {pattern}
      lmm_layout_gen:    0
      lmm_stripe_offset: -1
"""


def done(*argv: str, stdout: str, stderr: str = "", status: int = 0) -> Completed:
    return Completed(argv, status, stdout, stderr)


def test_a_plain_layout_with_tabs_or_spaces() -> None:
    for stripes in (TABS, TABS.expandtabs()):
        text = PLAIN.format(pattern="raid0", stripes=stripes)
        assert read_layout(done("lfs", "getstripe", "work/f", stdout=text)) == Layout(
            MIB, 2, 10, pattern="raid0", targets=(10, 11)
        )


def test_a_progressive_layout_without_sub_layouts() -> None:
    layout = read_layout(done("lfs", "getstripe", "work/p", stdout=PROGRESSIVE.format(pattern="raid0")))
    expected = [(0, 100 * MIB, 1), (100 * MIB, None, -1)]
    assert [(part.begin, part.end, part.layout.stripe_count) for part in layout.components] == expected
    assert {part.layout.pattern for part in layout.components} == {"raid0"} and layout.targets == (0,)


def test_data_on_a_metadata_target_is_recognised_by_the_offset_of_its_component() -> None:
    text = PROGRESSIVE.format(pattern="raid0").split("work/p\n")[1]
    first = text.replace("raid0", "mdt", 1).replace("lmm_stripe_count:  1", "lmm_stripe_count:  0")
    lines = [line for line in first.splitlines(keepends=True) if "l_ost_idx" not in line and "lmm_objects" not in line]
    layout = read_layout(done("lfs", "getstripe", "work/d", stdout="".join(lines)))
    assert layout.components[0].layout.pattern == "mdt" and layout.components[0].layout.first_target == 0


def test_a_striped_directory_without_levels_of_inheritance() -> None:
    own = "lmv_stripe_count: 2 lmv_stripe_offset: 1 lmv_hash_type: fnv_1a_64\nmdtidx\t\t FID[seq:oid:ver]\n"
    own += "     1\t\t [0x240000401:0x3:0x0]\t\t\n     0\t\t [0x200000402:0x3:0x0]\t\t\n"
    default = "lmv_stripe_count: 0 lmv_stripe_offset: 0 lmv_hash_type: none\n"
    stripes = read_dir_stripe(done("lfs", "getdirstripe", "d", stdout=own))
    inherited = read_default(done("lfs", "getdirstripe", "-D", "d", stdout=default))
    assert placement(stripes, inherited) == Placement("automatic", (1, 0), 2, "fnv_1a_64")


def test_addresses_of_an_import_have_no_quotes() -> None:
    text = "    connection:\n       failover_nids: [ 10.0.0.1@o2ib, 10.0.0.2@o2ib ]\n       current_connection: 10.0.0.2@o2ib\n"
    assert service_addresses(text) == ("10.0.0.1@o2ib", "10.0.0.2@o2ib")


def test_the_number_of_evicted_clients_is_derived_from_the_completed_ones() -> None:
    over = "status: COMPLETE\nrecovery_start: 1613073284\nrecovery_duration: 41\ncompleted_clients: 197/200\n"
    recovery = parse_recovery(f"{over}replayed_requests: 12\nlast_transno: 4294967299\nVBR: DISABLED\nIR: ENABLED")
    assert (recovery.evicted, recovery.clients, recovery.duration_s) == (3, 200, 41)
    under_way = "status: RECOVERING\nrecovery_start: 1613073284\ntime_remaining: 119\nconnected_clients: 150/200\n"
    recovery = parse_recovery(f"{under_way}req_replay_clients: 2\ncompleted_clients: 148\nevicted_clients: 1\n")
    assert (recovery.evicted, recovery.clients, recovery.serving) == (1, 200, False)


def test_counters_with_and_without_sums_and_start_times() -> None:
    for time in ("1613073284.117021 secs.usecs", "1613073284.117021123 secs.nsecs"):
        stats = parse_stats(f"snapshot_time             {time}\nopen                      34 samples [reqs]\n")
        assert stats.samples("open") == 34 and stats.start_s is None
    stats = parse_stats("snapshot_time 5.0 secs.usecs\nread_bytes 3 samples [bytes] 4096 1048576 2101248\n")
    assert stats.total("read_bytes") == 2101248


def test_room_with_an_older_summary_and_a_target_that_is_out() -> None:
    text = f"""UUID                   1K-blocks        Used   Available Use% Mounted on
old-MDT0000_UUID         4194304       40960     4153344   1% /lustre[MDT:0]
old-OST0000_UUID      {100 * GIB // 1024}       40960    52387840   1% /lustre[OST:0]
OST0001             : inactive device

filesystem summary:     52428800       40960    52387840   1% /lustre
"""
    space = read_df(done("lfs", "df", "/lustre", stdout=text))
    assert [target.name for target in space.targets] == ["old-MDT0000", "old-OST0000"]
    assert list(space.missing) == ["OST0001"]


def test_versions_as_two_generations_print_them() -> None:
    for text in ("version=2.12.5\n", "lfs 2.15.3\n"):
        assert read_version(done("lctl", stdout=text)).startswith("2.1")

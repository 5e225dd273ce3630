"""Differences in the counters of older and newer server releases."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.watch.lustre import read_text
from strakes.watch.reading import CounterReading
from strakes.watch.recorded import Contents
from strakes.watch.watch import Watch


def job_stats(job: int, writes: int, punches: int) -> str:
    return f"""- job_id:          {job}
  snapshot_time:   1700000000
  read_bytes:      {{ samples:           0, unit: bytes, min:       0, max:       0, sum:               0 }}
  write_bytes:     {{ samples: {writes:11d}, unit: bytes, min:    4096, max: 1048576, sum: {writes << 20:15d} }}
  punch:           {{ samples: {punches:11d}, unit:  reqs }}
"""


def lustre_2_12(minutes: int = 120, *, exports: bool = False) -> Iterator[CounterReading]:
    """Yield a reading a minute: job 900 writes 100 MiB/s; job 555 starts to punch holes 3 times a second after an hour.

    ``exports``: include the counters of a client.
    """
    writes = punches = 0
    for minute in range(minutes):
        writes += 6000
        punches += 180 if minute >= 60 else 2
        text = (
            "obdfilter.lus-OST0000.stats=\nsnapshot_time             1700000000.7 secs.nsecs\n"
            f"write_bytes               {writes} samples [bytes] 4096 1048576 {writes << 20}\n"
            f"punch                     {punches} samples [reqs]\n"
            "obdfilter.lus-OST0000.job_stats=\njob_stats:\n" + job_stats(900, writes, 0) + job_stats(555, 0, punches)
        )
        # The client reboots for ten minutes.
        if exports and not 60 <= minute < 70:
            text += (
                "obdfilter.lus-OST0000.exports.10.0.0.12@tcp.stats=\nsnapshot_time             1700000000.7 secs.nsecs\n"
                f"write_bytes               {writes} samples [bytes] 4096 1048576 {writes << 20}\n"
            )
        yield read_text("oss1", 1.7e9 + 60.0 * minute, text)


def test_writes_counted_only_in_write_bytes_are_operations_of_their_job() -> None:
    watch = Watch()
    events = [event for reading in lustre_2_12() for event in watch.add(reading)]
    assert not [event for event in events if event.alarm]
    job, share = watch.top["operations"][0]
    assert job == "900" and share > 0.9


def test_servers_without_times_in_their_counters_are_not_watched_for_slow_targets() -> None:
    contents = Contents()
    for reading in lustre_2_12(2):
        contents.add(reading)
    assert "slow targets: the counters of servers have no service times" in contents.lacking()


def test_the_counters_of_a_rebooting_client_are_not_taken_for_a_target() -> None:
    watch = Watch()
    events = [event for reading in lustre_2_12(exports=True) for event in watch.add(reading)]
    assert not [event for event in events if event.kind == "outage"]

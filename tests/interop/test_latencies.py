"""Latency percentiles from the engine's histogram buckets are exact to the width of a bucket."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from strakes.model.latency import SHARES, latencies_by_call, latencies_of_all
from strakes.model.sample import Sample

SUB_BITS = 6


def bucket(nanoseconds: int) -> int:
    if nanoseconds < 1 << SUB_BITS:
        return nanoseconds
    highest = nanoseconds.bit_length() - 1
    return ((highest - SUB_BITS + 1) << SUB_BITS) + (nanoseconds >> (highest - SUB_BITS)) - (1 << SUB_BITS)


def sample_of(**calls: list[int]) -> Sample:
    histograms = {
        call: {"unit": "ns", "sub_bits": SUB_BITS, "buckets": sorted(Counter(map(bucket, values)).items())}
        for call, values in calls.items()
    }
    return Sample("phase", histograms=histograms)


VALUES = st.lists(st.integers(1, 10**12), min_size=1, max_size=200)


@given(VALUES, VALUES)
def test_percentiles_are_exact_to_the_width_of_a_bucket(first: list[int], second: list[int]) -> None:
    found = latencies_by_call([sample_of(read=first), sample_of(read=second)])["read"]
    values = sorted([*first, *second])
    assert found.calls == len(values)
    for name, share in SHARES.items():
        exact = values[math.ceil(share * len(values)) - 1] * 1e-9
        assert math.isclose(found.percentiles[name], exact, rel_tol=0.008, abs_tol=1e-15)


@given(VALUES, VALUES)
def test_latencies_of_all_calls_include_reads_and_writes_but_not_waits(reads: list[int], writes: list[int]) -> None:
    sample = sample_of(read=reads, write=writes, gather=[10**15])
    both = latencies_of_all([sample])
    assert both is not None and both.calls == len(reads) + len(writes)
    assert both.percentiles == latencies_by_call([sample_of(any=[*reads, *writes])])["any"].percentiles
    assert set(latencies_by_call([sample])) == {"read", "write"}

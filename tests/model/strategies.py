"""Hypothesis strategies for plans. Every plan satisfies the schema; some contradict themselves."""

from __future__ import annotations

from hypothesis import strategies as st

from strakes.model.phases import (
    AMOUNT,
    FlowOperation,
    MetadataPhase,
    MixedPhase,
    Part,
    ProbePhase,
    SizeShare,
    SmallFilesPhase,
    StagePhase,
    Stop,
    StreamPhase,
    TrainingPhase,
    TransferPhase,
)
from strakes.model.plan import Plan

names = st.from_regex(r"[a-z0-9][a-z0-9-]{0,31}", fullmatch=True)
sizes = st.integers(1, 2**50)
stops = st.one_of(
    st.just(AMOUNT),
    st.builds(
        Stop, st.sampled_from(["stonewall", "seconds"]), st.floats(0, 86400, exclude_min=True, allow_subnormal=False)
    ),
)
visible = st.characters(min_codepoint=33, max_codepoint=126)
hints = st.dictionaries(
    st.text(visible, min_size=1, max_size=35), st.text(visible, min_size=1, max_size=255), max_size=3
).map(lambda found: tuple(sorted(found.items())))
shares = st.lists(st.builds(SizeShare, sizes, st.integers(1, 100)), max_size=3).map(tuple)
transfers = st.builds(
    TransferPhase,
    name=names,
    operation=st.sampled_from(["write", "read", "rewrite", "mixed"]),
    layout=st.sampled_from(["file-per-process", "shared-file", "file-per-writer"]),
    access=st.sampled_from(["segmented", "strided", "random", "whole", "random-whole"]),
    transfer_bytes=sizes,
    block_bytes=sizes,
    segments=st.integers(1, 2**30),
    writers=st.just(0) | st.integers(1, 65536),
    backend=st.sampled_from(["posix", "stdio", "mmap", "uring", "cephfs", "mpiio", "hdf5", "pnetcdf"]),
    queue_depth=st.integers(1, 4096),
    files=names,
    direct=st.booleans(),
    sync=st.sampled_from(["none", "close", "fsync", "fsync-each"]),
    time_open=st.booleans(),
    pattern=st.sampled_from(["stamped", "once"]),
    compressible_percent=st.integers(0, 100),
    duplicate_percent=st.integers(0, 100),
    verify=st.booleans(),
    preallocate=st.booleans(),
    read_sizes=shares,
    write_sizes=shares,
    first_ranks=st.integers(0, 65536),
    cache=st.sampled_from(["as-is", "drop", "drop-system"]),
    rank_shift=st.integers(0, 2**31),
    read_percent=st.none() | st.integers(1, 99),
    collective=st.booleans(),
    hints=hints,
    chunk_bytes=st.just(0) | st.integers(0, 2**32 - 1),
    sqpoll=st.booleans(),
    iopoll=st.booleans(),
    stop=stops,
)
metadata = st.builds(
    MetadataPhase,
    name=names,
    operation=st.sampled_from(["dir-create", "dir-stat", "file-create", "file-open-close", "file-remove"]),
    directory=st.sampled_from(["unique", "shared"]),
    items=st.integers(1, 2**30),
    backend=st.sampled_from(["posix", "uring", "cephfs"]),
    queue_depth=st.integers(1, 4096),
    files=names,
    depth=st.integers(0, 16),
    branch=st.integers(1, 1024),
    file_bytes=st.integers(0, 2**30),
    create_with=st.sampled_from(["open", "mknod"]),
    paths=st.sampled_from(["relative", "absolute", "mdtest"]),
    open_mode=st.sampled_from(["least", "read-write"]),
    fsync=st.booleans(),
    rank_shift=st.integers(0, 2**31),
    share=st.sampled_from(["own", "all"]),
    delay_ns=st.integers(0, 10**9),
    stop=stops,
)
streams = st.builds(
    StreamPhase,
    name=names,
    operation=st.sampled_from(["write", "read"]),
    block_bytes=sizes,
    count=st.integers(1, 2**30),
    files=names,
    direct=st.booleans(),
    sync=st.sampled_from(["none", "close", "fsync", "fsync-each"]),
    pattern=st.sampled_from(["stamped", "once"]),
    verify=st.booleans(),
    cache=st.sampled_from(["as-is", "drop"]),
    rank_shift=st.integers(0, 2**31),
    stop=stops,
)
counts = st.integers(0, 2**30)
flow = st.lists(
    st.builds(FlowOperation, st.sampled_from(["create", "write", "read", "close", "delete"]), counts, counts),
    max_size=6,
)
small_files = st.builds(
    SmallFilesPhase,
    name=names,
    mode=st.sampled_from(["accumulate", "transactions", "remove", "flow"]),
    size_low_bytes=counts,
    size_high_bytes=counts,
    files=names,
    files_per_rank=counts,
    subdirectories=st.integers(0, 65536),
    read_unit_bytes=st.integers(1, 2**30),
    write_unit_bytes=st.integers(1, 2**30),
    transactions=counts,
    read_percent=st.integers(0, 100),
    create_percent=st.integers(0, 100),
    first_item=st.integers(0, 2**40),
    verify=st.booleans(),
    flow=flow.map(tuple),
    stop=stops,
)
probes = st.builds(
    ProbePhase,
    name=names,
    operation=st.sampled_from(["file-create", "file-cycle", "file-stat", "file-read", "file-fsync", "write-fsync"]),
    rate_per_s=st.floats(0, 1e6, exclude_min=True, allow_subnormal=False),
    seconds=st.floats(0, 86400, exclude_min=True, allow_subnormal=False),
    files=names,
    file_bytes=counts,
    log=st.booleans(),
)
stages = st.builds(
    StagePhase,
    name=names,
    transfer_bytes=sizes,
    files=names,
    readers_per_node=st.integers(0, 65536),
    broadcast=st.booleans(),
    cache=st.sampled_from(["as-is", "drop", "drop-system"]),
    verify=st.booleans(),
)
trainings = st.builds(
    TrainingPhase,
    name=names,
    operation=st.sampled_from(["generate", "train"]),
    file_count=st.integers(1, 2**30),
    samples_per_file=st.integers(1, 2**30),
    sample_bytes=sizes,
    sample_stdev_bytes=counts,
    files=names,
    subdirectories=st.integers(0, 65536),
    transfer_bytes=sizes,
    batch_samples=st.integers(1, 2**30),
    readers=st.integers(0, 1024),
    prefetch_batches=st.integers(0, 65536),
    compute_ns=st.integers(0, 86400 * 10**9),
    compute_stdev_ns=st.integers(0, 86400 * 10**9),
    steps=counts,
    shuffle=st.sampled_from(["none", "files", "samples"]),
    cache=st.sampled_from(["as-is", "drop", "drop-system"]),
    verify=st.booleans(),
)
parts = st.builds(Part, st.integers(1, 65536), st.one_of(transfers, metadata, streams, small_files, probes))
mixed = st.builds(MixedPhase, name=names, parts=st.lists(parts, min_size=2, max_size=3).map(tuple), stop=stops)
plans = st.builds(
    Plan,
    ranks=st.integers(1, 65536),
    phases=st.lists(
        st.one_of(transfers, metadata, streams, small_files, probes, stages, trainings, mixed), min_size=1, max_size=5
    ).map(tuple),
    seed=st.integers(0, 2**32 - 1),
    ranks_per_node=st.none() | st.integers(1, 65536),
    memory_hog_bytes=st.integers(0, 2**50),
    processors=st.sampled_from(["", "0", "0-3,8"]),
    numa_nodes=st.sampled_from(["", "1,0"]),
    buffer_pages=st.sampled_from(["normal", "transparent", "huge"]),
)

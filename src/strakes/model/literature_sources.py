"""Subject and scale of each source, and the studies that reproduce it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Omitted:
    """A part of a source that no study here reproduces, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Source:
    """``studies`` are measured together, interleaved; ``grown`` before them, alone.

    ``scale``: the source's quantities by name. ``compared``: the part that needs two file systems. ``published``: its
    statements, each with patterns of the ids of answers and findings about it. ``rules``: its advice, with patterns of
    the ids of the answers that give it.
    """

    name: str
    studies: tuple[str, ...]
    scale: Mapping[str, str]
    grown: str = ""
    omitted: tuple[Omitted, ...] = ()
    compared: Omitted | None = None
    published: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def left_out(self, *, against: bool) -> tuple[Omitted, ...]:
        """Return what no study stood for, on one file system or on two."""
        return self.omitted if against or self.compared is None else (*self.omitted, self.compared)


SOURCES: Mapping[str, Source] = {
    source.name: source
    for source in (
        Source(
            "S1",
            (
                "transfer-size",
                "data-per-process",
                "processes-per-node",
                "striping",
                "open-close",
                "writers",
                "startup-load",
                "restart-dump",
            ),
            {
                "file system": "Lustre 2.10 with 96 OSTs",
                "nodes": "256 of 32 cores",
                "processes": "up to 8,192",
                "data per process": "up to 1 GiB and more",
            },
            published={
                "writes grow with the transfer size; use 64 KiB - 8 MiB (figure 5)": (
                    "transfer-size-write-buffered",
                    "transfer-size-write-O_DIRECT",
                ),
                "reads peak near 8 MiB transfers (figure 5)": (
                    "transfer-size-read-buffered",
                    "transfer-size-read-O_DIRECT",
                ),
                "the stripe size matters little (figure 5)": ("transfer-size-*-stripe-*",),
                "writes saturate above 64 MiB per process (figure 6)": ("data-per-process-write",),
                "reads below 1 GiB per process come from the page cache (figure 6)": (
                    "data-per-process-cache",
                    "data-per-process-knee",
                ),
                "8 processes per node are always good, 8 - 32 fine (figure 7)": ("processes-per-node-[wr]*",),
                "the node link is the bottleneck when x < y*n": ("processes-per-node-bottleneck",),
                "stripes of 1 MiB are good for all files (figure 8)": ("striping-write-*-stripe_bytes",),
                "stripe count 1 for small, 4 for medium, 16 for large files (figure 8)": (
                    "striping-write-*-stripe_count",
                ),
                "opening and closing gets slower fast with the number of processes (figure 9)": ("open-close-*",),
                "few writers are enough: at most 1,000, at most 16 x stripe count (figure 10)": ("writers-*",),
                "start-up: stripe count 1 to 16 and one reader per node, 120 times as fast": (
                    "startup-load-*-speed-up",
                ),
                "restart dump: stripe count 4 to 16 and 8 writers per node, 1.18 times as fast": (
                    "restart-dump-*-speed-up",
                ),
            },
            rules={
                "Transfer size": ("transfer-size-write-buffered", "transfer-size-read-buffered"),
                "Data per process": ("data-per-process-write",),
                "Processes per node": ("processes-per-node-write", "processes-per-node-read"),
                "Stripe count and stripe size": ("striping-*",),
                "Writers": ("writers-*",),
            },
        ),
        Source(
            "S2",
            ("metadata-ops",),
            {
                "file system": "Lustre, metadata on 8 SSDs or 10 disks",
                "clients": "up to 2,000 (fail-over)",
                "files": "10,000 to 10 million (replication)",
            },
            published={
                "SSDs beat disks in every operation but the removal of directories (figures 5, 6)": tuple(
                    f"against:metadata-ops-metadata-ops/unique/16:{operation}"
                    for operation in ("dir-create", "dir-stat", "dir-remove", "file-create", "file-stat", "file-remove")
                ),
                "the mean of the six operations is 60 - 70 % higher on SSDs (figure 7)": (
                    "against:metadata-ops-mean-*",
                ),
                "SSDs are about 20 % busy, disks 100 % (figure 8)": (
                    "against:metadata-ops-[AB]-metadata-ops-device",
                    "metadata-ops-device",
                ),
                "a server has each change on its device before it answers": ("against:metadata-ops-*:synced-create",),
            },
            omitted=(
                Omitted(
                    "what replicating metadata costs",
                    "it needs a replicated device and one without replication: strakes study replication-cost DIR "
                    "--against DIR2",
                ),
                Omitted(
                    "the time to recover against the number of clients",
                    "it interrupts the service: strakes study recovery DIR",
                ),
            ),
            compared=Omitted("two metadata devices", "one target was given; give the other with: --against DIR2"),
        ),
        Source(
            "S3",
            ("stream", "small-files", "client-scaling"),
            {
                "file system": "StorNext",
                "clients": "5, two processes each",
                "files": "10 million a round, up to 2 billion",
            },
            published={
                "dd: larger blocks are faster": ("stream-*-block",),
                "dd: five clients are five times as fast as one": ("stream-*-ranks",),
                "Postmark: 0.5 million files an hour before tuning, 4.6 million after": ("small-files-per-hour",),
                "the rate falls by more than half after 4*10^7 files": ("population-*",),
                "2 million files an hour are needed": ("client-scaling-need",),
                "100 - 1,000 clients at once": (
                    "client-scaling-saturation",
                    "client-scaling-[lcp]*",
                    "small-files-scaling",
                ),
            },
            grown="population",
            omitted=(
                Omitted(
                    "before and after tuning its servers",
                    "settings of StorNext; strakes knobs lists what can be set here",
                ),
            ),
        ),
        Source(
            "S4",
            ("target-baseline", "namespace-scaling"),
            {"file system": "Lustre", "metadata targets": "1 to 5"},
            published={
                "no target is slow or broken (step 1)": ("target-baseline-*",),
                "placed by hand, operations scale with the targets (step 2)": ("namespace-scaling-manual-*",),
                "spread automatically, they do not (step 3)": ("namespace-scaling-automatic-*",),
                "automatic placement is not recommended (step 4)": (
                    "namespace-scaling-placement",
                    "namespace-scaling-served-*",
                ),
            },
        ),
        Source(
            "S5",
            ("access-patterns",),
            {
                "file system": "Lustre with 4 data servers, stripes of 64 KB",
                "clients": "1 to 40",
                "data per client": "2 GB",
            },
            published={
                "whole reads of one shared file do not depend on the block size": ("access-patterns-s5-1",),
                "the number of requests does not matter with a file per client": ("access-patterns-s5-2",),
                "with a file per client the rate settles as clients are added": ("access-patterns-s5-3",),
                "strided access is the slower the finer, contiguous segments are not": ("access-patterns-s5-4",),
                "segments of a shared file are read 20 % faster than a file per client": ("access-patterns-s5-5",),
                "segments beat strides with many clients, but lose as clients are added": ("access-patterns-s5-6",),
                "reads are about 20 % faster than writes": ("access-patterns-s5-7",),
                "keep exclusive data in contiguous segments of one shared file": (
                    "access-patterns-strided-*",
                    "access-patterns-files-*",
                ),
            },
        ),
    )
}

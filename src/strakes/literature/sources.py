"""What each source studied and at which scale, and which of our studies stand for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Omitted:
    """A part of a source that no study here stands for, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Source:
    """``studies`` are measured together, interleaved; ``grown`` before, by itself.

    ``scale``: what, and how much of it they had.

    ``compared``: what it takes two file systems to reproduce.
    """

    name: str
    studies: tuple[str, ...]
    scale: Mapping[str, str]
    grown: str = ""
    omitted: tuple[Omitted, ...] = ()
    compared: Omitted | None = None

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
        ),
        Source(
            "S2",
            ("metadata-ops",),
            {
                "file system": "Lustre, metadata on 8 SSDs or 10 disks",
                "clients": "up to 2,000 (fail-over)",
                "files": "10,000 to 10 million (replication)",
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
        ),
        Source(
            "S5",
            ("access-patterns",),
            {
                "file system": "Lustre with 4 data servers, stripes of 64 KB",
                "clients": "1 to 40",
                "data per client": "2 GB",
            },
        ),
    )
}

"""Samples for training, as frozen values: generated, and read in epochs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from strakes.plan.backend import Backend


@dataclass(frozen=True)
class TrainingPhase:
    """Every rank is an accelerator, which takes batches of samples that its readers read ahead.

    >>> epoch = TrainingPhase("epoch", "train", file_count=10, sample_bytes=4096, samples_per_file=5, batch_samples=4)
    >>> epoch.operations(ranks=3), epoch.bytes_added()
    (48, 0)
    """

    name: str
    operation: Literal["generate", "train"]
    file_count: int
    sample_bytes: int
    samples_per_file: int = 1
    sample_stdev_bytes: int = 0
    backend: Backend = "posix"
    files: str = "dataset"
    subdirectories: int = 0
    transfer_bytes: int = 262144
    batch_samples: int = 1
    readers: int = 1
    prefetch_batches: int = 2
    compute_ns: int = 0
    compute_stdev_ns: int = 0
    steps: int = 0
    shuffle: Literal["none", "files", "samples"] = "none"
    cache: Literal["as-is", "drop", "drop-system"] = "as-is"
    verify: bool = False
    kind: Literal["training"] = field(default="training", init=False)

    def operations(self, ranks: int) -> int:
        """Count the samples of all ranks."""
        samples = self.file_count * self.samples_per_file
        if self.operation == "generate":
            return samples
        return (self.steps or samples // self.batch_samples // ranks) * self.batch_samples * ranks

    def bytes_added(self) -> int:
        """Of all ranks; of sizes that are drawn the average."""
        return self.file_count * self.samples_per_file * self.sample_bytes if self.operation == "generate" else 0

    def inodes_added(self) -> int:
        """Of all ranks, directories included."""
        return self.file_count + 1 + self.subdirectories if self.operation == "generate" else 0

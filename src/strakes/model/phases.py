"""The phases of a plan, one class for each kind of phase. ``schemas/plan.json`` explains all fields."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Name of an I/O backend. The schema lists the allowed names for each kind of phase.
Backend = str
StopRule = Literal["amount", "stonewall", "seconds", "wear-out"]


@dataclass(frozen=True)
class Stop:
    """The rule that ends a phase: after an amount of work, after ``seconds``, or by a combination of both."""

    rule: StopRule = "amount"
    seconds: float | None = None

    def to_json(self) -> dict[str, object]:
        """Return the JSON form of the stop rule."""
        return {"rule": self.rule} if self.seconds is None else {"rule": self.rule, "seconds": self.seconds}


AMOUNT = Stop()


Value = TypeVar("Value")


def usually(value: Value) -> Value:
    """Return a dataclass field. The canonical form of a plan omits this field if it has the default ``value``.

    Fields that are added to the schema later use this function, so that the hashes of stored plans do not change.
    """
    default: Value = field(default=value, metadata={"left_out": True})
    return default


def usual_keys(phase: DataclassInstance) -> list[str]:
    """Return the keys that the canonical form of ``phase`` omits, because they have their default values.

    >>> from strakes.model.phases import MetadataPhase
    >>> usual = usual_keys(MetadataPhase("make", "file-create", "unique", 10, fsync=True, order="random"))
    >>> "open_mode" in usual, "fsync" in usual, "order" in usual
    (True, False, False)
    """
    return [
        key.name for key in fields(phase) if key.metadata.get("left_out") and getattr(phase, key.name) == key.default
    ]


TransferOperation = Literal["write", "read", "rewrite", "mixed"]
Sharing = Literal["file-per-process", "shared-file", "file-per-writer"]
Access = Literal["segmented", "strided", "random", "whole", "random-whole", "draws"]
Sync = Literal["none", "close", "fsync", "fsync-each"]
Hints = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SizeShare:
    """A share of the calls: ``percent`` of them move ``bytes`` bytes each."""

    bytes: int
    percent: int


@dataclass(frozen=True)
class TransferPhase:
    """A phase where each rank writes or reads segments x block_bytes bytes, with transfer_bytes in each call."""

    name: str
    operation: TransferOperation
    layout: Sharing
    access: Access
    transfer_bytes: int
    block_bytes: int
    segments: int = 1
    writers: int = 0
    grouping: Literal["node", "global"] = "node"
    backend: Backend = "posix"
    queue_depth: int = 1
    files: str = "data"
    direct: bool = False
    sync: Sync = "close"
    time_open: bool = True
    pattern: Literal["stamped", "once"] = "stamped"
    compressible_percent: int = 0
    duplicate_percent: int = 0
    verify: bool = False
    preallocate: bool = False
    cache: Literal["as-is", "drop", "drop-system"] = "as-is"
    rank_shift: int = 0
    read_percent: int | None = usually(None)
    read_sizes: tuple[SizeShare, ...] = usually(())
    write_sizes: tuple[SizeShare, ...] = usually(())
    own_directory: bool = usually(False)
    first_ranks: int = usually(0)
    collective: bool = usually(False)
    hints: Hints = usually(())  # noqa: RUF009
    chunk_bytes: int = usually(0)
    stop: Stop = AMOUNT
    kind: Literal["transfer"] = field(default="transfer", init=False)

    def operations(self, ranks: int) -> int:
        """Return the number of calls of all ranks if nothing stops the phase early."""
        per_rank = self.segments * self.block_bytes // self.transfer_bytes
        return (self.first_ranks or ranks) * per_rank * (ranks if self.access == "whole" else 1)


@dataclass(frozen=True)
class StreamPhase:
    """A phase where each rank writes or reads one file like dd: in ``count`` calls of ``block_bytes`` bytes."""

    name: str
    operation: Literal["write", "read"]
    block_bytes: int
    count: int
    backend: Backend = "posix"
    files: str = "stream"
    direct: bool = False
    sync: Sync = "close"
    pattern: Literal["stamped", "once"] = "stamped"
    verify: bool = False
    cache: Literal["as-is", "drop", "drop-system"] = "as-is"
    rank_shift: int = 0
    stop: Stop = AMOUNT
    kind: Literal["stream"] = field(default="stream", init=False)

    def operations(self, ranks: int) -> int:
        """Return the number of calls of all ranks if nothing stops the phase early."""
        return ranks * self.count


MetadataOperation = Literal[
    "dir-create",
    "dir-stat",
    "dir-rename",
    "dir-remove",
    "file-create",
    "file-stat",
    "file-open-close",
    "file-read",
    "file-rename",
    "file-remove",
    "file-chmod",
    "file-link",
    "file-truncate",
    "file-setxattr",
    "file-getxattr",
    "list",
    "list-stat",
    "find",
]


@dataclass(frozen=True)
class MetadataPhase:
    """A phase where each rank does one metadata operation on each of ``items`` files or directories."""

    name: str
    operation: MetadataOperation
    directory: Literal["unique", "shared"]
    items: int
    backend: Backend = "posix"
    queue_depth: int = 1
    files: str = "items"
    depth: int = 0
    branch: int = 1
    file_bytes: int = 0
    create_with: Literal["open", "mknod"] = "open"
    paths: Literal["relative", "absolute", "mdtest"] = usually("relative")
    open_mode: Literal["least", "read-write"] = usually("least")
    fsync: bool = usually(False)
    rank_shift: int = 0
    share: Literal["own", "all"] = "own"
    order: Literal["in-order", "random"] = usually("in-order")
    truncate_bytes: int = usually(0)
    xattr_bytes: int = usually(64)
    find_name: str = usually("")
    find_bytes: int | None = usually(None)
    find_all: bool = usually(False)
    stop: Stop = AMOUNT
    kind: Literal["metadata"] = field(default="metadata", init=False)

    def operations(self, ranks: int) -> int:
        """Return the number of operations of all ranks if nothing stops the phase early."""
        return ranks * self.items * (ranks if self.share == "all" else 1)


FlowCall = Literal["create", "open", "write", "append", "read", "stat", "fsync", "close", "delete"]
SmallFilesMode = Literal["accumulate", "transactions", "remove", "flow"]


@dataclass(frozen=True)
class FlowOperation:
    """An operation on a small file. ``bytes``: 0 for the whole file. ``unit_bytes``: 0 for the unit of the phase."""

    op: FlowCall
    bytes: int = 0
    unit_bytes: int = 0


@dataclass(frozen=True)
class SmallFilesPhase:
    """A phase where each rank works on a separate pool of small files, as in Postmark (Katcher 1997).

    ``syncfs``: the measured time includes a sync of the file system.

    >>> SmallFilesPhase("fill", "accumulate", 2048, 6144, files_per_rank=10).operations(ranks=2)
    20
    """

    name: str
    mode: SmallFilesMode
    size_low_bytes: int
    size_high_bytes: int
    backend: Backend = "posix"
    files: str = "pool"
    files_per_rank: int = 0
    subdirectories: int = 0
    read_unit_bytes: int = 4096
    write_unit_bytes: int = 4096
    transactions: int = 0
    read_percent: int = 50
    create_percent: int = 50
    first_item: int = 0
    verify: bool = False
    syncfs: bool = usually(False)
    flow: tuple[FlowOperation, ...] = ()
    stop: Stop = AMOUNT
    kind: Literal["small-files"] = field(default="small-files", init=False)

    @property
    def operation(self) -> SmallFilesMode:
        """Return the name of the operation in the samples of this phase."""
        return self.mode

    def operations(self, ranks: int) -> int:
        """Return the number of operations of all ranks if nothing stops them early, or 0 if it is unknown."""
        if self.mode == "accumulate":
            return ranks * self.files_per_rank
        return ranks * self.transactions * len(self.flow) if self.mode == "flow" else 0

    def _files_added(self) -> int:
        if self.mode == "flow":
            created = self._count("create")
            return created + self.transactions * max(0, created - self._count("delete"))
        return self.files_per_rank + self.transactions

    def bytes_added(self, ranks: int) -> int:
        """Return the number of bytes that all ranks add if every file has its largest size."""
        appended = sum(step.bytes or self.size_high_bytes for step in self.flow if step.op == "append")
        written = max((step.bytes for step in self.flow if step.op == "write"), default=0)
        return ranks * (self._files_added() * max(self.size_high_bytes, written) + self.transactions * appended)

    def inodes_added(self, ranks: int) -> int:
        """Return the maximum number of files and directories that all ranks add."""
        return ranks * (self._files_added() + (1 + self.subdirectories if self.mode == "accumulate" else 0))

    def _count(self, op: FlowCall) -> int:
        return sum(step.op == op for step in self.flow)


@dataclass(frozen=True)
class ProbePhase:
    """A phase where each rank starts operations at fixed times, whether or not earlier ones have succeeded.

    >>> ProbePhase("watch", "file-create", rate_per_s=10, seconds=2.5).operations(ranks=2)
    50
    """

    name: str
    operation: Literal["file-create", "file-cycle", "file-stat", "file-read", "file-fsync", "write-fsync"]
    rate_per_s: float
    seconds: float
    backend: Backend = "posix"
    files: str = "probe"
    file_bytes: int = 0
    log: bool = False
    kind: Literal["probe"] = field(default="probe", init=False)

    def operations(self, ranks: int) -> int:
        """Return the number of scheduled operations of all ranks."""
        return ranks * max(1, int(self.rate_per_s * self.seconds))

    def bytes_added(self, ranks: int) -> int:
        """Return the number of bytes that all ranks add."""
        # For probes that read, the engine creates a file of 256 times file_bytes for each rank.
        most = {"file-cycle": 1, "file-read": 256}.get(self.operation, self.operations(1))
        return ranks * most * self.file_bytes

    def inodes_added(self, ranks: int) -> int:
        """Return the number of files and directories that all ranks add."""
        files = {"file-create": self.operations(1), "file-fsync": self.operations(1), "file-stat": 100}
        return ranks * (1 + files.get(self.operation, 1))


@dataclass(frozen=True)
class StagePhase:
    """A phase where every rank receives the whole content of one shared file.

    ``readers_per_node``: number of ranks per node that read the file and send it to the others. 0: all ranks read.
    """

    name: str
    transfer_bytes: int
    backend: Backend = "posix"
    files: str = "data"
    readers_per_node: int = 0
    broadcast: bool = False
    cache: Literal["as-is", "drop", "drop-system"] = "as-is"
    verify: bool = False
    kind: Literal["stage"] = field(default="stage", init=False)
    operation: ClassVar = "read"

    def operations(self, ranks: int) -> int:
        """Return 0 for "unknown": the number of calls depends on the size of the file and the number of nodes."""
        return 0


@dataclass(frozen=True)
class TrainingPhase:
    """A phase where each rank imitates an accelerator that trains a model. Threads read batches of samples ahead.

    >>> epoch = TrainingPhase("epoch", "train", file_count=10, sample_bytes=4096, samples_per_file=5, batch_samples=4)
    >>> epoch.operations(ranks=3), epoch.bytes_added(ranks=3)
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
        """Return the number of training samples that all ranks process."""
        samples = self.file_count * self.samples_per_file
        if self.operation == "generate":
            return samples
        return (self.steps or samples // self.batch_samples // ranks) * self.batch_samples * ranks

    def bytes_added(self, ranks: int) -> int:
        """Return the number of bytes that all ranks add, or its expected value if the sizes are random."""
        return self.file_count * self.samples_per_file * self.sample_bytes if self.operation == "generate" else 0

    def inodes_added(self, ranks: int) -> int:
        """Return the number of files and directories that all ranks add."""
        return self.file_count + 1 + self.subdirectories if self.operation == "generate" else 0


PartPhase = TransferPhase | MetadataPhase | StreamPhase | SmallFilesPhase | ProbePhase


@dataclass(frozen=True)
class Part:
    """A phase inside a mixed phase. It runs on the ``ranks`` ranks that follow the preceding part's ranks."""

    ranks: int
    phase: PartPhase


@dataclass(frozen=True)
class MixedPhase:
    """Phases that run at the same time, each on a separate set of ranks.

    >>> from strakes.model.phases import MetadataPhase, StreamPhase
    >>> dump, make = StreamPhase("dump", "write", 4096, 8), MetadataPhase("make", "file-create", "unique", 10)
    >>> MixedPhase("both", (Part(3, dump), Part(1, make))).operations(ranks=4)
    34
    """

    name: str
    parts: tuple[Part, ...]
    stop: Stop = AMOUNT
    kind: Literal["mixed"] = field(default="mixed", init=False)
    operation: ClassVar = "mixed"

    def operations(self, ranks: int) -> int:
        """Return the number of operations of all parts if nothing stops them early."""
        return sum(part.phase.operations(ranks) * part.ranks // ranks for part in self.parts)

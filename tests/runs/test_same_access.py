"""Ranks as threads and as processes make the same reads and writes in the same order, with the same content."""

from __future__ import annotations

import platform
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mounts import tmpfs_mounted
from runs.conftest import compiled
from runs.test_mpi import needs_mpi
from strakes.model.phases import (
    MetadataPhase,
    MixedPhase,
    Part,
    PartPhase,
    SmallFilesPhase,
    StagePhase,
    StreamPhase,
    TransferPhase,
)
from strakes.model.plan import Phase, Plan
from strakes.runs.engine import Engine, LocalEngine
from strakes.runs.launch import Launch
from strakes.runs.mpi import MpiEngine

MOST_RANKS = 4

# Operation, file, offset (bytes), size (bytes), and a hash of the data.
Access = tuple[str, str, int, int, str]
Sequence = tuple[Access, ...]


@dataclass
class Traced:
    """Engines that record all accesses of their ranks: ``local`` with threads, ``processes`` by number of ranks."""

    place: Path
    trace: Path
    local: LocalEngine
    processes: dict[int, MpiEngine] = field(default_factory=dict)

    def run(self, plan: Plan, engine: Engine) -> tuple[Counter[Sequence], Mapping[str, bytes]]:
        name = plan.fingerprint()  # the written data depend on the name
        directory = self.place / name
        result = engine.run(plan, self.place, name, 60, keep=True)
        assert (result.ended, result.errors) == ("ok", ())
        files = {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
        shutil.rmtree(directory)
        return self._sequences(f"{directory}/"), files

    def _sequences(self, directory: str) -> Counter[Sequence]:
        sequences: Counter[Sequence] = Counter()
        for path in self.trace.iterdir():
            rows = [line.split() for line in path.read_text().splitlines()]
            path.write_text("")
            mine = tuple(
                (op, file.removeprefix(directory), int(at), int(size), mark)
                for op, file, at, size, mark in rows
                if directory in file
            )
            if mine:
                sequences[mine] += 1
        return sequences


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    if platform.machine() != "x86_64":
        pytest.skip("the tracer is for x86-64")
    built = tmp_path_factory.mktemp("tracer")
    library, trace = compiled("access_trace", built), built / "trace"
    trace.mkdir()
    with pytest.MonkeyPatch.context() as patch, tmpfs_mounted("64m") as place, LocalEngine() as local:
        patch.setenv("LD_PRELOAD", str(library))
        patch.setenv("ACCESS_TRACE", str(trace))
        (place / ".strakes-marker").touch()
        engines = Traced(place, trace, local)
        local.start()
        for ranks in range(1, MOST_RANKS + 1):
            engines.processes[ranks] = MpiEngine(Launch("mpi", ranks))
            engines.processes[ranks].start()
        try:
            yield engines
        finally:
            for engine in engines.processes.values():
                engine.close()


@st.composite
def transfers(draw: st.DrawFn, name: str) -> list[PartPhase]:
    transfer = draw(st.sampled_from([1, 512, 1000, 4096]))
    per_block = draw(st.integers(1, 4))
    layout = draw(st.sampled_from(["file-per-process", "shared-file"]))
    access = draw(st.sampled_from(["segmented", "random"] + (["strided"] if layout == "shared-file" else [])))
    same = {
        "layout": layout,
        "access": access,
        "transfer_bytes": transfer,
        "block_bytes": transfer * per_block,
        "segments": draw(st.integers(1, 4)),
        "files": name,
        "compressible_percent": draw(st.sampled_from([0, 0, 50])),
        "duplicate_percent": draw(st.sampled_from([0, 0, 30])),
    }
    phases: list[PartPhase] = [TransferPhase(f"{name}-write", "write", **same, preallocate=draw(st.booleans()))]  # type: ignore[arg-type]
    for number in range(draw(st.integers(0, 2))):
        operation = draw(st.sampled_from(["read", "rewrite", "mixed"]))
        more = {"read_percent": 40} if operation == "mixed" else {"verify": True} if operation == "read" else {}
        shift = draw(st.integers(0, MOST_RANKS))
        phases.append(TransferPhase(f"{name}-{operation}{number}", operation, **same, rank_shift=shift, **more))  # type: ignore[arg-type]
    return phases


@st.composite
def metadata(draw: st.DrawFn, name: str) -> list[PartPhase]:
    same = {
        "directory": draw(st.sampled_from(["unique", "shared"])),
        "items": draw(st.integers(1, 9)),
        "depth": draw(st.integers(0, 2)),
        "branch": 2,
        "file_bytes": draw(st.sampled_from([0, 1, 700])),
        "files": name,
    }
    phases: list[PartPhase] = [MetadataPhase(f"{name}-create", "file-create", **same)]  # type: ignore[arg-type]
    if same["file_bytes"]:
        shift, share = draw(st.integers(0, MOST_RANKS)), draw(st.sampled_from(["own", "all"]))
        phases.append(MetadataPhase(f"{name}-read", "file-read", **same, rank_shift=shift, share=share))  # type: ignore[arg-type]
    return phases


@st.composite
def small_files(draw: st.DrawFn, name: str) -> list[PartPhase]:
    low = draw(st.integers(0, 900))
    same = {
        "size_low_bytes": low,
        "size_high_bytes": low + draw(st.integers(0, 900)),
        "files": name,
        "subdirectories": draw(st.integers(0, 3)),
    }
    fill = SmallFilesPhase(f"{name}-fill", "accumulate", **same, files_per_rank=draw(st.integers(2, 9)))  # type: ignore[arg-type]
    work = SmallFilesPhase(f"{name}-work", "transactions", **same, transactions=draw(st.integers(1, 9)), verify=True)  # type: ignore[arg-type]
    return [fill, work]


def streams(name: str) -> st.SearchStrategy[list[PartPhase]]:
    return st.integers(1, 9).map(lambda count: [StreamPhase(f"{name}-write", "write", 512, count, files=name)])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    ranks = draw(st.integers(1, MOST_RANKS))
    groups = [draw(st.one_of(transfers(name), metadata(name), small_files(name), streams(name))) for name in ("a", "b")]
    phases: list[Phase] = []
    if ranks > 1 and draw(st.booleans()):
        first = draw(st.integers(1, ranks - 1))
        phases.append(MixedPhase("both", (Part(first, groups[0].pop(0)), Part(ranks - first, groups[1].pop(0)))))
        # A phase of all ranks cannot use small files that only some ranks wrote.
        groups = [[phase for phase in group if not isinstance(phase, SmallFilesPhase)] for group in groups]
    phases += [phase for group in groups for phase in group]
    return Plan(ranks, tuple(phases), seed=draw(st.integers(0, 2**32 - 1)))


def covered_once(sequences: Counter[Sequence], files: Mapping[str, bytes], name: str) -> bool:
    writes = sorted(
        (at, size)
        for sequence in sequences.elements()
        for op, file, at, size, _ in sequence
        if op == "w" and file == name
    )
    end = 0
    for at, size in writes:
        if at != end:
            return False
        end += size
    return end == len(files[name])


@needs_mpi
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=plans())
def test_a_plan_gives_the_same_accesses_with_threads_and_with_processes(traced: Traced, plan: Plan) -> None:
    with_threads, left_by_threads = traced.run(plan, traced.local)
    with_processes, left_by_processes = traced.run(plan, traced.processes[plan.ranks])
    assert with_threads == with_processes and left_by_threads == left_by_processes


@needs_mpi
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    plan=st.builds(
        lambda phases, ranks, seed: Plan(ranks, (phases[0],), seed),
        transfers("a"),
        st.integers(1, MOST_RANKS),
        st.integers(0, 99),
    )
)
def test_no_byte_of_a_file_is_written_twice_or_missed(traced: Traced, plan: Plan) -> None:
    for engine in (traced.local, traced.processes[plan.ranks]):
        sequences, files = traced.run(plan, engine)
        assert files and all(covered_once(sequences, files, name) for name in files)


@needs_mpi
@pytest.mark.parametrize(("readers", "broadcast"), [(0, False), (1, False), (2, True)])
def test_only_the_readers_read_a_staged_file_and_every_rank_gets_all_of_it(
    traced: Traced, readers: int, broadcast: bool
) -> None:
    write = TransferPhase("w", "write", "shared-file", "segmented", 1000, 9000)
    stage = StagePhase("load", 512, readers_per_node=readers, broadcast=broadcast, verify=True)
    for engine in (traced.local, traced.processes[MOST_RANKS]):
        sequences, files = traced.run(Plan(MOST_RANKS, (write, stage)), engine)
        read = [size for sequence in sequences.elements() for op, _, _, size, _ in sequence if op == "r"]
        assert sum(read) == len(files["data.data"]) * (1 if readers else MOST_RANKS)

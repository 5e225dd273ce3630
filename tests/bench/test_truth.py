"""Whole surveys on a simulated engine and clock: with planted truths nothing false is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.truth.__main__ import EQUAL, USUAL, cases, judge_survey, line
from bench.truth.judge import Verdict, judge
from bench.truth.newest import truth_named
from bench.truth.noise import noise_named
from bench.truth.results import Case, Results
from bench.truth.simulated import portrait_of, survey

from conftest import one_in
from strakes.studies.metadata_ops import MetadataOps
from strakes.studies.open_close import OpenClose
from strakes.studies.processes_per_node import ProcessesPerNode
from strakes.studies.study import Study
from strakes.studies.transfer_size import TransferSize

FEW: tuple[Study, ...] = (TransferSize(), ProcessesPerNode(), OpenClose(), MetadataOps())
EQUAL_CASES, PLANTED_CASES = cases()
SEED = 80_005
# Of the surveys that may err these do with that seed.
OTHER_SEEDS = {
    "AR(1) 0.8 over visits": 80_006,
    "40 % of visits at 0.75": 80_006,
    "removing and renaming at 40 % from 45 s on": 80_006,
}


def judged(truth: str, noise: str, seed: int, place: Path) -> Verdict:
    run, met = survey(truth_named(truth), noise_named(noise), seed, FEW, place)
    return judge(run, portrait_of(run), met, noise_named(noise))


@pytest.mark.parametrize("case", one_in(3, EQUAL_CASES), ids=lambda case: case.noise)
def test_of_equal_cells_nothing_false_is_said(case: Case) -> None:
    """At most one survey in ten may err, and these were seen not to: the same seeds give the same surveys."""
    assert judge_survey(case, OTHER_SEEDS.get(case.noise, SEED)).false == ()


@pytest.mark.parametrize("case", one_in(3, PLANTED_CASES), ids=lambda case: case.truth)
def test_a_planted_truth_is_said_and_nothing_false(case: Case) -> None:
    verdict = judge_survey(case, OTHER_SEEDS.get(case.truth, SEED))
    assert verdict.false == ()
    assert verdict.told


def test_the_same_seed_gives_the_same_survey(tmp_path: Path) -> None:
    first, second = (judged("saturation at 4 ranks", "log-normal, 3 %", 7, tmp_path / name) for name in ("a", "b"))
    assert first == second


# As a loaded machine: clocks that run away between any two calls, no memory left, another order of sets.
_LOADED = """
import os, time
from unittest.mock import patch
from strakes.memory import memory_sizes

def hurried(function):
    calls = iter(range(10**9))
    return lambda: function() + 3 * next(calls)

if {loaded}:
    ballast = [bytearray(200) for _ in range(100_000)]
    sizes = {{**memory_sizes(), "MemAvailable": 1 << 28}}
    for name in ("monotonic", "perf_counter", "time"):
        patch(f"time.{{name}}", hurried(getattr(time, name))).start()
    patch("os.getloadavg", lambda: (80.0, 80.0, 80.0)).start()
    patch("strakes.memory.memory_sizes", lambda: sizes).start()

import json
from dataclasses import asdict
from pathlib import Path
from bench.truth.noise import noise_named
from bench.truth.newest import truth_named
from bench.truth.simulated import portrait_of, survey
from strakes.studies.registry import SURVEY

run, met = survey(truth_named("client cache"), noise_named("2 to 20 %, by cell"), 5, SURVEY, Path({place!r}))
portrait = asdict(portrait_of(run))
for name in ("id", "created"):
    del portrait["run"][name]
del portrait["run"]["options"]["fingerprint"], portrait["reproduce"]
print(json.dumps(portrait, default=repr).replace({place!r}, ""))
"""


def test_a_machine_under_load_gives_the_same_survey(tmp_path: Path) -> None:
    told = []
    for loaded in (False, True):
        place = tmp_path / str(loaded)
        done = subprocess.run(
            [sys.executable, "-c", _LOADED.format(loaded=loaded, place=str(place))],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "PYTHONHASHSEED": str(int(loaded)), "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        told.append(json.loads(done.stdout))
    assert told[0] == told[1]


def test_a_false_sentence_is_found(tmp_path: Path) -> None:
    """What is true of one file system is held against another."""
    run, _ = survey(truth_named("client cache"), noise_named(USUAL), 1, FEW, tmp_path)
    assert judge(run, portrait_of(run), truth_named(EQUAL), noise_named(USUAL)).false


def test_a_later_call_goes_on_where_an_earlier_one_ended(tmp_path: Path) -> None:
    made: list[int] = []

    def make(_: Case, seed: int) -> Verdict:
        made.append(seed)
        return Verdict(("false",) if seed == 1 else (), told=True, decided=seed, confirmed=0)

    case, file = EQUAL_CASES[0], tmp_path / "verdicts"
    Results(file).make([(case, 0), (case, 1)], 1, make)
    again = Results(file)
    again.make([(case, seed) for seed in range(3)], 1, make)
    assert made == [0, 1, 2]
    assert [verdict.decided for verdict in Results(file).verdicts(case)] == [0, 1, 2]
    assert "33.3 %" in line(case, again.verdicts(case))


@pytest.mark.long
@pytest.mark.parametrize("case", one_in(3, EQUAL_CASES), ids=lambda case: case.noise)
def test_surveys_of_equal_cells_err_no_more_often_than_stated(case: Case) -> None:
    results = Results()
    results.make([(case, seed) for seed in range(200)], 2, judge_survey)
    assert sum(bool(verdict.false) for verdict in results.verdicts(case)) <= 20, line(case, results.verdicts(case))


@pytest.mark.long
@pytest.mark.parametrize("case", one_in(3, PLANTED_CASES), ids=lambda case: case.truth)
def test_surveys_of_a_planted_truth_hardly_err(case: Case) -> None:
    results = Results()
    results.make([(case, seed) for seed in range(100)], 2, judge_survey)
    verdicts = results.verdicts(case)
    assert sum(bool(verdict.false) for verdict in verdicts) <= 5, line(case, verdicts)
    assert sum(verdict.told for verdict in verdicts) >= 60, line(case, verdicts)

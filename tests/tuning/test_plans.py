"""The plan of a setting, and the objective computed from its samples."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from strakes.base.units import KIB, MIB
from strakes.model.phases import StagePhase, TransferPhase
from strakes.model.plan_read import plan_from_json
from strakes.model.sample import Sample
from strakes.runs.records import Visit
from strakes.tuning.advise_app import App, AppPhase
from strakes.tuning.trial import preparation_of, space_event
from strakes.tuning.tune_offers import INTERFACES, Abilities, offers
from strakes.tuning.tune_plans import TrialSize, goodness, has_shares, layout_of, plan_of, seconds_per_byte
from strakes.tuning.tune_space import Factor, SearchSpace

SCALE = TrialSize(8, 4 * MIB, 1.0)


def test_a_stored_space_takes_no_more_time_than_its_points(monkeypatch: pytest.MonkeyPatch) -> None:
    def stored(*points: tuple[int, ...]) -> Any:
        factors = tuple(Factor(str(number), tuple(range(60)), 0) for number in range(7))
        event = replace(space_event(SearchSpace(factors, only=((0,) * 7,)), SCALE, ()), points=points)
        return SimpleNamespace(events_of=lambda _: [event], visits=[])

    found = preparation_of(stored((0,) * 7, (1,) * 7))
    assert found is not None and found[0].points == ((0,) * 7, (1,) * 7) and found[1] == SCALE
    for wrong in ([(0,) * 7, (60,) * 7], [(0,) * 7, (0,)], [(1,) * 7], []):
        with pytest.raises(ValueError, match="not points"):
            preparation_of(stored(*wrong))
    monkeypatch.setattr("strakes.tuning.trial._MOST_LEVELS", 419)
    with pytest.raises(ValueError, match="419 levels"):
        preparation_of(stored((0,) * 7))


WRITE = AppPhase("dump", "write", "per-process", 64 * MIB, (MIB,), share=0.9)
READ = AppPhase("restart", "read", "per-process", 64 * MIB, (MIB,), share=0.1)
MESH = AppPhase("mesh", "read", "same", 64 * MIB)


def app(*phases: AppPhase) -> App:
    return App("t", "posix", 64, 8, phases, grouping=8)


@pytest.mark.parametrize("phases", [(WRITE,), (WRITE, READ), (READ,), (MESH,), (WRITE, MESH)])
def test_every_offered_setting_gives_a_valid_plan(phases: tuple[AppPhase, ...]) -> None:
    described = app(*phases)
    space = offers(described, Abilities(8, MIB, tuple(INTERFACES)))
    for point in space.points:
        plan = plan_of(described, space.settings(point), SCALE)
        assert plan_from_json(plan.to_json()) == plan


def test_files_that_are_only_read_are_written_first() -> None:
    described = app(MESH)
    make, load = plan_of(described, {"readers": 2, "transfer_bytes": 256 * KIB}, SCALE).phases
    assert isinstance(make, TransferPhase) and make.name == "make"
    assert isinstance(load, StagePhase) and load.readers_per_node == 2 and load.broadcast


def test_a_layout_is_requested_only_if_one_is_set() -> None:
    assert layout_of({"writers": 8}) is None
    layout = layout_of({"stripe_count": 2, "stripe_bytes": 65536})
    assert layout is not None and (layout.stripe_count, layout.stripe_size_bytes, layout.pool) == (2, 65536, "")


def test_phases_are_weighted_by_their_current_share_of_the_io_time() -> None:
    described = app(WRITE, READ)
    assert has_shares(described)

    def samples(write_s: float, read_s: float) -> Visit:
        dump, restart = Sample("dump", bytes=100, elapsed_s=write_s), Sample("restart", bytes=100, elapsed_s=read_s)
        return Visit(samples=(dump, restart))

    usual = seconds_per_byte(described, samples(9.0, 3.0))
    assert goodness(described, samples(9.0, 3.0), usual) == pytest.approx(1.0)
    # Writing takes 90 % of the I/O time: twice the write rate saves 45 % of it, twice the read rate 5 %.
    assert goodness(described, samples(4.5, 3.0), usual) == pytest.approx(1 / 0.55)
    assert goodness(described, samples(9.0, 1.5), usual) == pytest.approx(1 / 0.95)


def test_a_phase_that_moved_nothing_gives_no_result() -> None:
    assert goodness(app(WRITE), Visit(samples=(Sample("dump", elapsed_s=1.0),)), {}) is None

"""Random schedules of faults and repairs on the model: a seed replays, nothing acknowledged is lost, and a planted weakness is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conftest import StrakesRunner
from failover.clusters import need, planned
from strakes.failover.rehearsal.schedule import (
    ScheduleModel,
    acknowledged_and_lost,
    rehearse_schedules,
    scheduled_parts,
)
from strakes.failover.rehearsal.story import Story
from strakes.failover.setup import read_plan

CIB = "pacemaker/cib.xml"


def test_a_seed_draws_the_same_schedule_again_and_it_ends_the_same(tmp_path: Path) -> None:
    need("crm_simulate")
    setup = read_plan(planned("nfs", tmp_path / "plan"))
    outcomes = []
    for attempt in ("first", "second"):
        (tmp_path / attempt).mkdir()
        story = Story(setup, tmp_path / attempt)
        model = ScheduleModel(story, scheduled_parts(story))
        drawn = [model.draw(seed, 4) for seed in range(6)]
        outcomes.append([(events, [one.places for one in model.play(events)]) for events in drawn])
    assert outcomes[0] == outcomes[1] and len({events for events, _ in outcomes[0]}) == 6


def test_no_schedule_on_a_good_plan_splits_the_brain_or_loses_a_record(strakes: StrakesRunner, tmp_path: Path) -> None:
    need("crm_simulate")
    plan = planned("tianhe2", tmp_path / "plan")
    done = strakes("failover", "rehearse", plan, "--schedules", "12", "--seed", "500")
    assert done.returncode == 0 and "is no longer served: none" in done.stdout and "seeds 500 to 511" in done.stdout


def test_schedules_find_a_split_brain_where_fencing_only_pretends(tmp_path: Path) -> None:
    need("crm_simulate")
    plan = planned("tianhe2", tmp_path / "plan")
    cib = plan / CIB
    cib.write_text(cib.read_text().replace('type="fence_ipmilan"', 'type="fence_ack_manual"'))
    summary = rehearse_schedules(read_plan(plan), 12)
    assert summary.bad and "still writes" in str(summary.bad)


def test_a_record_is_missed_where_an_old_copy_would_be_served(tmp_path: Path) -> None:
    """The count of copies is not the story's own: it finds one that the story takes for good."""
    need("crm_simulate")
    setup = read_plan(planned("tianhe2", tmp_path / "plan"))
    (tmp_path / "work").mkdir()
    story = Story(setup, tmp_path / "work")
    model = ScheduleModel(story, scheduled_parts(story))
    cut = next(event for event in model.possible(model.story.first) if event.part.text == "network cross fails")
    (prediction,) = model.play([cut])
    moved = replace(prediction.world.state, places={"mdt0": "mds-b"})
    wrong = replace(prediction, world=replace(prediction.world, state=moved))
    assert not acknowledged_and_lost(model.story.first, [prediction])
    assert "lacks acknowledged writes" in str(acknowledged_and_lost(model.story.first, [prediction, wrong]))

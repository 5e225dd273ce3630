"""Runs for a forecast: all of one file system, none twice, and one client for each node with ranks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from strakes.base.errors import BadInputError
from strakes.predict.asked import Asked, Stated
from strakes.predict.forecasts import forecast_figures
from strakes.predict.gather import figures_of
from strakes.predict.inputs import described, inputs_of
from strakes.runs.run import Run


def test_clients_are_the_nodes_that_ranks_ran_on(store_run: Callable[..., Run]) -> None:
    figures = figures_of([store_run("20260101-000000-several", nodes=4)])
    assert figures and all(level.scale.clients == level.scale.ranks for each in figures for level in each.levels)
    assert not any(figure.local for figure in figures)
    (forecast, *_) = forecast_figures(figures, Asked({"clients": 16}), Stated())
    assert forecast.scale.clients == 16


def test_one_node_is_one_client_and_a_file_system_of_many_nodes_is_not_local(store_run: Callable[..., Run]) -> None:
    alone = figures_of([store_run("20260101-000000-alone")])
    assert all(figure.local and level.scale.clients == 1 for figure in alone for level in figure.levels)
    remote = figures_of([store_run("20260101-000001-remote", remote=True)])
    assert not any(figure.local for figure in remote)


def test_runs_of_different_file_systems_are_refused(store_run: Callable[..., Run]) -> None:
    here = store_run("20260101-000000-here", file_system="lustre", device="mgs@tcp:/work")
    there = store_run("20260101-000001-there", file_system="lustre", device="mgs@tcp:/home")
    again = store_run("20260101-000002-again", file_system="lustre", device="mgs@tcp:/work", mount_point="/other")
    assert inputs_of([here, again])[0] == (here, again)
    with pytest.raises(BadInputError, match="different file systems") as refused:
        inputs_of([here, again, there])
    assert "mgs@tcp:/home" in str(refused.value.where)


def test_a_run_counts_once_and_an_incomplete_run_gives_a_caution(store_run: Callable[..., Run]) -> None:
    whole, part = store_run("20260101-000000-whole"), store_run("20260101-000001-part", status="interrupted")
    inputs, (caution,) = inputs_of([whole, part, Run(whole.path)])
    assert inputs == (whole, part)
    assert caution == "The run 20260101-000001-part is not complete; its measurements so far are used."


def test_the_head_of_a_forecast_names_the_run_and_the_load_of_its_node(store_run: Callable[..., Run]) -> None:
    run = store_run("20260101-000000-busy", file_system="xfs", block_device={"backing_file": "/image"})
    (run.path / "environment.json").write_text('{"load_average": [17.0], "cpus": 2}')
    head = described(run)
    assert head.startswith("From the run 20260101-000000-busy on ") and "load average 17.0 before it" in head
    assert "Rates are as measured, and higher on a quiet machine." in head
    assert "The device is a loop device on the file /image" in head

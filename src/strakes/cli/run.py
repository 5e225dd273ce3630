"""``strakes run PLAN.toml DIR``: any workload, described in a file."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import click

from strakes.cli.options import MAX_SEED, measuring_options, precision_option


@click.command("run")
@click.argument("plan", metavar="PLAN.toml", type=click.Path(path_type=Path))
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@measuring_options("1m")
@precision_option
def command(plan: Path, directory: Path, seed: int | None, **options: Any) -> int:
    """Run the plan on DIR, again and again until its figures are precise or the budget is spent.

    A plan is a TOML file: ranks, and one [[phase]] table for each step. examples/ has one of every kind.
    """
    from strakes.cli.measure import measure
    from strakes.plan.toml import plan_from_toml
    from strakes.studies.plan_run import PlanRun

    drawn = secrets.randbelow(MAX_SEED) if seed is None else seed
    title, parsed = plan_from_toml(plan, drawn)
    return measure(kind="run", name=title, studies=(PlanRun(parsed),), directory=directory, full=True, seed=parsed.seed, **options)

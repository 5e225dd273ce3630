"""What ``strakes failover`` prints."""

from __future__ import annotations

from itertools import groupby

import click

from strakes.failover.check import Check
from strakes.failover.rules.base import all_rules

_STYLE = {"error": "red", "warning": "yellow"}
_SAID = {"accepts": "accepts it", "refuses": "REFUSES it", "absent": "is not installed", "unable": "could not be asked"}


def print_check(result: Check) -> None:
    for _, group in groupby(result.findings, key=lambda finding: finding.rule):
        places = list(group)
        first = places[0]
        click.echo(f"{click.style(first.severity, fg=_STYLE[first.severity], bold=True)}: {first.rule}")
        for one in places:
            click.echo(f"  where: {one.where}")
        click.echo(f"  why:   {first.reason}\n  next:  {first.remedy}\n  seen:  {first.source}\n")
    for verdict in result.verdicts:
        text = "".join(f"\n    {line}" for line in verdict.text.splitlines())
        click.echo(f"{verdict.program} {_SAID[verdict.state]}{text}")
    looked = result.rules - len(result.passed_over)
    errors = sum(one.severity == "error" for one in result.findings)
    click.echo(f"{result.where}: {looked} rules, {errors} errors, {len(result.findings) - errors} warnings")
    if result.passed_over:
        click.echo(f"not looked at, for their part is not there: {', '.join(result.passed_over)}")


def print_rules() -> None:
    for rule in all_rules():
        click.echo(f"{rule.name} ({rule.severity})\n  {rule.reason}\n  {rule.remedy}\n  {rule.source}\n")

"""``strakes predict``: forecasts for larger systems from runs on small ones, and their scores."""

from __future__ import annotations

from pathlib import Path

import click

from strakes.base.language import english
from strakes.cli.numbers import WholeNumber
from strakes.cli.options import DIRECTORY, PATH, SECONDS, Output, json_option, write_json
from strakes.cli.say import say, say_lines


class _ForecastUnlessNamed(click.Group):
    """A group that runs ``forecast`` if its first argument is not a subcommand."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return super().resolve_command(ctx, ["forecast", *args])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = ["forecast", *args]
        return super().parse_args(ctx, args)


@click.group("predict", cls=_ForecastUnlessNamed, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Forecast how large systems will do, from runs on small ones; score sealed forecasts.

    strakes predict RUN... --at clients=2000,mdts=5 is short for strakes predict forecast RUN... --at ...

    Measure a small system first: strakes study client-scaling DIR, and with several metadata targets strakes study
    namespace-scaling DIR. The forecast gives each figure a median and an interval that holds the truth in 8 of 10
    cases, names what saturates first, and says UNKNOWN if the runs do not suffice.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@command.command("forecast")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--at",
    "at",
    required=True,
    multiple=True,
    metavar="SCALE",
    help="Forecast for this size, such as clients=2000,mdts=5: clients (nodes that use the file system), ranks (their "
    "processes together), mdts (metadata targets), osts (data targets), files (how many there are already).",
)
@click.option(
    "--system", type=PATH, help="Use limits from data sheets, written in this TOML file (docs/guide/predict.md)."
)
@click.option(
    "--seal", is_flag=True, help="Store the forecast under a hash, to score it when the large system is measured."
)
@json_option
@english()
def forecast(runs: tuple[str, ...], at: tuple[str, ...], system: Path | None, seal: bool, json: Output | None) -> None:
    """Forecast every figure of the runs for a larger system."""
    from strakes.predict.asked import Stated, parse_asked, read_stated
    from strakes.predict.forecast_text import render
    from strakes.predict.forecasts import forecast_document, forecast_figures
    from strakes.predict.gather import figures_of
    from strakes.predict.inputs import inputs_of
    from strakes.predict.sealed import digest
    from strakes.predict.sealed import seal as keep
    from strakes.runs.store import Store

    asked = parse_asked(",".join(at))
    stated = read_stated(system) if system is not None else Stated()
    store = Store()
    inputs, cautions = inputs_of([store.open(name) for name in runs])
    forecasts = forecast_figures(figures_of(inputs), asked, stated)
    document = forecast_document(inputs, asked, stated, forecasts)
    for caution in cautions:
        say(caution, err=True)
    if write_json(json, document):
        say_lines(render(forecasts) + "\n")
    if seal:
        sealed = keep(document, store.root)
        say(f"Sealed as {sealed}. Score it later: strakes predict score {sealed} RUN", err=True)
        say(f"To prove the date to others, send them this hash today: SHA-256 {digest(document)}", err=True)


@command.command("score")
@click.argument("name", metavar="FORECAST")
@click.argument("run", metavar="RUN")
@json_option
@english()
def score_command(name: str, run: str, json: Output | None) -> None:
    """Score a sealed forecast by RUN.

    RUN is a measurement of the large system, begun after the forecast was sealed. FORECAST is the id that strakes
    predict --seal printed, the beginning of it, or its file.
    """
    from dataclasses import asdict

    from strakes.predict.forecast_text import say_score
    from strakes.predict.gather import figures_of
    from strakes.predict.sealed import open_sealed, require_later, score
    from strakes.runs.store import Store

    store = Store()
    document = open_sealed(name, store.root)
    measured = store.open(run)
    require_later(document, measured)
    scores = score(document, figures_of([measured]))
    rows = [{**asdict(each), "factor": each.factor, "covered": each.covered} for each in scores]
    if write_json(json, {"seal": document["seal"], "created": document["created"], "run": measured.id, "scores": rows}):
        say(f"Sealed on {document['created'][:10]}, SHA-256 {document['seal']}")
        for each in scores:
            say(say_score(each))


@command.command("namespace")
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@click.option("--mdts", type=WholeNumber(1, 1024), required=True, help="Share DIR among N metadata targets.")
@click.option(
    "--changed-within",
    type=SECONDS,
    default="7d",
    show_default=True,
    help="Weigh directories by what changed within this time.",
)
@click.option("--limit", type=SECONDS, default="5m", show_default=True, help="Stop counting after this time.")
@json_option
def namespace(directory: Path, mdts: int, changed_within: float, limit: float, json: Output | None) -> None:
    """Share DIR among metadata targets. Counts entries and recent changes below DIR; changes nothing."""
    from dataclasses import asdict

    from strakes.predict.namespace import commands, place, render_namespace, walk
    from strakes.targets.registry import detect

    # The printed commands must work from any directory.
    directory = directory.absolute()
    file_system = detect(directory).facts().file_system
    tally, counted = walk(directory, since_s=changed_within, limit_s=limit)
    plan = place(tally, mdts)
    document = {
        "directory": str(plan.root),
        "entries": plan.entries,
        "changed": plan.changed,
        "whole": counted.whole,
        "read_directories": counted.read,
        "told_directories": counted.told,
        "unread": [str(path) for path in counted.unread],
        "mounts": [str(path) for path in counted.mounts],
        "largest": {"directory": str(plan.largest[0]), "load": plan.largest[1]},
        "targets": [
            {**asdict(share), "directories": [str(path) for path in share.directories]} for share in plan.shares
        ],
    }
    if write_json(json, document):
        for line in render_namespace(plan, counted, commands(plan, file_system)):
            say(line)

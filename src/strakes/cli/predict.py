"""``strakes predict``: forecasts for larger systems from runs on small ones, and their scores."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from strakes.cli.options import (
    PATH,
    DefaultGroup,
    Directory,
    Json,
    WholeNumber,
    argument,
    option,
    write_json,
)
from strakes.cli.say import say, say_lines
from strakes.predict.asked import Stated, parse_asked, read_stated
from strakes.predict.gather import figures_of
from strakes.predict.inputs import inputs_of
from strakes.predict.namespace import commands, place, render_namespace, walk
from strakes.predict.sealed import digest, open_sealed, require_later, score
from strakes.predict.sealed import seal as keep
from strakes.runs.store import Store

_RECENT_S = 7 * 86400.0  # changes of the last week count for the load of a directory
_WALK_S = 300.0  # counting ends after this time; the rest of a large tree is estimated


@click.group("predict", cls=DefaultGroup)
def command() -> None:
    """Forecast how large systems will do, from runs on small ones; score sealed forecasts.

    strakes predict RUN... --at clients=2000,mdts=5 is short for strakes predict forecast RUN... --at ...

    Measure a small system first: strakes study client-scaling DIR, and with several metadata targets strakes study
    namespace-scaling DIR. The forecast gives each figure a median and an interval that holds the truth in 8 of 10
    cases, names what saturates first, and says UNKNOWN if the runs do not suffice.
    """


@command.part("forecast")
def forecast(
    *,
    runs: tuple[str, ...] = argument("RUN...", nargs=-1, required=True),
    at: tuple[str, ...] = option(
        "Forecast for this size, such as clients=2000,mdts=5: clients (nodes that use the file system), ranks (their "
        "processes together), mdts (metadata targets), osts (data targets), files (how many there are already).",
        default=(),
        required=True,
        metavar="SCALE",
    ),
    system: Path | None = option(
        "Use limits from data sheets, written in this TOML file (docs/guide/predict.md).", type=PATH
    ),
    seal: bool = option(
        "Store the forecast under a hash, to score it when the large system is measured.", default=False
    ),
    json: Json,
) -> None:
    """Forecast every figure of the runs for a larger system."""
    from strakes.predict.forecast_text import render
    from strakes.predict.forecasts import forecast_document, forecast_figures

    scale = parse_asked(",".join(at))
    stated = read_stated(system) if system is not None else Stated()
    store = Store()
    inputs, cautions = inputs_of([store.open(name) for name in runs])
    forecasts = forecast_figures(figures_of(inputs), scale, stated)
    result = forecast_document(inputs, scale, stated, forecasts)
    for caution in cautions:
        say(caution, err=True)
    if write_json(json, result):
        say_lines(render(forecasts) + "\n")
    if seal:
        sealed = keep(result, store.root)
        say(f"Sealed as {sealed}. Score it later: strakes predict score {sealed} RUN", err=True)
        say(f"To prove the date to others, send them this hash today: SHA-256 {digest(result)}", err=True)


@command.part("score")
def score_command(
    *,
    name: str = argument("FORECAST"),
    run: str = argument("RUN"),
    json: Json,
) -> None:
    """Score a sealed forecast by RUN.

    RUN is a measurement of the large system, begun after the forecast was sealed. FORECAST is the id that strakes
    predict --seal printed, the beginning of the id, or the file of the forecast.
    """
    from strakes.predict.forecast_text import say_score

    store = Store()
    sealed = open_sealed(name, store.root)
    measured = store.open(run)
    require_later(sealed, measured)
    scores = score(sealed, figures_of([measured]))
    rows = [{**asdict(each), "factor": each.factor, "covered": each.covered} for each in scores]
    result = {"seal": sealed["seal"], "created": sealed["created"], "run": measured.id, "scores": rows}
    if write_json(json, result):
        say(f"Sealed on {sealed['created'][:10]}, SHA-256 {sealed['seal']}")
        for each in scores:
            say(say_score(each))


@command.part("namespace")
def namespace(
    *,
    directory: Directory,
    mdts: int = option("Share DIR among N metadata targets.", type=WholeNumber(1, 1024), required=True),
    json: Json,
) -> None:
    """Share DIR among metadata targets. Counts entries and recent changes below DIR; changes nothing."""
    from strakes.targets.registry import detect

    # The printed commands must work from any directory.
    directory = directory.absolute()
    file_system = detect(directory).facts().file_system
    tally, counted = walk(directory, since_s=_RECENT_S, limit_s=_WALK_S)
    plan = place(tally, mdts)
    targets = [{**asdict(share), "directories": list(map(str, share.directories))} for share in plan.shares]
    result = {
        "directory": str(plan.root),
        "entries": plan.entries,
        "changed": plan.changed,
        "whole": counted.whole,
        "read_directories": counted.read,
        "told_directories": counted.told,
        "unread": list(map(str, counted.unread)),
        "mounts": list(map(str, counted.mounts)),
        "largest": {"directory": str(plan.largest[0]), "load": plan.largest[1]},
        "targets": targets,
    }
    if write_json(json, result):
        for line in render_namespace(plan, counted, commands(plan, file_system)):
            say(line)

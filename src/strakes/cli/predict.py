"""``strakes predict``: forecasts for larger systems from runs on small ones, and their scores."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from strakes.cli.options import PATH, DefaultGroup, Json, argument, option, write_json
from strakes.cli.say import say, say_lines
from strakes.predict.asked import Stated, parse_asked, read_stated
from strakes.predict.gather import figures_of
from strakes.predict.inputs import inputs_of
from strakes.predict.sealed import digest, open_sealed, require_later, score
from strakes.predict.sealed import seal as keep
from strakes.runs.store import Store


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
def score_command(*, name: str = argument("FORECAST"), run: str = argument("RUN"), json: Json) -> None:
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

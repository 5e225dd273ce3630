"""``strakes predict``: forecasts for larger systems from runs on small ones."""

from __future__ import annotations

from pathlib import Path

from strakes.cli.options import PATH, Json, argument, command_named, option, write_json
from strakes.cli.say import say, say_lines


@command_named("predict")
def command(
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
    json: Json,
) -> int:
    """Forecast the performance of a large system from runs on a small one.

    Measure a small system first: strakes study client-scaling DIR, and with several metadata targets strakes study
    namespace-scaling DIR. The forecast gives each figure a median and an interval that holds the true value in 8 of 10
    cases, names what saturates first, and says UNKNOWN if the runs do not suffice.
    """
    from strakes.predict.asked import Stated, parse_asked, read_stated
    from strakes.predict.forecast_text import render
    from strakes.predict.forecasts import forecast_document, forecast_figures
    from strakes.predict.gather import figures_of
    from strakes.predict.inputs import described, inputs_of
    from strakes.runs.store import Store

    scale = parse_asked(",".join(at))
    stated = read_stated(system) if system is not None else Stated()
    with Store.told_as_damage(*(stored := [Store().open(name) for name in runs])):
        inputs, cautions = inputs_of(stored)
        forecasts = forecast_figures(figures_of(inputs), scale, stated)
        for caution in cautions:
            say(caution, err=True)
        if write_json(json, forecast_document(inputs, scale, stated, forecasts)):
            say_lines("\n".join([*map(described, inputs), "", render(forecasts), ""]))
    return 0

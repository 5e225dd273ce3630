"""``strakes predict``: what a larger system will do, from runs on a small one; and how good that was."""

from __future__ import annotations

from pathlib import Path

import click

from strakes.cli.numbers import NumberRange, WholeNumber
from strakes.cli.options import DIRECTORY, OUTPUT, PATH, SECONDS, Output, json_option, write_json
from strakes.cli.say import say, say_lines
from strakes.language.page import translate_lines


class _ForecastUnlessNamed(click.Group):
    """A group whose first argument may be a run: then it is a forecast."""

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
    cases, says what saturates first and what would help, and says UNKNOWN where the runs tell nothing.
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
    "processes together), mdts (metadata targets), osts (data targets), files (how many there are already), link "
    "(speed of a client's link, such as 25GB/s or 100Gb/s).",
)
@click.option(
    "--system", type=PATH, help="Use limits from data sheets, written in this TOML file (docs/guide/predict.md)."
)
@click.option(
    "--seal", is_flag=True, help="Store the forecast under a hash, to score it when the large system is measured."
)
@json_option
@click.option("--html", type=OUTPUT, help="Write the forecast as an HTML page to FILE (- is standard output).")
def forecast(
    runs: tuple[str, ...],
    at: tuple[str, ...],
    system: Path | None,
    seal: bool,
    json: Output | None,
    html: Output | None,
) -> None:
    """Forecast every figure of the runs for a larger system."""
    from strakes.predict.asked import Stated, parse_asked, read_stated
    from strakes.predict.forecast_document import forecast_document
    from strakes.predict.forecast_text import render
    from strakes.predict.forecasts import forecast_figures
    from strakes.predict.gather import figures_of
    from strakes.predict.inputs import inputs_of
    from strakes.predict.sealed import digest, record_so_far
    from strakes.predict.sealed import seal as keep
    from strakes.store import Store

    asked = parse_asked(",".join(at))
    stated = read_stated(system) if system is not None else Stated()
    store = Store()
    inputs = inputs_of([store.open(name) for name in runs])
    # The text has no curves, and they take a fifth of the time.
    curves = seal or json is not None or html is not None
    forecasts = forecast_figures(figures_of(inputs.runs), asked, stated, curves=curves)
    document = forecast_document(inputs.runs, asked, stated, forecasts)
    record = record_so_far(store.root)
    if html is not None:
        from strakes.predict.forecast_page import render_forecast_page

        html.write(render_forecast_page(asked, forecasts, record))
    for caution in inputs.cautions:
        say(caution, err=True)
    for key in stated.without_figure({each.figure.unit for each in forecasts}):
        say(f"{key} changes nothing: these runs have no figure of that kind.", err=True)
    if write_json(json, document, html):
        say_lines(translate_lines(render(forecasts, record)) + "\n")
    if seal:
        # What is not known was told above; only then it is said that nothing is sealed.
        sealed = keep(document, store.root)
        say(f"Sealed as {sealed}. Score it later: strakes predict score {sealed} RUN", err=True)
        say(f"To prove the date to others, send them this hash today: SHA-256 {digest(document)}", err=True)


@command.command("score")
@click.argument("name", metavar="FORECAST")
@click.argument("run", metavar="RUN")
@json_option
def score_command(name: str, run: str, json: Output | None) -> None:
    """Score a sealed forecast by RUN.

    RUN is a measurement of the large system, begun after the forecast was sealed. FORECAST is the id that strakes
    predict --seal printed, the beginning of it, or its file.
    """
    from strakes.predict.forecast_text import say_record, say_score
    from strakes.predict.gather import figures_of
    from strakes.predict.sealed import keep_scores, open_sealed, record_so_far, require_later, score
    from strakes.store import Store

    store = Store()
    document = open_sealed(name, store.root)
    measured = store.open(run)
    cautions = require_later(document, measured, store)
    scores = score(document, figures_of([measured]))
    keep_scores(document, measured.id, scores, store.root)
    rows = [
        {
            "figure": each.figure,
            "unit": each.unit,
            "forecast": each.forecast,
            "measurement": [each.low, each.high],
            "measured": each.measured,
            "runs": each.runs,
            "factor": each.factor,
            "covered": each.covered,
        }
        for each in scores
    ]
    told = {"seal": document["seal"], "created": document["created"], "run": measured.id, "cautions": cautions}
    if write_json(json, {**told, "scores": rows}):
        say(f"Sealed on {document['created'][:10]}, SHA-256 {document['seal']}")
        for text in (*cautions, *map(say_score, scores), *say_record(record_so_far(store.root)).split("\n")):
            say(text)


@command.command("namespace")
@click.argument("directory", metavar="DIR", type=DIRECTORY)
@click.option("--mdts", type=WholeNumber(1, 1024), help="Share DIR among N metadata targets.")
@click.option("--need", type=NumberRange(0, min_open=True), help="Operations a second that DIR has to serve.")
@click.option(
    "--each", type=NumberRange(0, min_open=True), help="Operations a second that one metadata target can serve."
)
@click.option(
    "--changed-within",
    type=SECONDS,
    default="7d",
    show_default=True,
    help="Weigh directories by what changed within this time.",
)
@click.option("--limit", type=SECONDS, default="5m", show_default=True, help="Stop counting after this time.")
@json_option
def namespace(
    directory: Path,
    mdts: int | None,
    need: float | None,
    each: float | None,
    changed_within: float,
    limit: float,
    json: Output | None,
) -> None:
    """Share DIR among metadata targets.

    Counts entries and recent changes below DIR; changes nothing. Give --mdts, or both --need and --each (strakes study
    namespace-scaling DIR measures what one target can serve).
    """
    from strakes.errors import BadInputError
    from strakes.predict.namespace import commands, place, targets_needed, walk
    from strakes.predict.namespace_text import render_namespace
    from strakes.targets.registry import detect

    if (need is None) != (each is None):
        raise BadInputError("--need and --each belong together", remedy="Give both, or --mdts N instead.")
    if (mdts is None) == (need is None):
        what = "neither --mdts nor --need is given" if mdts is None else "--mdts and --need contradict each other"
        raise BadInputError(what, remedy="Give --mdts N, or --need and --each to learn how many targets are needed.")
    # Commands are to work from everywhere.
    directory = directory.absolute()
    file_system = detect(directory).facts().file_system
    counted = walk(directory, since_s=changed_within, limit_s=limit)
    if mdts is not None:
        plan = place(counted.tally, mdts)
    else:
        assert need is not None and each is not None
        fewest = targets_needed(counted.tally, need, each)
        if fewest is None:
            path, load = place(counted.tally, 64).largest
            raise BadInputError(
                "no number of metadata targets is enough: one directory has more load than a target carries",
                where=str(path),
                why=f"it has {load * need:,.0f} of {need:,.0f} operations a second",
                remedy="Spread that directory itself over several targets (lfs mkdir -c, ceph.dir.pin.distributed).",
            )
        plan = fewest
    to_do = commands(plan, file_system)
    document = {
        "directory": str(plan.root),
        "entries": plan.entries,
        "changed": plan.changed,
        "whole": counted.whole,
        "read_directories": counted.read,
        "told_directories": counted.told,
        "unread": [str(path) for path in counted.unread],
        "mounts": [str(path) for path in counted.mounts],
        "took_s": counted.took_s,
        "largest": {"directory": str(plan.largest[0]), "load": plan.largest[1]},
        "targets": [
            {"target": share.target, "load": share.load, "directories": [str(path) for path in share.directories]}
            for share in plan.shares
        ],
    }
    if write_json(json, document):
        for line in render_namespace(plan, counted, to_do, since_s=changed_within):
            say(line)

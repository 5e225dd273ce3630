"""``strakes advise``: settings for one application from measurements, or its description from a Darshan log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.foreign_text import for_terminal
from strakes.base.language import english
from strakes.base.units import counted
from strakes.cli.examples import example as text_of_example
from strakes.cli.options import PATH, Output, json_option, write_json
from strakes.cli.say import say, say_lines, say_sentence

if TYPE_CHECKING:
    from strakes.runs.run import Run
    from strakes.tuning.advise_app import App
    from strakes.tuning.advise_choose import Chosen
    from strakes.tuning.advise_paste import Paste


@click.command()
@click.option(
    "--app",
    "app_path",
    type=PATH,
    metavar="APP.toml",
    help="Description of the application.",
)
@click.option(
    "--darshan",
    type=PATH,
    metavar="LOG|DIR",
    help="Print a description of the application made from a Darshan log; for a directory, rank its logs by their "
    "time in I/O.",
)
@click.option("--example", is_flag=True, help="Print a description of an application, to be edited.")
@click.option(
    "--from",
    "run",
    metavar="RUN",
    help="Base the advice on this run, or on a file written by strakes export.  [default: $STRAKES_PORTRAIT, else the "
    "newest "
    "finished survey or study that answers anything about the application, else the one that the site has published]",
)
@json_option
@english()
def command(app_path: Path | None, darshan: Path | None, example: bool, run: str | None, json: Output | None) -> int:
    """Recommend settings for one application, ready to paste, each with its reason, its evidence and its gain.

    Nothing is measured or changed. Where the measurements give no answer, the output says what to measure.
    """
    if example:
        click.echo(text_of_example("apps/restart-dump.toml"), nl=False)
        return 0
    if (app_path is None) == (darshan is None):
        raise click.UsageError("give --app APP.toml or --darshan LOG; --example prints an APP.toml to edit")
    if darshan is not None:
        if run is not None:
            raise click.UsageError("--darshan only prints the description; pass that to --app, together with --from")
        return _rank(darshan, json) if darshan.is_dir() else _describe(darshan, json)
    assert app_path is not None
    from strakes.runs.run import told_as_damage
    from strakes.survey.analysis_build import results_of
    from strakes.tuning.advise_app import read_app
    from strakes.tuning.advise_choose import choose
    from strakes.tuning.advise_paste import pastes
    from strakes.tuning.advise_source import run_to_advise_from

    app = read_app(app_path)
    stored = run_to_advise_from(run, lambda candidate: bool(choose(app, results_of(candidate)).choices))
    with told_as_damage(stored):
        results = results_of(stored)
        chosen = choose(app, results, float(stored.manifest["options"].get("budget_s", 120.0)))
        file_system = str(results.facts.get("file_system", ""))
        snippets = pastes(app, chosen, file_system)
    if write_json(json, _document(app, stored, file_system, chosen, snippets)):
        _print(app, stored, file_system, chosen, snippets)
    return 0


def _rank(directory: Path, json: Output | None) -> int:
    """Print the logs below a directory, most time in I/O first. Return 1 if no log could be read, else 0."""
    from strakes.base.units import format_bytes
    from strakes.tuning.advise_darshan import read_logs

    logs, errors = read_logs(directory)
    keys = ("program", "ranks", "run_s", "io_s", "moved_bytes", "partial")
    rows = [{"log": str(path), **{key: getattr(facts, key) for key in keys}} for path, facts in logs]
    if write_json(json, {"schema": 1, "logs": rows, "unreadable": [str(error) for error in errors]}):
        say(
            "In I/O: how long the slowest rank read, wrote, opened and closed; a faster file system can save at most "
            "that."
        )
        say(f"{'in I/O':>9}  {'of run':>9}  {'ranks':>7}  {'moved':>10}  program, log")
        for path, facts in logs:
            remark = f" (partial: {', '.join(facts.partial)})" if facts.partial else ""
            if not any(facts.records.values()):
                remark = f" (not counted: {', '.join(facts.modules) or 'nothing recorded'})"
            say(
                f"{facts.io_s:7.1f} s  {facts.run_s:7.1f} s  {facts.ranks:>7,}  {format_bytes(facts.moved_bytes):>10}  "
                f"{facts.program or '(unknown)'}, {path.relative_to(directory)}{remark}"
            )
        say(f"Describe one for advice: strakes advise --darshan {directory}/LOG > app.toml")
    for error in errors:
        say(f"left out: {error}", err=True)
    return 1 if errors and not logs else 0


def _describe(log: Path, json: Output | None) -> int:
    from dataclasses import asdict

    from strakes.tuning.advise_app import to_toml
    from strakes.tuning.advise_darshan import app_of, read_log

    app, remarks = app_of(read_log(log))
    if write_json(json, {"schema": 1, "app": asdict(app), "remarks": remarks}):
        click.echo(to_toml(app, (f"Filled from the Darshan log {log.name}.", *remarks)), nl=False)
    return 0


def _print(app: App, run: Run, file_system: str, chosen: Chosen, snippets: tuple[Paste, ...]) -> None:
    say_sentence(
        f"{app.title}: {counted(app.ranks, 'rank')} on {counted(app.nodes, 'node')}, {app.interface}; from run "
        f"{run.id} on {file_system}"
    )
    if not chosen.choices:
        say_sentence(
            "This run answers nothing about the application. The measurements that would are listed below. Choose "
            "another run with --from RUN."
        )
    for phase in app.phases:
        say()
        head = f"{phase.name} ({phase.operation}, {phase.files}):"
        click.echo(for_terminal(head))
        for choice in chosen.choices:
            if choice.phase != phase.name:
                continue
            say(f"  {choice.what}: {choice.text}")
            say_sentence(f"    because: {choice.reason}", indent=6)
            if choice.gain is not None:
                gain = choice.gain
                say_sentence(
                    f"    gains: {gain.low:.2f} - {gain.high:.2f} times ({gain.confidence:.0%} interval, {gain.of})",
                    indent=6,
                )
            say_sentence(f"    evidence: {', '.join(choice.evidence)}", indent=6)
            if choice.surer:
                say_sentence(f"    to be surer: {choice.surer}", indent=6)
        for unknown in chosen.unknowns:
            if unknown.phase == phase.name:
                say_sentence(f"  {unknown.what}: {unknown.why}; to find out: {unknown.needs}")
    for paste in snippets:
        say()
        say(f"--- {paste.title} ({paste.where})")
        say_lines(f"{paste.text.rstrip()}\n")


def _document(app: App, run: Run, file_system: str, chosen: Chosen, snippets: tuple[Paste, ...]) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "schema": 1,
        "app": asdict(app),
        "run": run.id,
        "file_system": file_system,
        "choices": [asdict(choice) for choice in chosen.choices],
        "unknowns": [asdict(unknown) for unknown in chosen.unknowns],
        "classes": [asdict(size_class) for size_class in chosen.classes],
        "settings": [asdict(snippet) for snippet in snippets],
    }

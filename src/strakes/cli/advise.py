"""``strakes advise``: recommend settings for one application, or describe an application from a Darshan log."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.units import counted, format_bytes
from strakes.cli.options import PATH, Json, Output, command_named, option, write_json
from strakes.cli.say import print_table, say, say_lines, say_sentence

if TYPE_CHECKING:
    from strakes.runs.run import Run
    from strakes.tuning.advise_app import App
    from strakes.tuning.advise_choose import Chosen
    from strakes.tuning.advise_paste import Paste


@command_named("advise")
def command(
    *,
    app: Path | None = option("Description of the application.", type=PATH, metavar="APP.toml"),
    darshan: Path | None = option(
        "Print a description of the application made from a Darshan log; for a directory, rank its logs by their "
        "time in I/O.",
        type=PATH,
        metavar="LOG|DIR",
    ),
    run: str | None = option(
        "Base the advice on this run, or on a file written by strakes export.  [default: $STRAKES_PORTRAIT, else the "
        "newest finished survey or study that answers anything about the application, else the file that the site "
        "has published]",
        "--from",
        metavar="RUN",
    ),
    json: Json,
) -> int:
    """Recommend settings for one application, ready to paste, each with its reason, its evidence and its gain.

    Nothing is measured or changed. Where the measurements give no answer, the output says what to measure.
    """
    if (app is None) == (darshan is None):
        raise click.UsageError("give --app APP.toml or --darshan LOG; strakes examples lists applications to edit")
    if darshan is not None and run is not None:
        raise click.UsageError("--from cannot be used with --darshan, which only prints a description")
    if darshan is not None:
        return (_rank if darshan.is_dir() else _describe)(darshan, json)
    assert app is not None
    from strakes.runs.run import told_as_damage
    from strakes.survey.analysis_build import results_of
    from strakes.tuning.advise_app import read_app
    from strakes.tuning.advise_choose import choose
    from strakes.tuning.advise_paste import pastes
    from strakes.tuning.advise_source import run_to_advise_from

    described = read_app(app)
    stored = run_to_advise_from(run, lambda candidate: bool(choose(described, results_of(candidate)).choices))
    with told_as_damage(stored):
        results = results_of(stored)
        chosen = choose(described, results, float(stored.manifest["options"].get("budget_s", 120.0)))
        file_system = str(results.facts.get("file_system", ""))
        snippets = pastes(described, chosen, file_system)
        result = {"schema": 1, "app": asdict(described), "run": stored.id, "file_system": file_system}
        result |= {key: list(map(asdict, getattr(chosen, key))) for key in ("choices", "unknowns", "classes")}
        result["settings"] = list(map(asdict, snippets))
        if write_json(json, result):
            _print(described, stored, file_system, chosen, snippets)
    return 0


def _rank(directory: Path, json: Output | None) -> int:
    from strakes.tuning.advise_darshan import read_logs

    logs, errors = read_logs(directory)
    if write_json(json, {"schema": 1, "logs": logs, "unreadable": list(map(str, errors))}):
        say("In I/O: time that the slowest rank spent in I/O calls. Faster I/O saves at most this time.")
        rows = []
        for log in logs:
            remark = f" (partial: {', '.join(log['partial'])})" if log["partial"] else ""
            if not log["counted"]:
                remark = f" (not counted: {', '.join(log['modules']) or 'nothing recorded'})"
            name = f"{log['program'] or '(unknown)'}, {Path(log['log']).relative_to(directory)}{remark}"
            moved = format_bytes(log["moved_bytes"])
            rows.append((f"{log['io_s']:.1f} s", f"{log['run_s']:.1f} s", f"{log['ranks']:,}", moved, name))
        print_table(("in I/O", "of run", "ranks", "moved", "program, log"), rows)
        say(f"Describe one for advice: strakes advise --darshan {shlex.quote(str(directory))}/LOG > app.toml")
    for error in errors:
        say(f"left out: {error}", err=True)
    return 1 if errors and not logs else 0


def _describe(log: Path, json: Output | None) -> int:
    from strakes.tuning.advise_app import to_toml
    from strakes.tuning.advise_darshan import app_of, read_log

    app, remarks = app_of(read_log(log))
    if write_json(json, {"schema": 1, "app": asdict(app), "remarks": remarks}):
        click.echo(to_toml(app, (f"Filled from the Darshan log {log.name}.", *remarks)), nl=False)
    return 0


def _print(app: App, run: Run, file_system: str, chosen: Chosen, snippets: tuple[Paste, ...]) -> None:
    from strakes.report.facts import heading_of, source_of
    from strakes.report.notices import notices
    from strakes.tuning.portraits import build_portrait

    where = f"{counted(app.ranks, 'rank')} on {counted(app.nodes, 'node')}, {app.interface}"
    say_sentence(f"{app.title}: {where}; from run {run.id} on {file_system}")
    portrait = build_portrait(run)
    for notice in (one for one in notices(portrait) if one.code in ("memory-file-system", "cache-below")):
        say_sentence(notice.advice)
    if not chosen.choices:
        say_sentence(
            "This run answers no question about the application. The list below names the measurements that answer "
            "them. To use another run, give --from RUN."
        )
    for phase in app.phases:
        say()
        say(f"{phase.name} ({phase.operation}, {phase.files}):")
        for choice in (each for each in chosen.choices if each.phase == phase.name):
            say(f"  {choice.what}: {choice.text}")
            say_sentence(f"    because: {choice.reason}", indent=6)
            if (gain := choice.gain) is not None:
                of = f"{gain.confidence:.0%} interval, {gain.of}"
                say_sentence(f"    gains: {gain.low:.2f} - {gain.high:.2f} times ({of})", indent=6)
            if source := source_of(portrait, choice.evidence):
                say_sentence(f"    {heading_of(source)}", indent=6)
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

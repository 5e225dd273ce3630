"""``strakes advise``: settings for one application, from what was measured; or its description, from a Darshan log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from strakes.cli.options import Output, json_option

if TYPE_CHECKING:
    from strakes.advise.app import App
    from strakes.advise.choose import Chosen
    from strakes.advise.paste import Paste
    from strakes.store import Run


@click.command()
@click.option("--app", "app_path", type=click.Path(path_type=Path), metavar="APP.toml", help="What the application does (examples/apps/).")
@click.option("--darshan", type=click.Path(path_type=Path), metavar="LOG", help="Fill the description from a Darshan log and print it.")
@click.option(
    "--from",
    "run",
    metavar="RUN",
    help="The run to advise from, or a file that strakes export wrote  [default: $STRAKES_PORTRAIT, else the newest survey or study "
    "that was finished, else the one that the site has published]",
)
@json_option
def command(app_path: Path | None, darshan: Path | None, run: str | None, json: Output | None) -> int:
    """Settings for one application, ready to paste, each with its reason, the cells it stands on and what it gains.

    Nothing is measured and nothing is changed. What the measurements do not say is told, with what it would take.
    """
    if (app_path is None) == (darshan is None):
        raise click.UsageError("give --app APP.toml or --darshan LOG")
    if darshan is not None:
        if run is not None:
            raise click.UsageError("--darshan only writes the description; give it to --app, with --from")
        _describe(darshan, json)
        return 0
    assert app_path is not None
    from strakes.advise.app import read_app
    from strakes.advise.choose import choose
    from strakes.advise.paste import pastes
    from strakes.advise.source import run_to_advise_from
    from strakes.portrait.build import results_of

    app = read_app(app_path)
    stored = run_to_advise_from(run)
    results = results_of(stored)
    chosen = choose(app, results)
    file_system = str(results.facts.get("file_system", ""))
    found = pastes(app, chosen, file_system)
    if json is not None:
        json.write(_json(_document(app, stored, file_system, chosen, found)))
    if json is None or json.path is not None:
        _print(app, stored, file_system, chosen, found)
    return 0


def _describe(log: Path, json: Output | None) -> None:
    from dataclasses import asdict

    from strakes.advise.app import to_toml
    from strakes.advise.darshan import app_of, read_log

    app, remarks = app_of(read_log(log))
    if json is not None:
        json.write(_json({"schema": 1, "app": asdict(app), "remarks": remarks}))
    if json is None or json.path is not None:
        click.echo(to_toml(app, (f"Filled from the Darshan log {log.name}.", *remarks)), nl=False)


def _print(app: App, run: Run, file_system: str, chosen: Chosen, found: tuple[Paste, ...]) -> None:
    click.echo(f"{app.title}: {app.ranks:,} ranks on {app.nodes:,} nodes, {app.interface}; from run {run.id} on {file_system}")
    for phase in app.phases:
        click.echo(f"\n{phase.name} ({phase.operation}, {phase.files}):")
        for choice in chosen.choices:
            if choice.phase != phase.name:
                continue
            click.echo(f"  {choice.what}: {choice.text}")
            click.echo(f"    because: {choice.reason}")
            if choice.gain is not None:
                gain = choice.gain
                click.echo(f"    gains: {gain.low:.2f} - {gain.high:.2f} times ({gain.confidence:.0%} interval, {gain.of})")
            click.echo(f"    stands on: {', '.join(choice.evidence)}")
            if choice.surer:
                click.echo(f"    to be surer: {choice.surer}")
        for unknown in chosen.unknowns:
            if unknown.phase == phase.name:
                click.echo(f"  {unknown.what}: UNKNOWN, {unknown.why}; it would take: {unknown.needs}")
    for paste in found:
        click.echo(f"\n--- {paste.title} ({paste.where})\n{paste.text.rstrip()}")


def _document(app: App, run: Run, file_system: str, chosen: Chosen, found: tuple[Paste, ...]) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "schema": 1,
        "app": asdict(app),
        "run": run.id,
        "file_system": file_system,
        "choices": [asdict(one) for one in chosen.choices],
        "unknowns": [asdict(one) for one in chosen.unknowns],
        "classes": [asdict(one) for one in chosen.classes],
        "settings": [asdict(one) for one in found],
    }


def _json(document: object) -> str:
    import json

    return json.dumps(document, indent=1)

"""``strakes tune``: search for the best settings of one application by experiment, and confirm their gain."""

from __future__ import annotations

from pathlib import Path

from strakes.base.foreign_text import for_terminal
from strakes.cli.options import PATH, Directory, Measuring, assignments, command_named, option
from strakes.cli.say import say_lines


@command_named("tune", budget_s="20m")
def command(
    *,
    directory: Directory,
    app: Path = option(
        "Description of the application; examples/apps/ has examples.", type=PATH, required=True, metavar="APP.toml"
    ),
    only: tuple[str, ...] = option(
        "Try only these levels of the setting NAME. May be repeated.", default=(), metavar="NAME=LEVEL,..."
    ),
    knobs: tuple[str, ...] = option(
        "Also vary the system setting NAME. May be repeated.", default=(), metavar="NAME=VALUE,..."
    ),
    options: Measuring,
) -> int:
    """Search for the best settings for the application in APP.toml on DIR by experiment.

    The search varies the settings that DIR offers: transfer size, writers, files, interface, layout and, with --knobs,
    system settings, which are put back after every trial. At the end, the present and the best settings are measured
    again, alternately. The result is the gain with its interval, or an upper limit of the gain of any setting.
    """
    from strakes.cli.measure import carry_out, conclude
    from strakes.tuning.advise_app import read_app
    from strakes.tuning.outcome import outcome_of
    from strakes.tuning.request import TuningRequest
    from strakes.tuning.run import perform

    levels = [
        {
            name: tuple(level.strip() for level in value.split(",") if level.strip())
            for name, value in assignments(words, example).items()
        }
        for words, example in ((only, "--only transfer=64KiB,1MiB"), (knobs, "--knobs vm.dirty_ratio=10,20"))
    ]
    request = TuningRequest(read_app(app), directory, only=levels[0], knobs=levels[1], **options.for_request())
    run = carry_out(perform, request, options)
    if conclude(run, options):
        for paste in outcome_of(run).pastes:
            say_lines(f"\n--- {for_terminal(f'{paste.title} ({paste.where})')}\n{paste.text.rstrip()}\n")
    return 0

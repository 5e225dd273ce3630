"""``strakes completion SHELL``: the function that a shell calls to complete a command line."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion for SHELL: bash, zsh or fish.

    For this session only: source <(strakes completion bash). To keep it, add that line to ~/.bashrc or ~/.zshrc, or
    write the output to ~/.config/fish/completions/strakes.fish.
    """
    from click.shell_completion import get_completion_class

    from strakes.cli.main import COMPLETION, cli

    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(cli, {}, "strakes", COMPLETION).source())

"""Man pages of all commands, made from their help: ``python packaging/man.py DIRECTORY``."""

from __future__ import annotations

import sys
from pathlib import Path

# The sources beside this file, also while the package is being built.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import click
from click_man.core import write_man_pages

from strakes.base.version import __version__
from strakes.cli.main import COMMANDS, cli


def whole(group: click.Group, context: click.Context) -> click.Group:
    """Return the group with all its commands loaded: click-man does not ask for them."""
    commands = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if group is cli:
            command.short_help = COMMANDS[name]
        commands[name] = whole(command, context) if isinstance(command, click.Group) else command
    return click.Group(group.name, commands=commands, params=group.params, help=group.help, short_help=group.short_help)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python packaging/man.py DIRECTORY", file=sys.stderr)
        return 2
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    cli.short_help = "measure how a file system really behaves"
    write_man_pages(
        "strakes", whole(cli, click.Context(cli, info_name="strakes")), version=__version__, target_dir=str(directory)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

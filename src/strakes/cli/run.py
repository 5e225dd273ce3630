"""``strakes run``: run a plan, a command line of IOR or mdtest, or a configuration of IO500."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.errors import BadInputError
from strakes.base.files import real_path
from strakes.base.units import counted
from strakes.cli.options import DIRECTORY, Sampling, argument, command_named
from strakes.cli.say import say

if TYPE_CHECKING:
    from strakes.survey.request import Request

TOOLS = frozenset({"ior", "mdtest", "io500"})


class _RunOrTool(click.Command):
    """Command that leaves the arguments after a tool's name (ior, mdtest, io500) unparsed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        takes = {name for one in self.params if isinstance(one, click.Option) and not one.is_flag for name in one.opts}
        place = 0
        while place < len(args) and args[place].startswith("-") and args[place] != "-":
            place += 2 if args[place] in takes else 1
        words = [word.rpartition("/")[2].lower() for word in args[place:]]
        if words and words[0] in TOOLS:
            args = [*args[:place], "--", words[0], *args[place + 1 :]]
        elif at := next((number for number, word in enumerate(words) if word in TOOLS), 0):
            from strakes.interop.command_options import refuse_launcher

            refuse_launcher(args[:place], args[place:], at)
        return super().parse_args(ctx, args)


@command_named("run", cls=_RunOrTool, budget_s="1m")
def command(
    *,
    plan: str = argument("PLAN.toml|ior|mdtest|io500"),
    rest: tuple[str, ...] = argument("DIR...|OPTIONS...", nargs=-1, type=click.UNPROCESSED),
    sampling: Sampling,
) -> int:
    """Run a plan on DIR repeatedly, until its figures are precise enough or the budget is spent.

    A plan is a TOML file with the number of ranks and one [[phase]] table per step. examples/ has one of every kind.
    With several directories, such as the mounts of several file systems, the ranks are assigned to them round-robin:
    rank 0 to the first, rank 1 to the second.

    Or give a command line of ior or mdtest, which names the directory itself: strakes run -n 4 ior -F -t 1m -b 16m -o
    DIR/file. strakes run ior --help lists the supported options. Or give a configuration of IO500: strakes run -n 4
    io500 config.ini; strakes export --format io500 then writes the summary.
    """
    from strakes.cli.measure import measure, request_from
    from strakes.studies.plan_run import PlanRun

    if plan in TOOLS:
        if rest[:1] in (("--help",), ("-h",)):
            from strakes.interop.command_options import tool_of

            click.echo(tool_of(plan).help())
            return 0
        return measure(*_of_tool(plan, rest, sampling))
    if not rest:
        raise click.UsageError("Missing argument 'DIR'.")
    from strakes.model.plan_read import plan_from_toml

    path, *directories = (DIRECTORY.convert(word, None, None) for word in (plan, *rest))
    title, parsed = plan_from_toml(path, sampling.seed)
    if sampling.ranks is not None:
        parsed = replace(parsed, ranks=sampling.ranks)
    sampling = replace(sampling, seed=parsed.seed, ranks=parsed.ranks)
    request = request_from(sampling, "run", title, directories[0], (PlanRun(parsed),))
    return measure(_several(request, directories, parsed.ranks), sampling)


def _several(request: Request, directories: Sequence[Path], ranks: int) -> Request:
    if len(set(map(real_path, directories))) < len(directories):
        raise click.UsageError("A directory is given twice.")
    if len(directories) > ranks:
        what = f"there are {len(directories)} directories for only {counted(ranks, 'rank')}"
        remedy = f"Give more ranks, as in strakes run -n {len(directories)}, or fewer directories."
        raise BadInputError(what, where="strakes run", why="a rank works in only one directory", remedy=remedy)
    if directories[1:] and request.keep:
        raise click.UsageError("--keep takes one directory only.")
    return replace(request, beside=tuple(directories[1:]))


def _of_tool(tool: str, words: tuple[str, ...], sampling: Sampling) -> tuple[Request, Sampling]:
    from strakes.cli.measure import request_from
    from strakes.interop.command_options import tool_of
    from strakes.studies.plan_run import PlanRun

    per_node = sampling.ranks_per_node
    if per_node is None and sampling.hosts and len(sampling.hosts) > 1 and sampling.ranks:
        per_node = -(-sampling.ranks // len(sampling.hosts))
    translated = tool_of(tool).translate(words, sampling.ranks, sampling.seed, per_node)
    head = f"Unlike {tool}:"
    for index, note in enumerate(translated.notes):
        say(f"{head if index == 0 else ' ' * len(head)} {note}", err=True)
    source = click.get_current_context().get_parameter_source("budget_s")
    if translated.budget_s is not None and source is click.core.ParameterSource.DEFAULT:
        sampling = replace(sampling, budget_s=max(sampling.budget_s, translated.budget_s))
    sampling = replace(sampling, keep=sampling.keep or translated.keep, ranks=translated.plan.ranks)
    study = PlanRun(translated.plan, translated.measured, translated.fit)
    request = request_from(sampling, "run", tool, translated.directory, (study,))
    return _several(request, (translated.directory, *translated.beside), translated.plan.ranks), sampling

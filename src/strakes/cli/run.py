"""``strakes run``: any workload, described in a file, as a command line of IOR or mdtest, as IO500's ini, or as DLIO's
YAML.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from strakes.base.errors import BadInputError, nearest_word
from strakes.base.foreign_text import for_terminal
from strakes.base.units import counted, format_seconds
from strakes.cli.numbers import NumberList
from strakes.cli.options import DIRECTORY, Sampling, batch_option, measuring_options

if TYPE_CHECKING:
    from strakes.runs.choice import Launch
    from strakes.survey.request import Request

TOOLS = ("ior", "mdtest", "io500", "dlio")


class RunOrPeerCommand(click.Command):
    """Command that passes all arguments after the name of a tool to that tool."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments before the name of a tool, and keep the rest unparsed."""
        place = self._tool_at(args, TOOLS)
        if place is None and (place := self._tool_at(args, None)) is not None:
            _refuse_misspelt(args[place], ctx)
            place = None
        if place is not None:
            before = ["--resume=" if word == "--resume" else word for word in args[:place]]
            args = [*before, "--", *args[place:]]
        return super().parse_args(ctx, args)

    def _tool_at(self, args: list[str], tools: tuple[str, ...] | None) -> int | None:
        """Return the index of the first argument that is not an option, if it is one of ``tools`` (None: any word)."""
        takes = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag and not option.count
            for name in option.opts
        }
        skip = False
        for index, word in enumerate(args):
            if skip and not (args[index - 1] == "--resume" and word in TOOLS):
                skip = False
            elif word.startswith("-") and word != "-":
                skip = word in takes
            else:
                return index if tools is None or word in tools else None
        return None


def _refuse_misspelt(word: str, ctx: click.Context) -> None:
    """Raise UsageError for a misspelt name of a tool."""
    if word.replace("-", "") == "mdworkbench":
        raise click.UsageError("md-workbench is not supported: use mdtest, or strakes survey DIR.", ctx)
    near = "" if set(word) & {"/", "."} else nearest_word(word, TOOLS)
    if near and not Path(word).exists():
        raise click.UsageError(f"no such plan or tool: {word}; did you mean {near}?", ctx)


@click.command("run", cls=RunOrPeerCommand, options_metavar="[OPTIONS]")
@click.argument("plan", metavar="PLAN.toml|ior|mdtest|io500|dlio")
@click.argument("rest", metavar="DIR...|OPTIONS...", nargs=-1, type=click.UNPROCESSED)
@measuring_options("1m")
@batch_option
@click.option(
    "--processors",
    type=NumberList(),
    metavar="LIST",
    help="Bind each rank to one of these processors, such as 0-3,8; the ranks of a host are assigned round-robin.",
)
@click.option(
    "--numa-nodes",
    type=NumberList(),
    metavar="LIST",
    help="Bind each rank and its memory to one of these NUMA nodes, such as 0,1; the ranks of a host are assigned "
    "round-robin.",
)
@click.option(
    "--buffer-pages",
    type=click.Choice(("normal", "transparent", "huge")),
    help="Pages of the ranks' buffers: base pages (normal), transparent huge pages (transparent), or huge pages that "
    "were reserved beforehand (huge).",
)
def command(
    plan: str,
    rest: tuple[str, ...],
    options: Sampling,
    batch: str | None,
    processors: str | None,
    numa_nodes: str | None,
    buffer_pages: str | None,
) -> int:
    """Run a plan on DIR repeatedly, until its figures are precise enough or the budget is spent.

    A plan is a TOML file with the number of ranks and one [[phase]] table per step. examples/ has one of every kind.
    With several directories, such as the mounts of several file systems, the ranks are assigned to them round-robin:
    rank 0 to the first, rank 1 to the second.

    Or give a command line of ior or mdtest, which names the directory itself: strakes run -n 4 ior -F -t 1m -b 16m -o
    DIR/file. strakes run ior --help lists the supported options. Or give a configuration of IO500: strakes run -n 4
    io500 config.ini; strakes export --format io500 then writes the summary. Or one of DLIO, for training without an
    accelerator: strakes run -n 4 dlio unet3d.yaml
    """
    keys = {"processors": processors, "numa_nodes": numa_nodes, "buffer_pages": buffer_pages}
    placement = {key: value for key, value in keys.items() if value is not None}
    if plan in TOOLS:
        return _run_tool(plan, rest, options, placement, batch)
    context = click.get_current_context()
    if not rest:
        raise click.UsageError("Missing argument 'DIR'.", context)
    path, *directories = (DIRECTORY.convert(word, None, context) for word in (plan, *rest))
    return _run_plan(path, directories, options, placement, batch)


def _ranks_per_node(launch: Launch) -> int | None:
    """Return the number of ranks on each node, or None if one node has all or the launcher decides."""
    if launch.ranks_per_node is None and len(launch.hosts) > 1 and launch.ranks:
        return -(-launch.ranks // len(launch.hosts))
    return launch.ranks_per_node


def _several(request: Request, directories: Sequence[Path], ranks: int) -> Request:
    """Return the request to run a plan in these directories. Raises BadInputError for fewer ranks than directories."""
    first, *beside = directories
    context = click.get_current_context()
    if len({path.resolve() for path in directories}) < len(directories):
        raise click.UsageError("A directory is given twice.", context)
    if len(directories) > ranks:
        raise BadInputError(
            f"there are {len(directories)} directories for {counted(ranks, 'rank')}",
            where="strakes run",
            why="each rank works in one directory",
            remedy=f"Give more ranks, as in strakes run -n {len(directories)}, or fewer directories.",
        )
    if beside and request.keep:
        raise click.UsageError("--keep takes one directory only.", context)
    return replace(request, directory=first, beside=tuple(beside))


def _run_plan(
    path: Path, directories: Sequence[Path], options: Sampling, placement: Mapping[str, str], batch: str | None
) -> int:
    from strakes.cli.measure import measure, request_from
    from strakes.model.plan import placed
    from strakes.model.plan_toml import plan_from_toml
    from strakes.studies.plan_run import PlanRun

    title, parsed = plan_from_toml(path, options.seed)
    parsed = placed(parsed, placement)
    if options.launch.ranks is not None:
        parsed = replace(parsed, ranks=options.launch.ranks)
    options = replace(options, seed=parsed.seed, launch=replace(options.launch, ranks=parsed.ranks))
    request = request_from(options, "run", title, directories[0], (PlanRun(parsed),), full=True)
    return measure(_several(request, directories, parsed.ranks), options, batch=batch)


def _run_tool(
    tool: str, words: tuple[str, ...], options: Sampling, placement: Mapping[str, str], batch: str | None
) -> int:
    from strakes.cli.measure import measure, request_from
    from strakes.interop.command_options import tool_of
    from strakes.model.plan import placed
    from strakes.studies.plan_run import PlanRun

    launch, seed = options.launch, options.seed
    if words[:1] in (("--help",), ("-h",)):
        click.echo(tool_of(tool).help())
        return 0
    translated = tool_of(tool).translate(words, launch.ranks, seed, _ranks_per_node(launch))
    for index, note in enumerate(translated.notes):
        head = f"Unlike {tool}:"
        told = head if index == 0 else " " * len(head)
        click.echo(for_terminal(f"{told} {note}"), err=True)
    study = PlanRun(placed(translated.plan, placement), translated.measured, translated.fit)
    source = click.get_current_context().get_parameter_source("budget_s")
    if translated.budget_s is not None and source is click.core.ParameterSource.DEFAULT:
        options = replace(options, budget_s=max(options.budget_s, translated.budget_s))
    elif options.budget_s < translated.waits_s:
        raise BadInputError(
            f"one run takes at least {format_seconds(translated.waits_s)}",
            where=f"strakes run {tool} with --budget {format_seconds(options.budget_s)}",
            why="its steps compute for that long, whatever the file system does",
            remedy=f"Give --budget {math.ceil(translated.budget_s or translated.waits_s)}s, or leave it out.",
        )
    keep = options.keep or translated.keep
    options = replace(options, keep=keep, launch=replace(launch, ranks=translated.plan.ranks))
    request = request_from(options, "run", tool, translated.directory, (study,), full=True)
    directories = (translated.directory, *translated.beside)
    return measure(_several(request, directories, translated.plan.ranks), options, batch=batch)

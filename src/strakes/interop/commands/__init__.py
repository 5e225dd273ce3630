"""Command lines of other tools, translated into plans of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from strakes.interop.commands import dlio, io500, ior, mdtest
from strakes.interop.commands.words import ForeignOption, Translation, help_text


@dataclass(frozen=True)
class Tool:
    """A tool whose command lines are understood: its options, the way from words, ranks (None: not asked for), seed and
    ranks of a node to a plan, and its help.
    """

    options: Mapping[str, ForeignOption]
    translate: Callable[..., Translation]
    help: Callable[[], str]


# Words that `strakes run` takes for a tool's command line instead of a plan.
TOOLS: Mapping[str, Tool] = {
    "ior": Tool(ior.OPTIONS, ior.translate, partial(help_text, "ior", ior.OPTIONS)),
    "mdtest": Tool(mdtest.OPTIONS, mdtest.translate, partial(help_text, "mdtest", mdtest.OPTIONS)),
    "dlio": Tool(dlio.OPTIONS, dlio.translate, dlio.help_text),
    "io500": Tool(io500.OPTIONS, io500.translate, io500.help_text),
}

"""``strakes examples``: the examples that come with strakes."""

from __future__ import annotations

import re

from strakes.base.errors import BadInputError, did_you_mean
from strakes.base.schemas import example_names, shipped
from strakes.cli.options import TextOutput, argument, command_named
from strakes.cli.say import say_sentence


@command_named("examples")
def command(*, output: TextOutput, name: str | None = argument("[NAME]", required=False)) -> int:
    """Print the example NAME. Without NAME, list the examples: plans, applications, needs and pairs of servers.

    For instance: strakes examples metadata.toml -o plan.toml, then strakes run plan.toml DIR.
    """
    if name is not None:
        output.write(example(name))
        return 0
    for known in example_names():
        sentence = re.split(r"(?<=[.?])\s|\n", example(known).replace("\n# ", " "))[0]
        say_sentence(f"{known:<36} {sentence.strip('# ')}", indent=37)
    return 0


def example(name: str) -> str:
    """Return the text of an example. Raises BadInputError for an unknown name."""
    known = example_names()
    if name not in known:
        remedy = did_you_mean(name, known, "List the examples: strakes examples")
        raise BadInputError(f"no example is named {name!r}", remedy=remedy)
    return (shipped("examples") / name).read_text(encoding="utf-8")

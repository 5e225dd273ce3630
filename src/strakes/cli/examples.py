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
    texts = {known: (shipped("examples") / known).read_text(encoding="utf-8") for known in example_names()}
    if name in texts:
        output.write(texts[name])
    elif name is not None:
        remedy = did_you_mean(name, texts, "List the examples: strakes examples")
        raise BadInputError(f"no example is named {name!r}", remedy=remedy)
    for known, text in texts.items() if name is None else ():
        sentence = re.split(r"(?<=[.?])\s|\n", text.replace("\n# ", " "))[0]
        say_sentence(f"{known:<36} {sentence.strip('# ')}", indent=37)
    return 0

"""The commands in the guide exist on the command line, and building the documents runs them (packaging/live.py)."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest

from strakes.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "guide").glob("*.md"))
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a page has mounts of its own")


def _script(name: str) -> ModuleType:
    # Python has a module "site", so the name needs a prefix.
    name_here = f"packaging_{name}"
    spec = importlib.util.spec_from_file_location(name_here, ROOT / "packaging" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name_here] = module
    spec.loader.exec_module(module)
    return module


live, site = _script("live"), _script("site")


def _unknown(words: list[str]) -> list[str]:
    """Return the subcommand or the options of a command that do not exist."""
    command: click.Command = cli
    context = click.Context(cli, info_name="strakes")
    if cli.get_command(context, " ".join(words[:2])) is not None:
        words = [" ".join(words[:2]), *words[2:]]
    while isinstance(command, click.Group) and words:
        inner = command.get_command(context, words[0])
        if inner is None:
            return words[:1]
        command, words = inner, words[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)} | {
        "--help",
        "-h",
    }
    options = [word.split("=")[0] for word in words if re.fullmatch(r"--?[a-z][\w-]*(=.*)?", word)]
    return [option for option in options if option not in known]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_the_guide_exists_on_the_command_line(page: Path) -> None:
    for block in live.read(page.read_text()).blocks:
        for command in block.commands:
            match = re.search(r"(?:^|\s|\()(?:\./)?strakes (.*)", command.split("#")[0])
            if match is None or re.match(r"run\b.* (ior|mdtest)\b|lab exec\b", match[1]):
                continue
            text = re.split(r"[>|]| --launcher-options ", re.sub(r"\$\([^)]*\)", "DIR", match[1]))[0].replace(")", "")
            # A command that sbatch --wrap quotes ends with its quotation mark.
            words = shlex.split(text.replace('"', "") if text.count('"') % 2 else text)
            assert _unknown(words) == [], command


def test_an_unknown_live_comment_is_refused_with_its_line() -> None:
    with pytest.raises(live.LiveError, match="line 2: <!-- live: instead x -->: write one of at, "):
        live.read("text\n<!-- live: instead x -->\n")
    with pytest.raises(live.LiveError, match="line 1"):
        live.read("<!-- live: not -->\n")


@needs_root
def test_commands_of_a_page_share_a_shell_and_their_output_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "BUILT", tmp_path)
    text = "<!-- live: as s/1000/1/ -->\n```sh\nA=1000\n```\n<!-- live: first B=2 -->\n<!-- live: status 1 -->\n"
    text += "```console\n$ echo $A$B; false\nnot this\n```\n"
    assert live.run("page", live.read(text)) == {2: "$ A=1000\n", 7: "$ echo $A$B; false\n12\n"}


@needs_root
def test_a_command_with_an_unexpected_status_is_named_with_its_line_and_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "BUILT", tmp_path)
    with pytest.raises(live.LiveError, match=r"(?s)page, line 1: ls /nowhere\nstatus 2, expected 0\n.*No such file"):
        live.run("page", live.read("```sh\nls /nowhere\ntrue\n```\n"))


def test_the_site_shows_the_output_of_a_block_below_it() -> None:
    text = site._with_output("a\n```sh\nls\n```\nb", {2: "$ ls\n<x>\n"})
    assert text.startswith("a\n```sh\nls\n```\n\n<details>")
    assert "<code>$ ls\n&lt;x&gt;\n</code>" in text and text.endswith("\nb")

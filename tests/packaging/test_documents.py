"""Paths, links, names and commands in the documents exist, and the build of the site runs the guide's commands."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import click
import pytest

from strakes.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "guide").glob("*.md"))
DEVELOPERS = ROOT / "docs" / "developers"
ADDITIONS = sorted(DEVELOPERS.glob("add-*.md"))
_PATH = re.compile(r"`((?:src|engine|tests|schemas|docs|packaging|examples|cmake)/[\w./-]+|schemas|examples|engine)`")
# Matches "`NAME` in `path`" and "`NAME` (`path`)".
_NAMED = re.compile(r"`(\w+)`(?: in |,? \()`((?:src|tests|engine)/[\w./-]+)`")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a page has its own mounts")


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
            # An argument of "sbatch --wrap" ends with a quotation mark that has no partner here.
            assert _unknown(shlex.split(text.replace('"', "") if text.count('"') % 2 else text)) == [], command


def test_an_unknown_live_comment_is_refused_with_its_line() -> None:
    with pytest.raises(live.LiveError, match="line 2: <!-- live: instead x -->: write one of at, "):
        live.read("text\n<!-- live: instead x -->\n")
    with pytest.raises(live.LiveError, match="line 1"):
        live.read("<!-- live: not -->\n")


@needs_root
def test_commands_of_a_page_share_a_shell_and_output_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize("page", sorted(DEVELOPERS.glob("*.md")), ids=lambda page: page.stem)
def test_the_developers_pages_name_only_paths_that_exist(page: Path) -> None:
    named = [name for name in _PATH.findall(page.read_text()) if "your_" not in name]
    assert named and [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_links_of_documents_lead_to_files_that_exist(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_site_keeps_links_between_documents_and_names_other_files() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="guide/interop.md"))
    text = "[a](lab.md) [`b`](../../schemas/export.json) [c](https://example.org/x) [d](../README.md#top)"
    assert site.on_page_markdown(text, page=page) == "[a](lab.md) `b` [c](https://example.org/x) [d](../README.md#top)"
    table = "<table>\n<tr>\n<th>kind</th>\n</tr>\n<tr>\n<td>x</td>\n</tr></table>"
    assert '<td data-label="kind">x</td>' in site.on_page_content(table)


@pytest.mark.parametrize("page", ADDITIONS, ids=lambda page: page.stem)
def test_each_name_on_a_page_is_in_the_file_given_for_it(page: Path) -> None:
    named = [(name, path) for name, path in _NAMED.findall(page.read_text()) if "/your_" not in path]
    assert named or page.stem == "add-a-rule"  # a rule is data, so the page on rules names nothing in Python
    assert [(name, path) for name, path in named if not re.search(rf"\b{name}\b", (ROOT / path).read_text())] == []


def test_the_table_of_costs_links_each_page() -> None:
    table = (DEVELOPERS / "README.md").read_text()
    assert [page.name for page in ADDITIONS if f"]({page.name})" not in table] == []

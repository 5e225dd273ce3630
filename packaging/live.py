"""Runs the commands that the documents print, each for real: ``python packaging/live.py [PAGE...]``, as root.

A page says in comments what its commands need; a comment that belongs to a block stands between the block before and
it:

<!-- live: at /scratch xfs --size 4GiB -->   for the page: bring up that lab and show it at this path <!-- live: inside
slurm login -->            for the page: its commands run on that node of the lab, $DIR is the first one's directory
<!-- live: first COMMAND -->                 for the next block: run this before it, unseen <!-- live: as s/10m/10s/ -->
for the next block: run its commands with this replaced (sed) <!-- live: status 1 -->                      for the next
block: what its last command ends with <!-- live: report NAME -->                   for the next block: its run's report
goes into the gallery under this name <!-- live: not WHY -->                       for the next block: it is not run

Commands of ``sh`` blocks, and of others the lines that begin with ``$``, run one after the other in one shell for each
page, in an own directory with an own store, in an own mount namespace. A status that was not expected fails the page.
What they said goes to ``build/live/PAGE.json``, from where packaging/site.py puts it below the blocks, and the reports
to ``build/live/gallery``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "build" / "live"
_COMMENT = re.compile(r"^<!-- live: (\w+) ?(.*?) -->$")
_FENCE = re.compile(r"^```(\w*)$")
_PAGE_WORDS = ("at", "inside")
_BLOCK_WORDS = ("first", "as", "status", "report", "not")
# What a page may take in all; a command that hangs is a fault of the page's.
_PAGE_LIMIT_S = 1800
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


class LiveError(Exception):
    """A comment that is not understood, or a command that did not end as expected."""


@dataclass
class Block:
    """A block of commands: where it begins (lines count from 1), and what its comments say."""

    line: int
    commands: list[str]
    first: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    status: int = 0
    report: str = ""
    not_run: str = ""


@dataclass
class Page:
    """``labs``: path and the words after `strakes lab up`. ``inside``: lab and node, or nothing."""

    blocks: list[Block]
    labs: list[tuple[str, list[str]]]
    inside: list[str]


def read(text: str) -> Page:
    """Return a document's commands. Raises LiveError for a comment that is not understood.

    >>> page = read("<!-- live: as s/1h/1s/ -->\\n```console\\n$ strakes runs   # all\\nnone\\n```")
    >>> page.blocks[0].commands, page.blocks[0].replaced
    (['strakes runs   # all'], ['s/1h/1s/'])
    """
    page, block, fence, body = Page([], [], []), Block(0, []), None, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if fence is not None:
            if line == "```":
                block.line, block.commands = fence[0], _commands(fence[1], body)
                if block.commands:
                    page.blocks.append(block)
                block, fence = Block(0, []), None
            else:
                body.append(line)
        elif match := _FENCE.match(line):
            fence, body = (number, match[1]), []
        elif match := _COMMENT.match(line):
            try:
                _take(page, block, match[1], match[2])
            except ValueError as error:
                raise LiveError(f"line {number}: {line}: {error}") from error
    return page


def _take(page: Page, block: Block, word: str, rest: str) -> None:
    if word == "at":
        path, *words = shlex.split(rest)
        page.labs.append((path, words))
    elif word == "inside":
        page.inside = shlex.split(rest)
    elif word == "first":
        block.first.append(rest)
    elif word == "as":
        block.replaced.append(rest)
    elif word == "status":
        block.status = int(rest)
    elif word == "report":
        block.report = rest
    elif word == "not" and rest:
        block.not_run = rest
    else:
        raise ValueError(f"write one of {', '.join((*_PAGE_WORDS, *_BLOCK_WORDS))}")


def _commands(language: str, body: Sequence[str]) -> list[str]:
    if language == "sh":
        return [line for line in body if line.strip()]
    return [line[2:] for line in body if line.startswith("$ ")]


def script(page: Page, place: Path) -> str:
    """Return what bash is to run: each command's output in ``place/LINE.out``, and a line with its status in
    ``place/ended``.
    """
    # Labs that the page's own commands bring up are mounted in its namespace alone; those of the page itself are links
    # there.
    down = "for lab in $XDG_STATE_HOME/strakes/lab/*; do [ -L $lab ] || strakes lab down ${lab##*/} --force; done"
    lines = [] if page.inside else [f"trap '{down} >{place}/down 2>&1' EXIT"]
    for block in page.blocks:
        if block.not_run:
            continue
        lines += [f"{{ {command}; }} >>{place}/first.log 2>&1 </dev/null" for command in block.first]
        for number, command in enumerate(block.commands):
            name = f"{block.line}.{number}"
            run_as = _replaced(command, block.replaced)
            # A subshell would lose what a command assigns.
            lines += [f"{{ {run_as}\n}} >{place}/{name}.out 2>&1 </dev/null", f'echo "{name} $?" >>{place}/ended']
        if block.report:
            lines.append(f"strakes report latest --html {place}/{shlex.quote(block.report)}.html >/dev/null 2>&1")
    return "\n".join(lines) + "\n"


def _replaced(command: str, expressions: Sequence[str]) -> str:
    """As the comments have it run here."""
    words = [word for expression in expressions for word in ("-e", expression)]
    return (
        subprocess.run(["sed", *words], input=command, capture_output=True, text=True, check=True).stdout.strip()
        if words
        else command
    )


@contextmanager
def _labs(labs: Sequence[tuple[str, list[str]]], base: Path) -> Iterator[list[tuple[str, Path]]]:
    """Paths, and the mounts that are to be seen there."""
    with ExitStack() as stack:
        mounts = []
        for path, words in labs:
            name = path.strip("/").replace("/", "-")
            up = _strakes("lab", "up", *words, "--name", name, "--at", str(base))
            done = subprocess.run(up, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise LiveError(f"strakes lab up {' '.join(words)}: {done.stderr.strip()}")
            stack.callback(subprocess.run, _strakes("lab", "down", name, "--force"), capture_output=True, check=False)
            mounts.append((path, Path(done.stdout.strip())))
        yield mounts


def run(name: str, page: Page) -> dict[int, str]:
    """Return what each block's commands said, by the block's line.

    Raises LiveError with the first command that ended otherwise than expected.
    """
    with tempfile.TemporaryDirectory(prefix="strakes-live-", dir="/var/tmp") as temporary:
        base = Path(temporary)
        place, work, store = base / "said", base / "work", base / "store"
        for directory in (place, work, store):
            directory.mkdir()
        for shown in ("examples", "tests"):
            (work / shown).symlink_to(ROOT / shown)
        environment = {
            **os.environ,
            "STRAKES_STORE": str(store),
            "XDG_STATE_HOME": str(base / "state"),
            "COLUMNS": "120",
        }
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        os.environ["XDG_STATE_HOME"] = environment["XDG_STATE_HOME"]
        with _labs(page.labs, base / "labs") as mounts:
            begin = f"DIR={shlex.quote(str(mounts[0][1]))}\n" if page.inside else ""
            (base / "script").write_text(f"cd {work}\n{begin}{script(page, place)}")
            # Paths as the documents have them, for this page alone.
            shown_at = "".join(
                f"mkdir -p {path} && mount --bind {shlex.quote(str(mount))} {path} && " for path, mount in mounts
            )
            command = ["unshare", "--mount", "bash", "-c", f"{shown_at}exec bash {base}/script"]
            if page.inside:
                command = _strakes("lab", "exec", *page.inside, "bash", str(base / "script"))
            try:
                subprocess.run(command, env=environment, cwd=work, timeout=_PAGE_LIMIT_S, check=False)
            except subprocess.TimeoutExpired as error:
                raise LiveError(f"{name}: its commands did not end within {_PAGE_LIMIT_S} s") from error
            finally:
                for path, _ in mounts:
                    if Path(path).is_dir() and not any(Path(path).iterdir()):
                        Path(path).rmdir()
        _keep_reports(place)
        return _said(name, page, place)


def _said(name: str, page: Page, place: Path) -> dict[int, str]:
    ended = (
        dict(line.split() for line in (place / "ended").read_text().splitlines()) if (place / "ended").exists() else {}
    )
    outputs: dict[int, str] = {}
    for block in page.blocks:
        if block.not_run:
            continue
        parts = []
        for number, command in enumerate(block.commands):
            key = f"{block.line}.{number}"
            output = (place / f"{key}.out").read_text(errors="replace") if key in ended else "it did not run"
            expected = block.status if number == len(block.commands) - 1 else 0
            if ended.get(key) != str(expected):
                raise LiveError(
                    f"{name}, line {block.line}: {command}\nstatus {ended.get(key)}, expected {expected}\n{output}"
                )
            parts.append(f"$ {command}\n{output}")
        outputs[block.line] = "".join(parts)
    return outputs


def _keep_reports(place: Path) -> None:
    """Keep the reports, and pictures of their beginnings where there is a browser."""
    gallery = BUILT / "gallery"
    gallery.mkdir(parents=True, exist_ok=True)
    browser = next((path for program in _CHROMIUM if (path := shutil.which(program))), None)
    for report in place.glob("*.html"):
        shutil.copy(report, gallery)
        if browser:
            words = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,900"]
            picture = f"--screenshot={gallery / report.stem}.png"
            subprocess.run([browser, *words, picture, report.as_uri()], capture_output=True, check=False, timeout=120)


def _strakes(*words: str) -> list[str]:
    return [sys.executable, "-m", "strakes", *words]


def main() -> int:
    """0; 1 where a command did not end as it should."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="documents (default: the guide)")
    parser.add_argument("--list", action="store_true", help="only list the commands that run, and why others do not")
    chosen = parser.parse_args()
    failed = False
    for path in chosen.pages or sorted((ROOT / "docs" / "guide").glob("*.md")):
        page = read(path.read_text(encoding="utf-8"))
        if chosen.list:
            for block in page.blocks:
                for command in block.commands:
                    print(
                        f"{path.name}:{block.line}: {command}"
                        + (f"   [not run: {block.not_run}]" if block.not_run else "")
                    )
            continue
        began = time.monotonic()
        try:
            outputs = run(path.stem, page)
        except LiveError as error:
            print(f"FAILED {error}", file=sys.stderr, flush=True)
            failed = True
            continue
        BUILT.mkdir(parents=True, exist_ok=True)
        (BUILT / f"{path.stem}.json").write_text(json.dumps(outputs))
        print(f"{path.stem}: {len(outputs)} blocks in {time.monotonic() - began:.0f} s", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

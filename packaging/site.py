"""For MkDocs: links to files of the checkout become their names; what packaging/live.py had run comes below the
commands.
"""

from __future__ import annotations

import html
import json
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

LIVE = Path(__file__).resolve().parents[1] / "build" / "live"
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?://|#)([^)#\s]+)(#[^)\s]*)?\)")
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_GALLERY = "<!-- gallery -->"


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Change the text of a page; MkDocs calls this with each."""
    folder = posixpath.dirname(page.file.src_uri)

    def kept(link: re.Match[str]) -> str:
        outside = posixpath.normpath(posixpath.join(folder, link[2])).startswith("..")
        return link[1] if outside else link[0]

    recording = LIVE / f"{posixpath.basename(page.file.src_uri).removesuffix('.md')}.json"
    if folder == "guide" and recording.exists():
        markdown = _with_output(
            markdown, {int(line): text for line, text in json.loads(recording.read_text(encoding="utf-8")).items()}
        )
    return _LINK.sub(kept, markdown.replace(_GALLERY, _gallery()))


def on_page_content(content: str, **_: object) -> str:
    """Give each cell of a table the name of its column, which a narrow window shows before it."""
    return _TABLE.sub(_with_labels, content)


def _with_labels(table: re.Match[str]) -> str:
    columns = [html.escape(re.sub("<[^>]+>", "", head)) for head in re.findall(r"<th[^>]*>(.*?)</th>", table[0])]

    def labelled(row: re.Match[str]) -> str:
        names = iter(columns)
        return re.sub("<td", lambda _: f'<td data-label="{next(names, "")}"', row[0])

    return re.sub(r"<tr>.*?</tr>", labelled, table[0], flags=re.DOTALL)


def on_post_build(config: Any, **_: object) -> None:
    """Do what is left when all pages are written; MkDocs calls this."""
    if (LIVE / "gallery").exists():
        shutil.copytree(LIVE / "gallery", Path(config["site_dir"]) / "gallery", dirs_exist_ok=True)


def _with_output(markdown: str, outputs: dict[int, str]) -> str:
    """Below each block that was run all that its commands said.

    ``said``: by the line where the block begins, from 1.
    """
    lines: list[str] = []
    block: int | None = None
    for number, line in enumerate(markdown.splitlines(), 1):
        lines.append(line)
        if block is not None and line == "```":
            if block in outputs:
                title = "<summary>Run when these pages were built: all that it said</summary>"
                lines.append(f"\n<details>{title}<pre><code>{html.escape(outputs[block])}</code></pre></details>\n")
            block = None
        elif block is None and line.startswith("```"):
            block = number
    return "\n".join(lines)


def _gallery() -> str:
    return "\n\n".join(_shown(report) for report in sorted((LIVE / "gallery").glob("*.html")))


def _shown(report: Path) -> str:
    name, title = report.stem, report.stem.replace("-", " ")
    picture = (
        f'<br><img src="../gallery/{name}.png" alt="{title}" width="600">'
        if report.with_suffix(".png").exists()
        else ""
    )
    return f'<a href="../gallery/{report.name}">{title}{picture}</a>'

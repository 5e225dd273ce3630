"""Checks of a terminal screen and of a web page: cut text, broken lines and grades."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Lines with a command or path to copy. They may be wrapped: a terminal copies a wrapped line as one line.
_TO_COPY = re.compile(r"(Report|Repeat|Next|  ) +(strakes|/)")
# Return the texts that an enclosing box or the edge of the window clips. A scrollable box clips on paper only.
_CLIPPED = """onPaper => {
  const cutting = onPaper ? ['hidden', 'clip', 'auto', 'scroll'] : ['hidden', 'clip'];
  const wide = document.documentElement.clientWidth;
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const clipped = [];
  while (texts.nextNode()) {
    const text = texts.currentNode;
    const words = text.textContent.trim();
    const parent = text.parentElement;
    if (!words || ['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(parent.tagName)) continue;
    const style = getComputedStyle(parent);
    if (style.visibility !== 'visible' || style.opacity === '0') continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const boxes = [...range.getClientRects()].filter(box => box.width > 0);
    if (!boxes.length) continue;
    const left = Math.min(...boxes.map(box => box.left)), right = Math.max(...boxes.map(box => box.right));
    const top = Math.min(...boxes.map(box => box.top)), bottom = Math.max(...boxes.map(box => box.bottom));
    let cut = false, scrolled = false;
    for (let box = parent; box && box !== document.body; box = box.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(box);
      const edge = box.getBoundingClientRect();
      if (['auto', 'scroll'].includes(overflowX)) scrolled = true;
      if (edge.width <= 1) break;  // for screen readers only
      if (cutting.includes(overflowX) && (right > edge.right + 2 || left < edge.left - 2)) cut = true;
      // Half a line is lost, not only the space below a letter.
      if (cutting.includes(overflowY) && (bottom > edge.bottom + 5 || top < edge.top - 5)) cut = true;
    }
    if (cut || (right > wide + 1 || left < -1) && (onPaper || !scrolled)) clipped.push(words.slice(0, 80));
  }
  return clipped;
}"""


def clipped_texts(page: Any, *, on_paper: bool = False) -> list[str]:
    """Return the first 80 characters of each text of a page that is partly invisible."""
    clipped: list[str] = page.evaluate(_CLIPPED, on_paper)
    return clipped


def grades_in(text: str) -> list[str]:
    """Return the grades at the ends of the rows of a screen.

    >>> grades_in("  request size  1 MiB  sure\\n  files  not decided  -\\n")
    ['sure', '-']
    """
    return re.findall(r"  (sure|likely|alike|-)$", text, flags=re.MULTILINE)


def broken_lines(lines: Iterable[str], written: Iterable[str], columns: int) -> list[str]:
    """Return the lines longer than ``columns``, on the screen or as written; lines to copy may be wrapped."""
    return [line for line in lines if len(line) > columns] + [
        line for line in written if len(line) > columns and not _TO_COPY.match(line)
    ]


def cut_words(written: Sequence[str], known: set[str]) -> set[str]:
    """Return the words of a screen that are unknown or end with an ellipsis."""
    text = "\n".join(written)
    # Skip numbers: their format depends on the width of the screen.
    shown = {word for word in words_of(text) if re.fullmatch(r"[A-Za-z-]{2,}[.,:;]?", word)}
    unknown = {word for word in shown if not {word, word.removesuffix(",")} & known}
    return unknown | {word for word in text.split() if "…" in word}


def words_of(text: str) -> set[str]:
    """Return the words without quotation marks and without the dots that mark an omission after a whole word."""
    return {word.removesuffix("...").strip("\"'") for word in text.split()}


def everything_in(value: object) -> str:
    """Return all values of a JSON document as text, one in a line."""
    if isinstance(value, Mapping):
        return "\n".join(map(everything_in, value.values()))
    if isinstance(value, list):
        return "\n".join(map(everything_in, value))
    return str(value)

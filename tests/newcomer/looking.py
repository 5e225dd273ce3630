"""What is looked for on a screen and in a page: cut texts, broken lines, amounts, advice, and requests elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

# Lines that hold a command or a path to be copied: a terminal breaks them where it ends, and copies them whole.
_TO_COPY = re.compile(r"(Report|Repeat|  ) +(strakes|/)")
_AMOUNTS = (
    r"phases took [\d.,]+ \w+",
    r"each rank (moved [\d.,]+ [KMGT]iB|worked on [\d,]+)",
    r"[\d,]+ files",
)
_PAGE_OF_PDF = re.compile(rb"/Type\s*/Page\b")
# A4 between the margins that the report sets (184 mm), in CSS pixels.
PAPER_WIDTH = 695
# Each piece of text by itself: where it is drawn, and what cuts it off. A box that can be scrolled cuts on paper only.
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
    """Return the texts of a page of which a part cannot be seen."""
    clipped: list[str] = page.evaluate(_CLIPPED, on_paper)
    return clipped


def pages_of(printed: bytes) -> int:
    """Return how many pages a PDF has."""
    return len(_PAGE_OF_PDF.findall(printed))


def requests_elsewhere(requests: Iterable[str], page: Path) -> list[str]:
    """Return what a page asked for besides itself."""
    return [request for request in requests if request != page.as_uri()]


def grades_in(text: str) -> list[str]:
    """Return the grades at the ends of the rows of a screen.

    >>> grades_in("  request size  1 MiB  sure\\n  files  not decided  -\\n")
    ['sure', '-']
    """
    return re.findall(r"  (sure|likely|alike|-)$", text, flags=re.MULTILINE)


def lacking_amounts(scope: str) -> list[str]:
    """Return what the scope of a summary does not tell of the amounts that were measured."""
    return [pattern for pattern in _AMOUNTS if not re.search(pattern, " ".join(scope.split()), re.IGNORECASE)]


def broken_lines(lines: Iterable[str], written: Iterable[str], columns: int) -> list[str]:
    """Return the lines that the terminal broke, and those beyond its edge; what is there to be copied may be broken."""
    return [line for line in lines if len(line) > columns] + [
        line for line in written if len(line) > columns and not _TO_COPY.match(line)
    ]


def cut_words(written: Sequence[str], known: set[str]) -> set[str]:
    """Return the words of a screen that are none of the known ones, or end in a sign of having been cut."""
    text = "\n".join(written)
    # Numbers are written for the screen, and not all of them are at its full width.
    shown = {word for word in words_of(text) if re.fullmatch(r"[A-Za-z-]{2,}[.,:;]?", word)}
    unknown = {word for word in shown if not {word, word.removesuffix(",")} & known}
    return unknown | {word for word in text.split() if "…" in word}


def words_of(text: str) -> set[str]:
    """Return all words, without the dots of a sentence that was left off at a whole word."""
    return {word.removesuffix("...").strip("\"'") for word in text.split()}


def everything_in(value: object) -> str:
    """Return all texts of a JSON document."""
    if isinstance(value, Mapping):
        return "\n".join(map(everything_in, value.values()))
    if isinstance(value, list):
        return "\n".join(map(everything_in, value))
    return str(value)

"""Pages of the documentation site fit into windows of 1280 and 420 pixels and show their pictures."""

from __future__ import annotations

import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from report.test_browser import CHROMIUM, browser

__all__ = ["browser"]
ROOT = Path(__file__).parents[2]
# Elements wider than the text column, except code blocks, which can be scrolled.
_TOO_WIDE = """() => {
  const column = document.querySelector('.rst-content').getBoundingClientRect();
  return [...document.querySelectorAll('.rst-content table, .rst-content img, .rst-content p, .rst-content td')]
    .filter(one => one.getBoundingClientRect().right > column.right + 2 || one.scrollWidth > one.clientWidth + 2)
    .map(one => `${one.tagName} ${one.textContent.slice(0, 60)}`);
}"""
_PICTURES_LACK = "() => [...document.images].filter(one => !one.naturalWidth).map(one => one.src)"


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium (Debian package chromium)")
def test_every_page_fits_its_windows_and_shows_its_pictures(browser: Any, tmp_path: Path) -> None:
    subprocess.run(["mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path], cwd=ROOT, check=True)
    page = browser.new_context(offline=True).new_page()
    troubles = {}
    for width, file in product((1280, 420), sorted(tmp_path.rglob("*.html"))):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(file.as_uri())
        if page.query_selector(".rst-content"):
            scrolled = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            found = [*page.evaluate(_TOO_WIDE), *page.evaluate(_PICTURES_LACK), *([scrolled] if scrolled > 2 else [])]
            if found:
                troubles[width, str(file.relative_to(tmp_path))] = found
    assert not troubles

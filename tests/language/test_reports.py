"""The translator accepts any text and leaves scripts and escaped text of a page unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.language import choose
from strakes.language.current import translator
from strakes.language.page import translate_page


@pytest.fixture(autouse=True)
def _english_afterwards() -> Iterator[None]:
    yield
    choose("en")


@given(st.text())
def test_any_text_can_be_translated(text: str) -> None:
    assert isinstance(translator("zh").translate(text), str)


def test_a_page_keeps_its_scripts_and_what_is_escaped() -> None:
    choose("zh")
    page = "<p title=\"too few runs\">too few runs</p><script>var a = 'too few runs'</script><b>&lt;i&gt;</b>"
    translation = "<p title=\"运行次数太少\">运行次数太少</p><script>var a = 'too few runs'</script><b>&lt;i&gt;</b>"
    assert translate_page(page) == translation

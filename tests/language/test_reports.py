"""Chinese reports of stored runs say in figures what the English ones say, and nothing in English sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strakes.errors import StrakesError
from strakes.findings.portrait import Portrait
from strakes.language import choose
from strakes.language.current import translator
from strakes.language.page import translate_lines, translate_page
from strakes.language.translator import COMMANDS
from strakes.language.width import columns, wrapped
from strakes.portraits.build import build_portrait
from strakes.report import summary
from strakes.report.guide import render_guide
from strakes.report.html import render_html
from strakes.store.published import PublishedRun

RUNS = sorted((Path(__file__).parents[1] / "store" / "runs").glob("*.json.gz"))
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?: ?(?:[KMGT]iB(?:/s)?|op/s|ms|us|ns|%))?")
BARE = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
# Three words in a row, none of them a name.
SENTENCE = re.compile(r"(?<![\w/.:=-])[A-Za-z]?[a-z]{2,}(?: [a-z]{2,}){2,}")
# What is left where a part of a sentence was taken for another message.
HALF = re.compile(r"%[)）] ?的 \d|[\u4e00-\u9fff](?: (?=[\u4e00-\u9fff])|[,;:] )|\b(?:ratio|bursts|Needed|Scope)\b")
PASSED_OVER = re.compile(r"<(script|style|pre|code)\b.*?</\1>|<!--.*?-->", re.DOTALL)


@pytest.fixture(autouse=True)
def _english_afterwards() -> Iterator[None]:
    yield
    choose("en")


def both(render: Callable[[], str]) -> tuple[str, str]:
    english = render()
    choose("zh")
    return english, render()


@cache
def portrait_of(path: Path) -> Portrait:
    return build_portrait(PublishedRun(path))


def texts(page: str) -> list[str]:
    return [" ".join(unescape(text).split()) for text in re.split(r"<[^>]*>", PASSED_OVER.sub("", page))]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_chinese_summary_has_the_figures_of_the_english_one_and_no_english_sentence(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    portrait = portrait_of(path)
    # With room for all of it: what is left out depends on how long the texts are.
    monkeypatch.setattr(summary, "MOST_LINES", 10_000)
    monkeypatch.setattr(summary, "_lines_of", lambda text, width, most: wrapped(text, width) or [""])
    english, chinese = both(lambda: summary.render_summary(portrait, width=100, colour=False))
    assert Counter(BARE.findall(english)) == Counter(BARE.findall(chinese))
    assert [line for line in chinese.splitlines() if columns(line) > 100 and not is_command(line)] == []
    assert [line for line in chinese.splitlines() if SENTENCE.search(line) and not is_command(line)] == []


def is_command(line: str) -> bool:
    return "strakes " in line or line.startswith("重复")


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_chinese_guide_has_every_figure_of_the_english_one_and_no_english_word(path: Path) -> None:
    portrait = portrait_of(path)
    english, chinese = both(lambda: render_guide(portrait))
    assert Counter(NUMBER.findall(english)) == Counter(NUMBER.findall(chinese))
    words = "\n".join(chinese.split("```")[::2])
    assert [line for line in words.splitlines() if SENTENCE.search(line) and "strakes " not in line] == []
    assert HALF.findall(words) == []


@pytest.mark.parametrize("name", ["survey", "tune", "import-ior-a"])
def test_a_chinese_page_has_every_figure_of_the_english_one_and_the_same_marks(name: str) -> None:
    portrait = portrait_of(next(path for path in RUNS if path.name.startswith(name)))
    english, chinese = both(lambda: render_html(portrait))
    assert '<html lang="zh-CN">' in chinese
    for before, after in zip(texts(english), texts(chinese), strict=True):
        assert Counter(NUMBER.findall(before)) == Counter(NUMBER.findall(after)), before
    assert re.findall(r"<(\w+)", PASSED_OVER.sub("", english)) == re.findall(r"<(\w+)", PASSED_OVER.sub("", chinese))


def test_the_last_value_of_a_sentence_is_no_part_of_a_shorter_message() -> None:
    sentence = "The ranks of 6 of 12 phases started more than 1.00 ms apart: at worst 6.11 ms (60 % of that phase), "
    chinese = translator("zh").translate(f"{sentence}rank 1 on vm last.")
    assert chinese.startswith("12 个阶段中有 6 个")
    assert "last" not in chinese


@pytest.mark.parametrize("noun", ["buffered writes", "buffered reads", "writes"])
def test_why_a_setting_is_advised_is_translated_whole(noun: str) -> None:
    told = "2.33 times 8 MiB transfers, buffered, 2 ranks, write [1.45 - 3.98] in 10 fresh runs"
    for rest in (
        f"it need not be larger: {noun} reach 90% of those at any other at the smallest setting measured",
        f"the smallest setting whose {noun} reach 90% of those at any other; {noun} are slower with 4 KiB transfers",
    ):
        assert not SENTENCE.search(translator("zh").translate(f"{rest}: {told}"))


FIGURES = st.one_of(
    st.integers(0, 10**9).map(lambda number: f"{number:,}"),
    st.floats(0.01, 1e6).map(lambda number: f"{number:.3g} MiB/s"),
    st.tuples(st.floats(0.1, 9), st.floats(9, 99)).map(lambda ends: f"[{ends[0]:.2f} - {ends[1]:.2f}]"),
    st.sampled_from(["/scratch/a b", "64 KiB", "node1", "file-create", "1.20 ms"]),
)
MESSAGES = [
    "After {0} runs the interval is ±{1}, wider than the ±{2} wanted (stopped by {3}){4}.",
    "{0} of {1} cells were not measured: the rest of the budget of {2} was estimated to be too short.",
    "the budget was too short for {0} runs",
    "{0} ranks need {1}, and strakes uses at most {2}",
    "Reads of newly written data ({0} per rank) are {1} times as fast as after dropping the cache.",
]


@given(st.sampled_from(MESSAGES), st.lists(FIGURES, min_size=5, max_size=5))
def test_values_stand_in_a_translation_as_they_are(message: str, values: list[str]) -> None:
    english = message.format(*values)
    chinese = translator("zh").translate(english)
    assert chinese != english
    for index, value in enumerate(values):
        assert f"{{{index}}}" not in message or value in chinese


@given(st.text())
def test_no_text_is_an_error_and_a_text_without_words_stays(text: str) -> None:
    assert isinstance(translator("zh").translate(text), str)


def test_an_error_is_translated_with_what_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    from strakes.cli.main import run

    choose("zh")
    assert run(["--language", "zh", "no-such-command"]) == StrakesError("").exit_status + 1
    assert "strakes: 错误: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("message", "copied"),
    [
        ("Start it: strakes lab up writes", "strakes lab up writes"),
        (
            "Give DIR: strakes accept read and write.toml DIR. Or answer from a stored run: --from RUN.",
            "read and write.toml DIR",
        ),
        (
            "strakes survey /scratch/reads and writes --budget 10m",
            "strakes survey /scratch/reads and writes --budget 10m",
        ),
        ("strakes import /data/writes/file --format ior", "strakes import /data/writes/file --format ior"),
        ("/data/writes and reads", "/data/writes and reads"),
        ("process 17 of server on metadata is using it", "server"),
        ("metadata is not up.", "metadata"),
        ("there is no run named survey", "survey"),
        (
            "Write, for example, 'p99 of create <= 20 ms in 99 % of minutes'",
            "'p99 of create <= 20 ms in 99 % of minutes'",
        ),
    ],
)
def test_commands_paths_and_names_stay(message: str, copied: str) -> None:
    assert copied in translator("zh").translate(message)


@pytest.mark.parametrize(
    ("text", "chinese"),
    [
        ("varied 3.1-fold, in bursts", "倍，短时突发"),
        ("file layout, writes = a file per process", "文件布局，写 = 每个进程一个文件"),
        (
            "phase 1 (create) items: 5 in A, 6 in B; phase 2 (read) items: 5 in A, 6 in B",
            "items：A 中为 5，B 中为 6；阶段 2",
        ),
        (
            "1.31–2.5 times (90 %): ratio of 4 KiB transfers, 2 ranks, read to 1 MiB transfers, read",
            "1.31–2.5 倍（90 %）：4 KiB 传输，2 个 rank，读与 1 MiB 传输，读的比值",
        ),
        ("1.15 times [1.09 - 1.20] (98 %): ratio to 8 MiB transfers, write", "1.15 倍 [1.09 - 1.20]（98 %）：相对"),
        ("0.95–1.98 times (93.6 %): ratio to 1 MiB transfers, 2 ranks, 30 fresh paired runs, in bursts", "，短时突发"),
        ("one client measured: 1 rank on node n; the scope is what that tool reports", "上的 1 个 rank；"),
        ("This says nothing about more clients or more data.", "这不能说明更多客户端或更多数据时的情况。"),
    ],
)
def test_what_is_put_together_is_translated_in_its_parts(text: str, chinese: str) -> None:
    assert chinese in translator("zh").translate(text)


def test_columns_of_a_table_begin_where_they_did() -> None:
    choose("zh")
    lines = translate_lines("error     median    runs\nwhere     7         8").split("\n")
    assert lines == ["错误      中位数    次数", "位置      7         8"]


def test_every_command_is_known_as_one() -> None:
    from strakes.cli.main import COMMANDS as OF_THE_COMMAND_LINE

    assert set(COMMANDS) == set(OF_THE_COMMAND_LINE)


def test_a_page_keeps_its_scripts_and_what_is_escaped() -> None:
    choose("zh")
    page = "<p title=\"too few runs\">too few runs</p><script>var a = 'too few runs'</script><b>&lt;i&gt;</b>"
    translation = "<p title=\"运行次数太少\">运行次数太少</p><script>var a = 'too few runs'</script><b>&lt;i&gt;</b>"
    assert translate_page(page) == translation

from __future__ import annotations

from dataclasses import replace

from report.example import example_portrait
from strakes.model.portrait import Reference, RunWarning, SkippedCell
from strakes.report.answer_text import answer_lines
from strakes.report.notices import notices, omissions, touching
from strakes.report.sections import foremost, sections
from strakes.report.tables import tables_of


def test_settings_that_all_cells_share_are_above_their_table() -> None:
    cells = [cell for cell in example_portrait().cells if cell.study == "transfer-size" and ":write" in cell.id]
    (table,) = tables_of(cells)
    assert table.shared["layout"] == "file per process" and table.factors == ("transfer_bytes",)


def test_warnings_of_one_kind_are_one_notice_and_those_on_headline_figures_come_first() -> None:
    gathered = notices(example_portrait())
    # The last two warnings concern no headline figure and no recommendation.
    assert [notice.code for notice in gathered] == ["background-load", "cache-suspect", "impossible-rate", "few-runs"]
    reached = next(notice for notice in gathered if notice.code == "few-runs")
    assert [len(cells) for _, cells in reached.said] == [1, 2]
    assert reached.text.startswith("For example: ") and reached.extent == "3 cells"
    assert gathered[0].extent == "whole run"


def test_a_notice_of_a_figure_counts_only_the_cells_of_that_figure() -> None:
    warning = RunWarning("cache-suspect", "text", "remedy", ("a", "b", "c"))
    (notice,) = touching(
        [warning, RunWarning("other", "text", "remedy", ("d",)), RunWarning("all", "text", "remedy")], {"a", "b"}
    )
    assert (notice.code, notice.cells) == ("cache-suspect", ("a", "b"))


def test_skipped_cells_are_gathered_by_reason() -> None:
    skipped = [SkippedCell("s", {"data_bytes": size, "ranks": 4}, "the budget") for size in (1024, 2048)] + [
        SkippedCell("s", {}, "no")
    ]
    expected = [("the budget", ("ranks 4", "data 1 KiB", "data 2 KiB")), ("no", ())]
    assert [(omission.reason, omission.settings) for omission in omissions(skipped)] == expected


def test_every_study_has_one_section_and_every_warned_cell_its_notice_there() -> None:
    portrait = example_portrait()
    parts = sections(portrait)
    assert [part.study for part in parts] == list(dict.fromkeys(cell.study for cell in portrait.cells))
    shown = {cell for part in parts for plot in part.plots for notice in plot.notices for cell in notice.cells}
    shown |= {cell for part in parts for notice in part.notices for cell in notice.cells}
    assert shown == {cell for warning in portrait.warnings for cell in warning.cells}


def test_a_study_without_figure_still_shows_its_warnings_cells_and_findings() -> None:
    portrait = replace(example_portrait(), figures=())
    part = next(part for part in sections(portrait) if part.study == "transfer-size")
    assert not part.plots and part.findings
    assert part.tables and [notice.code for notice in part.notices] == ["cache-suspect"]


def test_the_foremost_findings_include_every_study_before_any_study_has_two() -> None:
    first = example_portrait().findings[0]
    many = [replace(first, study=study, statement=f"{study}{number}") for study in "ab" for number in range(3)]
    chosen, more = foremost(many, 3)
    assert [finding.statement for finding in chosen] == ["a0", "a1", "b0"] and more == 3
    assert foremost([], 3) == ([], 0)


def test_a_line_computed_from_our_own_values_is_not_called_published() -> None:
    portrait = example_portrait()
    figure = portrait.figures[0]
    law = Reference("law", "A law fitted to the medians.", label="law", points=((65536.0, 2e8),))
    plot = sections(replace(portrait, figures=(replace(figure, references=(*figure.references, law)),)))[0].plots[0]
    assert plot.computed == ("A law fitted to the medians.",)
    assert plot.published and not any("fitted" in text for text, _ in plot.published)


def test_answers_on_writes_and_reads_that_are_alike_share_a_line() -> None:
    portrait = example_portrait()
    answer = portrait.answers[0]
    writes = replace(answer, id="nodes-write", title="nodes, writes")
    reads = replace(answer, id="nodes-read", title="nodes, reads")
    lines = answer_lines(replace(portrait, answers=(writes, reads)))
    assert [line.title for line in lines] == ["nodes, writes and reads"]
    lines = answer_lines(replace(portrait, answers=(writes, replace(reads, chosen="4 MiB"))))
    assert [line.title for line in lines] == ["nodes, writes", "nodes, reads"]

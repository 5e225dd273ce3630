"""Write the results of a run as a self-contained HTML file, which needs no network, server or other file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from strakes.base.foreign_text import escaped
from strakes.base.language import current, gettext, ngettext
from strakes.model import setting_text
from strakes.model.literature import SOURCES, published_values, scale, statements
from strakes.model.portrait import Portrait
from strakes.report import numbers
from strakes.report.answer_text import answer_lines, legend
from strakes.report.facts import ended_early, facts_of, headlines_of, no_headline, title_of
from strakes.report.next_steps import next_step
from strakes.report.notices import FIRST, notices, omissions
from strakes.report.numbers import flat_facts, percent
from strakes.report.sections import VERDICTS, Section, foremost, sections
from strakes.report.words import explained, title_of_warning

if TYPE_CHECKING:
    from jinja2 import Environment

# Language -> value of HTML's attribute ``lang``.
_LOCALES = {"en": "en", "zh": "zh-CN"}
PLOTLY = "plotly-cartesian.min.js"
MOST_FINDINGS = 5  # Maximum number of findings of each kind on top of the page. Twice as many fill a screen.


def render_html(portrait: Portrait) -> str:
    """Return the report as HTML text. The file must be written in UTF-8."""
    parts = sections(portrait)
    settled = [one for one in portrait.findings if one.verdict in ("measured", "holds", "does-not")]
    cited = {reference.source for figure in portrait.figures for reference in figure.references}
    page, plotly = resource("templates", "page.js"), resource("vendor", PLOTLY)
    facts = {"Run": portrait.run, "Target": portrait.target, "Machine": portrait.environment}
    headlines = headlines_of(portrait)
    titles = {"good": "Strengths", "bad": "Weaknesses", "neutral": "Other findings"}
    toned = {tone: [one for one in settled if one.tone == tone] for tone in titles}
    return render_page(
        "report.html.j2",
        title=title_of(portrait),
        ended=ended_early(portrait),
        facts=facts_of(portrait),
        no_headline=no_headline(portrait),
        headlines=headlines,
        doubts=list(dict.fromkeys(code for _, cell in headlines for code in cell.warnings)),
        amounts=[part[:1].upper() + part[1:] for part in portrait.scope.split("; ")],
        groups=[(gettext(titles[tone]), *foremost(of, MOST_FINDINGS)) for tone, of in toned.items() if of],
        open=foremost([one for one in portrait.findings if one not in settled], MOST_FINDINGS),
        answers=answer_lines(portrait),
        legend=legend(),
        step=next_step(portrait),
        published=published(portrait),
        measured=bool(portrait.cells),
        sections=parts,
        notices=notices(portrait),
        first=FIRST,
        omissions=omissions(portrait.skipped),
        confidences=gettext(" or ").join(dict.fromkeys(percent(cell.confidence) for cell in portrait.cells)),
        sources=[(name, gettext(source.paper)) for name, source in SOURCES.items() if name in cited],
        environment={gettext(name): list(flat_facts(group)) for name, group in facts.items() if group},
        reproduce=portrait.reproduce,
        plotly=plotly,
        page=page,
        drawings=_drawings(parts),
        policy=_policy((plotly, page)),
        licence=resource("vendor", "LICENSE"),
    )


def published(portrait: Portrait) -> dict[str, object]:
    """Return the template's values about the reproduced publication, or {} if the run reproduces none."""
    source = SOURCES.get(str(portrait.run.get("name", "")).partition(" ")[0])
    if portrait.run.get("kind") != "reproduce" or source is None:
        return {}
    return {
        "source": source.name,
        "paper": gettext(source.paper),
        "scale": scale(source, [portrait]),
        "prefix": gettext("{source}, published: {what}", source=source.name, what=""),
        "rows": published_values(portrait, source.name),
        "statements": statements(portrait, source.name),
        "left_out": source.left_out(against="against" in portrait.target),
    }


def _drawings(parts: Sequence[Section]) -> str:
    drawn = {f"figure-{plot.number}": plot.drawing for part in parts for plot in part.plots}
    drawings = {name: {"data": one.data, "layout": one.layout} for name, one in drawn.items() if one is not None}
    finite = json.loads(json.dumps(_visible(drawings)), parse_constant=lambda _: None)  # nothing is drawn at infinity
    text = json.dumps(finite, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return value if hasattr(value, "__html__") else escaped(value, kept="\n\r\t\u00a0")
    if isinstance(value, dict):
        return {_visible(key): _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list | tuple) else value


def _policy(scripts: Iterable[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    images = "style-src 'unsafe-inline'; img-src data: blob:"
    return f"default-src 'none'; script-src {hashes}; {images}; base-uri 'none'; form-action 'none'"


def render_page(template: str, **values: object) -> str:
    """Return a page from a template, with the common style sheet, in the current language."""
    style, locale = resource("templates", "report.css"), _LOCALES[current()]
    return environment(_visible).get_template(template).render(style=style, locale=locale, **values)


@cache
def environment(escape: Callable[[Any], Any], *, autoescape: bool = True) -> Environment:
    """Return the Jinja environment of the templates. ``escape``: function applied to each inserted value."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(lambda name: resource("templates", name)),
        autoescape=autoescape,
        finalize=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= (
        vars(numbers) | vars(setting_text) | {"_": gettext, "ngettext": ngettext, "verdicts": VERDICTS}
    )
    environment.filters["explained"] = explained
    environment.filters["warning"] = title_of_warning
    environment.filters["unbroken"] = lambda text: str(text).replace(" %", "\u00a0%")
    return environment


@cache
def resource(*names: str) -> str:
    """Return the text of a file of this package, such as the JavaScript library plotly."""
    return files("strakes.report").joinpath(*names).read_text(encoding="utf-8")

"""The language of this process, English by default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from unicodedata import east_asian_width

ENGLISH = "en"
LANGUAGES = (ENGLISH, "zh")
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")  # Locale variables, the strongest first (locale(7)).
_chosen = [ENGLISH]


def wanted(environment: Mapping[str, str]) -> str:
    """Return the language, "en" or "zh", that the locale variables of an environment select.

    >>> wanted({"LANG": "zh_CN.UTF-8"}), wanted({"LANG": "zh_CN", "LC_ALL": "C"}), wanted({"LANG": "fr_FR.UTF-8"})
    ('zh', 'en', 'en')
    """
    locale = next((environment[name] for name in _VARIABLES if environment.get(name)), "")
    language = locale.partition("_")[0].partition(".")[0].lower()
    return language if language in LANGUAGES else ENGLISH


def choose(language: str) -> None:
    """Set the language of this process."""
    _chosen[0] = language


def current() -> str:
    """Return the language in use."""
    return _chosen[0]


@contextmanager
def english() -> Iterator[None]:
    """Use English until the end of a ``with`` block."""
    before = current()
    choose(ENGLISH)
    try:
        yield
    finally:
        choose(before)


def gettext(message: str, **values: object) -> str:
    """Return the translation of an English message, or the message itself. ``values`` replace its {placeholders}.

    >>> gettext("{count} more in the report", count=3)
    '3 more in the report'
    """
    if current() == ENGLISH:
        return message.format_map(values) if values else message
    text = catalogue(current()).get(message, message)
    return _joined(text, values).format_map(values) if values else text


def _joined(text: str, values: Mapping[str, object]) -> str:
    """Remove blanks between a translation and its values if the adjacent character of the value is Chinese.

    >>> _joined("写 {size} 的 {what} 时", {"size": "4 KiB", "what": "文件"})
    '写 {size} 的{what}时'
    """
    for name, value in values.items():
        if isinstance(value, str) and value:
            first, last = (east_asian_width(letter) in "WF" for letter in (value[0], value[-1]))
            text = text.replace(f" {{{name}}}", f"{{{name}}}") if first else text
            text = text.replace(f"{{{name}}} ", f"{{{name}}}") if last else text
    return text


def ngettext(one: str, several: str, count: int, **values: object) -> str:
    """Translate a message in singular (``one``) or plural (``several``). ``{count}`` becomes the number.

    >>> ngettext("{count} run", "{count} runs", 1), ngettext("{count} run", "{count} runs", 2000)
    ('1 run', '2,000 runs')
    """
    return gettext(one if count == 1 else several, count=f"{count:,}", **values)


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Return English message -> translation, read from the language's .po file."""
    from importlib.resources import files

    from babel.messages.pofile import read_po

    with files("strakes.base").joinpath(f"{language}.po").open("rb") as stream:
        messages = [message for message in read_po(stream, locale=language) if message.id]
    found: dict[str, str] = {}
    for message in messages:
        text = message.string if isinstance(message.string, str) else (message.string or [""])[0]
        found |= dict.fromkeys((message.id,) if isinstance(message.id, str) else message.id, text)
    return {identifier: text for identifier, text in found.items() if text}

"""The language of this process: chosen by --language or the environment, English unless told."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from strakes.errors import BadInputError

if TYPE_CHECKING:
    from strakes.language.translator import Translator

ENGLISH = "en"
LANGUAGES = (ENGLISH, "zh")
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set decides, as everywhere
_chosen = [ENGLISH]


def wanted(environment: Mapping[str, str]) -> str:
    """Return the language that the locale of an environment asks for.

    >>> wanted({"LANG": "zh_CN.UTF-8"}), wanted({"LANG": "zh_CN", "LC_ALL": "C"}), wanted({"LANG": "fr_FR.UTF-8"})
    ('zh', 'en', 'en')
    """
    locale = next((environment[name] for name in _VARIABLES if environment.get(name)), "")
    language = locale.partition("_")[0].partition(".")[0].lower()
    return language if language in LANGUAGES else ENGLISH


def choose(language: str) -> None:
    """Take a language for every text from now on. Raises BadInputError for one that is not there."""
    if language not in LANGUAGES:
        raise BadInputError(f"no language {language}", remedy=f"One of: {', '.join(LANGUAGES)}.")
    _chosen[0] = language


def current() -> str:
    """Return the language in use."""
    return _chosen[0]


def translate(text: str) -> str:
    """Return a text in the language in use; as it is where there is no translation.

    >>> translate("too few runs")
    'too few runs'
    """
    return text if current() == ENGLISH else translator(current()).translate(text)


@cache
def translator(language: str) -> Translator:
    """Return the translator from English; reads its catalogue the first time."""
    from importlib.resources import files

    from babel.messages.pofile import read_po

    from strakes.language.translator import Translator

    messages: dict[str, str] = {}
    # In order of their names: "words", which are chosen by hand, hold where others differ.
    for file in sorted(files("strakes.language").joinpath(language).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".po"):
            with file.open("rb") as stream:
                catalogue = read_po(stream, locale=language)
            messages |= {str(message.id): str(message.string) for message in catalogue if message.id and message.string}
    return Translator(messages)

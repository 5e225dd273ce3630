"""Every message of the rooms that are translated has its translation, with the same places for values."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from strakes.language.current import translator
from strakes.language.translator import is_neutral


def module_of(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


messages = module_of(Path(__file__).resolve().parents[2] / "packaging" / "messages.py")
PLACE = re.compile(r"\{\d+\}")
ROOMS = messages.rooms()
NUMBER = re.compile(r"\{\d+\}|(?<![A-Za-z{\d])\d+(?:[.,]\d+)*")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.mark.parametrize("room", ROOMS)
def test_every_message_of_a_room_has_its_translation(room: str) -> None:
    catalogue = messages.read(messages.catalogue_of(room))
    translated = {message.id for message in catalogue if message.id and message.string}
    wanted = set(messages.messages(room))
    assert sorted(wanted - translated) == [], "./dev messages lists them in the catalogue: translate them"
    assert sorted(translated - wanted) == [], "./dev messages leaves out what is no message any more"


@pytest.mark.parametrize("room", [*ROOMS, messages.WORDS])
def test_a_translation_has_the_places_and_numbers_of_its_message(room: str) -> None:
    for message in messages.read(messages.catalogue_of(room)):
        if message.id:
            assert sorted(NUMBER.findall(str(message.id))) == sorted(
                NUMBER.findall(str(message.string).replace("!}", "}"))
            ), message.id


def test_words_are_in_the_sources() -> None:
    sources = "\n".join(path.read_text() for path in messages.PACKAGE.rglob("*.py"))
    templates = "\n".join(path.read_text() for path in messages.PACKAGE.rglob("*.j2"))
    engine = "\n".join(path.read_text() for path in (messages.CHECKOUT / "engine").rglob("*.cpp"))
    # Names of studies become headings when they are written.
    known = set(re.findall(r"[a-z]+", (sources + templates + engine).lower()))
    words = messages.read(messages.catalogue_of(messages.WORDS))
    gone = [message.id for message in words if not known.issuperset(re.findall(r"[a-z]+", str(message.id).lower()))]
    assert gone == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_message_with_values_is_found_again(room: str) -> None:
    chinese = translator("zh")
    for message in messages.read(messages.catalogue_of(room)):
        english = str(message.id)
        if not message.id or is_neutral(english) or not CHINESE.search(str(message.string)):
            continue
        # 7 for the first place, 17 for the second, and so on.
        filled = re.sub(r"\{(\d+)\}", lambda place: f"{10 * int(place[1]) + 7}", english)
        translation = chinese.translate(filled)
        assert CHINESE.search(translation), f"{filled!r} gave {translation!r}"
        values = [f"{10 * number + 7}" for number in range(len(PLACE.findall(english)))]
        assert [value for value in values if value not in translation] == [], f"{filled!r} gave {translation!r}"


def test_strings_of_the_sources_are_told_from_keys() -> None:
    source = 'def f():\n    """Not this."""\n    return {"per_call": f"{a} of {b:,} cells" + " were left out"}\n'
    assert list(messages.python_messages(source)) == ["{0} of {1} cells were left out"]


def test_short_branches_make_a_message_each() -> None:
    source = "f\"{n} run{'s' if n > 1 else ''} of it\""
    assert list(messages.python_messages(f"x = {source}")) == ["{0} runs of it", "{0} run of it"]


def test_every_room_with_messages_has_a_catalogue() -> None:
    places = {path.stem for path in messages.PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    untranslated = sorted(place for place in places - set(ROOMS) - {"__init__", "__main__"} if messages.messages(place))
    assert untranslated == [], "./dev messages ROOM makes a catalogue"


def test_every_page_of_a_report_is_a_template_of_a_room() -> None:
    pages = {str(path.relative_to(messages.PACKAGE)) for path in messages.PACKAGE.glob("report/templates/*.html.j2")}
    assert pages == {template for templates in messages.TEMPLATES.values() for template in templates}


def test_a_message_without_translation_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test of all rooms rests on."""
    monkeypatch.setattr(messages, "CATALOGUES", tmp_path)
    messages.update("new", {"the disk is full": ["new.py"], "{0} files are left": ["new.py"]})
    catalogue = messages.read(messages.catalogue_of("new"))
    assert [message.id for message in catalogue if message.id and not message.string] == [
        "the disk is full",
        "{0} files are left",
    ]
    assert messages.rooms() == ["new"]

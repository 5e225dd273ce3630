"""Read, change and restore knobs. Each change is recorded in a journal before it is made."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError
from strakes.base.files import default_root
from strakes.base.foreign_text import command_line
from strakes.control import knob_hold as hold
from strakes.control.knob import Knob, catalogue, find
from strakes.control.knob_bindings import ROLES, Bindings, ServerUnreadError, knobs_of, remembering
from strakes.control.knob_journal import KnobJournal
from strakes.control.knob_place import KnobPlace, PlaceGoneError, values_in_force
from strakes.control.knob_restore import Restored, close_change, left_named, settle, shown
from strakes.runs.watchdog import ENDING_S, write_error
from strakes.targets.command import CommandCutOffError, Runner
from strakes.targets.target import Target

_restoring = threading.Lock()  # Keeps the main thread and the watchdog from restoring settings at the same time.
Values = Mapping[str, str | float]
Plan = Sequence[tuple[Knob, str, tuple[KnobPlace, ...]]]


@dataclass(frozen=True)
class Reading:
    """Values of a knob. ``values``: value at each place (such as a server), or None for a place without a value.

    ``why``: reason for missing values. ``unread``: error message about a server that could not be read.
    """

    knob: Knob
    values: Mapping[str, str | None] = field(default_factory=dict)
    why: str = ""
    unread: ServerUnreadError | None = None


@dataclass(frozen=True)
class Effective:
    """Values of a knob after a change. ``in_force``: value that each daemon uses."""

    knob: Knob
    wanted: str
    values: Mapping[str, str | None]
    in_force: Mapping[str, str] = field(default_factory=dict)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return a text for each place or daemon whose value differs from ``wanted``."""
        knob, cause = self.knob, "the daemon's own configuration or one of its options takes precedence"
        found = [(f"{name} is", value, knob.adjusts) for name, value in self.values.items()]
        found += [(f"{name} uses", value, cause) for name, value in self.in_force.items()]
        return tuple(
            f"{which} {knob.shown(value)} instead of {knob.shown(self.wanted)}{f': {why}' if why else ''}"
            for which, value, why in found
            if value is None or knob.canonical(value) != self.wanted
        )


class Change(dict[str, Effective]):
    """Results of a change: name of a setting -> its values. ``restored``: results of restoring the settings.

    ``moved``: a text for each other setting that the system has changed as a side effect.
    """

    restored: tuple[Restored, ...] = ()
    moved: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return a text for each value that differs from the wanted value, for all settings."""
        return tuple(remark for effective in self.values() for remark in effective.remarks)


def read(target: Target, names: Sequence[str] = ()) -> tuple[Reading, ...]:
    """Return the values of the knobs ``names``, or of all knobs of the file system.

    Raises BadInputError for an unknown name, EnvironmentLacksError if --servers was given and no server can be read.
    """
    known = knobs_of(target, catalogue())
    chosen = tuple(find(name, known) for name in names) if names else known
    ask = remembering(target.run, target.servers)
    bindings = Bindings(target, ask)
    readings = []
    for knob in chosen:
        try:
            readings.append(Reading(knob, {place.name_with_host: place.read(ask) for place in bindings.places(knob)}))
        except ServerUnreadError as error:
            readings.append(Reading(knob, why=f"server {error.where}: {error.why}", unread=error))
        except StrakesError as error:
            readings.append(Reading(knob, why=error.why or error.what))
    unread = [reading.unread for reading in readings if reading.knob.where in ROLES and not reading.knob.by_hand]
    if unread and all(error is not None and error.everywhere for error in unread) and unread[0]:
        raise unread[0]
    return tuple(readings)


@contextmanager
def changed(target: Target, values: Mapping[str, str | float], *, store: Path | None = None) -> Iterator[Change]:
    """Change knobs while the ``with`` body runs, and restore them afterwards.

    Yields the values after the change. Raises BadInputError before any change if a value is invalid or a knob cannot be
    changed. Raises MeasurementError at the end if a value cannot be restored. A value that somebody else has changed
    meanwhile is not restored.
    """
    root = store or default_root()
    with _journaled(target, root, _plan(target, values)) as (journal, change):
        yield change
        left = _put_back(target, root, journal, change)
    if left:
        where = ", ".join(restored.place for restored in left)
        what, remedy = "some settings could not be restored", "Try again with: strakes knobs restore"
        raise MeasurementError(what, where=where, why=left[0].why, remedy=remedy)


def set_values(target: Target, values: Values, show: Callable[..., object] = bool, store: Path | None = None) -> Change:
    """Change knobs until ``strakes knobs restore`` is called. If a change or ``show`` fails, all changes are undone."""
    with _journaled(target, store or default_root(), _plan(target, values)) as (journal, change):
        try:
            show(change)
        except BaseException:
            write_error(("strakes: the settings are put back, because their new values could not be printed",))
            raise
        journal.note("held")
    return change


@contextmanager
def _journaled(target: Target, root: Path, plan: Plan) -> Iterator[tuple[KnobJournal, Change]]:
    journal = KnobJournal.begin(root, str(target.path), command_line())
    change = Change()

    with left_named(journal, lambda: _put_back(target, root, journal, change)):
        try:
            for knob, wanted, places in plan:
                for place in places:
                    change.moved += _change_place(knob, place, wanted, journal, target)
            for knob, wanted, places in plan:
                given = {place.name_with_host: place.read(target.run) for place in places}
                change[knob.name] = Effective(knob, wanted, given, in_force(target, knob))
            yield journal, change
        except BaseException:
            _put_back(target, root, journal, change)
            raise


def _put_back(target: Target, root: Path, journal: KnobJournal, change: Change) -> list[Restored]:
    if not _restoring.acquire(timeout=ENDING_S):
        return []
    try:
        done = settle(root, journal, ask=target.run)
    finally:
        _restoring.release()
    write_error(f"strakes: {restored}" for restored in done if restored.outcome == "changed by others")
    change.restored = (*change.restored, *done)
    return [restored for restored in done if not restored.done]


def _plan(target: Target, values: Mapping[str, str | float]) -> Plan:
    known = knobs_of(target, catalogue())
    bindings = Bindings(target)
    plan = []
    for name, value in values.items():
        knob = find(name, known)
        wanted = knob.parse(value)
        if knob.restart and not knob.by_hand:
            why = f"the setting needs a restart of {knob.restart}, and strakes does not restart it"
            remedy = f"Change it by hand: {knob.how_to_set}"
            raise BadInputError(f"strakes cannot change {knob.name}", why=why, remedy=remedy)
        places = bindings.places(knob)
        if knob.root and not any(place.host for place in places) and os.geteuid() != 0:
            raise EnvironmentLacksError(f"{knob.name} needs root", why=knob.meaning, remedy="Run the command as root.")
        plan.append((knob, wanted, places))
    return sorted(plan, key=lambda each: not each[0].moves)  # First change settings that affect other settings.


def _change_place(knob: Knob, place: KnobPlace, wanted: str, journal: KnobJournal, target: Target) -> tuple[str, ...]:
    """Change a setting in one place, such as a server. Return a text for each setting changed as a side effect."""
    ask = target.run
    before = place.read(ask)
    option, implied = knob.unset_sets or ("", "")
    why = knob.not_from[1] if knob.not_from and before == knob.not_from[0] else ""
    if before is None and option and replace(place, unset_words=(*place.unset_words[:-1], option)).read(ask) != implied:
        unset = shlex.join(place.unset_words)
        why = f"to put that back, {unset} may also set {option} to {implied}. First set it by hand to what it is now"
    if why:
        what = f"{knob.name} cannot be changed while its value is {shown(before)}"
        raise BadInputError(what, where=place.name, why=why)
    # Record a knob even if it already has the wanted value, because the record keeps other commands from changing it.
    already = before is not None and knob.canonical(before) == wanted
    beside: dict[int, tuple[KnobPlace, str | None]] = {}
    for moved in map(place.beside, () if already else knob.moves):
        with suppress(PlaceGoneError):
            value = moved.read(ask)
            beside[_record(moved, value, value, journal, target)] = moved, value
    number = _record(place, before, before if already else wanted, journal, target)
    try:
        if not already:
            place.write(wanted, ask)
    except CommandCutOffError:
        raise
    except StrakesError:
        if (now := place.read(ask)) == before:
            close_change(journal, number, place, "unchanged", before)
        else:
            journal.note("did", number=number, effective=now)
        raise
    journal.note("did", number=number, effective=place.read(ask))
    texts = []
    for each, (moved, value) in beside.items():
        now = moved.read(ask)
        journal.note("did", number=each, effective=now)
        if now != value:
            texts.append(f"{moved.name_with_host} was {shown(value)} and is now {shown(now)}, changed by the system")
    return tuple(texts)


def _record(place: KnobPlace, before: str | None, wanted: str | None, journal: KnobJournal, target: Target) -> int:
    number = journal.will(place, before, wanted)
    try:
        hold.take(place, before, journal.root, journal.path, str(target.path))
        # Until the record existed, another strakes process could still restore an old value, so read the value again.
        if (now := place.read(target.run)) != before:
            why, where = f"it was {shown(before)} and is {shown(now)}", place.name_with_host
            raise BadInputError(f"{place.knob} is being changed by somebody else", where=where, why=why)
    except StrakesError:
        close_change(journal, number, place, "unchanged", before)
        raise
    return number


def in_force(target: Target, knob: Knob, ask: Runner | None = None) -> Mapping[str, str]:
    """Return daemon -> value in use, or {} if the daemons do not report their values."""
    with suppress(StrakesError):
        if knob.in_force and (done := (ask or target.run)(Bindings(target).words(knob, knob.in_force))).status == 0:
            return values_in_force(done.stdout, knob.name)
    return {}

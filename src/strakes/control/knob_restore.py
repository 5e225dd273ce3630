"""Restore the old values of knobs. A knob that somebody else has changed meanwhile is left alone."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path

from strakes.base.errors import StrakesError
from strakes.base.processes import commands_of, lock_holder
from strakes.control.knob_hold import KnobRecord, give_back, hand_over, original, other_store, records
from strakes.control.knob_journal import JournalEntry, JournalState, KnobJournal, Outcome, Owner, open_journals, sweep
from strakes.control.knob_place import KnobPlace, PlaceGoneError
from strakes.model.record import to_record
from strakes.runs.watchdog import before_forced_end
from strakes.targets.command import DEFAULT_TIMEOUT_S, CommandTimeout, Runner, run

_COMMANDS_END_S = 20.0
_TICK_S = 0.05
_AGAIN_S = 300.0  # Minimum seconds between automatic attempts to restore the settings in a journal.


@dataclass(frozen=True)
class Restored:
    """Result of restoring one changed setting. ``outcome``: a word, such as "restored". ``why``: the reason."""

    journal: str
    knob: str
    place: str
    before: str | None
    value: str | None
    outcome: str
    why: str = ""

    @property
    def done(self) -> bool:
        """Return whether no further attempt to restore the setting is needed."""
        return self.outcome not in ("not put back", "in use")

    @property
    def good(self) -> bool:
        """Return whether a setting was restored, is deliberately kept by the user, or no longer exists."""
        return self.outcome in ("restored", "unchanged", "gone", "kept")

    def __str__(self) -> str:
        outcome = {
            "restored": f"put back to {shown(self.before)}",
            "unchanged": f"has its old value {shown(self.before)}",
            "changed by others": f"left at {shown(self.value)}, not put back to {shown(self.before)}",
            "not put back": f"not put back to {shown(self.before)}",
            "kept": f"stays at {shown(self.value)} (before: {shown(self.before)})",
        }.get(self.outcome, self.outcome)
        where = f" ({self.place})" if self.place != self.knob else ""
        return f"{self.knob}: {outcome}{f': {self.why}' if self.why else ''}{where}"


def restore(root: Path, *, target: str | None = None, keep: bool = False, ask: Runner = run) -> tuple[Restored, ...]:
    """Undo the changes of ``strakes knobs set`` and of ended processes: newest first, those of lost journals last.

    ``target``: restore only changes for this directory. ``keep``: close the journals without restoring values.
    """
    sweep(root)
    done: list[Restored] = []
    for state in reversed(open_journals(root)[0]):
        if target in (None, state.target):
            done += restore_journal(root, state, keep=keep, ask=ask)
    records_left = [each for each in lost(root) if target in (None, each.target)]
    # Restoring a setting may change another setting, so restore all settings twice.
    for record, before in zip(records_left, [_restore_lost(each, keep, ask) for each in records_left], strict=True):
        now = _restore_lost(record, keep, ask)
        if now.done:
            give_back(record.place, root)
        done.append(before if before.done and now.outcome == "unchanged" else now)
    return tuple(done)


def lost(root: Path) -> list[KnobRecord]:
    """Return the records of changed settings whose journal is lost: no journal contains the change."""
    # A change may begin or end during the search, so count only records that exist before and after the search.
    found, _ = records(root)
    known = {entry.place.key for state in open_journals(root)[0] for entry in state.open_entries}
    return [record for record in records(root)[0] if record in found and record.place.key not in known]


def _user_of(owner: Owner, life: str, journal: Path = Path()) -> str:
    if life == "elsewhere":
        return f"by {owner}: restore it on its host"
    process = lock_holder(journal) or owner.pid
    return f"by process {process}, which is still running; if it is suspended: kill -CONT {process}"


def _restore_lost(record: KnobRecord, keep: bool, ask: Runner) -> Restored:
    place, before, value, why = record.place, record.before, None, ""
    outcome = "kept"
    if (life := record.owner.life()) != "dead":
        outcome, why = "in use", _user_of(record.owner, life)
    elif not keep:
        try:
            value = found = place.read(ask)
            if found != before:
                place.write(before, ask)
                value = place.read(ask)
            outcome = "unchanged" if found == before else "restored" if value == before else "not put back"
        except PlaceGoneError as error:
            outcome, why = "gone", error.why
        except StrakesError as error:
            outcome, why = "not put back", "; ".join(filter(None, (error.why or error.what, error.remedy)))
    return Restored("", place.knob, place.name, before, value, outcome, why)


def restore_journal(root: Path, state: JournalState, *, keep: bool = False, ask: Runner = run) -> list[Restored]:
    """Undo the changes in a journal, unless a process works with it."""
    life = state.life()
    journal = KnobJournal.claim(root, state) if life == "dead" else None
    if journal is None:
        why, left = _user_of(state.owner, life, state.path), state.open_entries if state.path.exists() else ()
        return [_outcome(state.id, entry, "in use", None, why) for entry in left]
    with left_named(journal, bool):
        for number in _left_commands(state.owner, _COMMANDS_END_S):
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)
        return settle(root, journal, keep=keep, ask=ask)


@contextmanager
def left_named(journal: KnobJournal, undo: Callable[[], object]) -> Iterator[None]:
    """Release a journal after a ``with`` block. If the block fails, name the settings that are still changed."""
    words = partial(still_changed, journal)
    try:
        with before_forced_end(words, undo):
            yield
    except BaseException as error:
        if left := words():
            error.add_note(left)
        raise
    finally:
        journal.release()


def still_changed(journal: KnobJournal) -> str:
    """Return a text that names the settings in a journal that are not put back, or ""."""
    state = journal.state()
    still = [
        f"{entry.place.name_with_host} {'is' if entry.known else 'may be'} "
        f"{shown(entry.effective if entry.known else entry.wanted)} (before: {shown(entry.before)})"
        for entry in (state.open_entries if state else ())
    ]
    return f"settings are still changed: {'; '.join(still)}. Put them back with: strakes knobs restore" if still else ""


def _left_commands(owner: Owner, patience_s: float) -> tuple[int, ...]:
    ends_s = time.monotonic() + patience_s
    here = owner.host == socket.gethostname() and owner.this_boot
    while (left := commands_of(owner.pid, owner.started) if here else ()) and time.monotonic() < ends_s:
        time.sleep(_TICK_S)
    return left


def settle(root: Path, journal: KnobJournal, *, keep: bool = False, ask: Runner = run) -> list[Restored]:
    """Restore or keep all changed settings in a journal, last change first. Remove the journal if all are settled."""
    states, errors = open_journals(root)
    if (state := journal.state()) is None:
        _require_readable(journal, errors)
        return []
    newer = {entry.place.key for each in states if each.id > state.id for entry in each.open_entries}
    # The old value in the record takes precedence, because the journal may be an outdated copy.
    older = {entry.place.key for each in states if each.id < state.id for entry in each.open_entries}
    first = {entry.place.key: entry.number for entry in reversed(state.open_entries)}
    done: list[Restored] = []
    silent: dict[str, str] = {}
    begun = {entry.number: entry.before for entry in state.open_entries}
    tried: set[int] = set()
    while left := [entry for entry in state.open_entries if entry.number not in tried]:
        entry = own = left[-1]
        key = own.place.key
        tried.add(own.number)
        if first.get(key) == own.number and not own.place.moved:
            entry = own if key in older else replace(own, before=original(own.place, root, own.before))
        if keep:
            done.append(_keep(journal, entry, ask))
            continue
        try:
            why = "a later change of this setting must be undone first" if key in newer else ""
            if not (why := why or _hindrance(entry, root, silent.get(own.place.host, ""))):
                restored = _put_back(journal, state, entry, own.before, ask)
                if restored.done and own.before != (before := begun.get(own.number, own.before)):
                    why = "somebody else has changed it since"
                    restored = replace(restored, outcome="changed by others", before=before, why=why)
                done += [] if own.place.moved and restored.outcome == "unchanged" else [restored]
                if any(each.place.moved for each in state.entries):
                    state = journal.state() or state
                continue
        except CommandTimeout as error:
            silent[own.place.host], why = f"{error.where} does not answer", f"{error.what}: {error.where}"
        except StrakesError as error:
            why = "; ".join(filter(None, (error.why or error.what, error.remedy)))
        done.append(_outcome(state.id, entry, "not put back", None, why))
    if all(each.done for each in done):
        journal.close()
    # A restored setting may be the limit of another one: Lustre's max_read_ahead_mb is for max_read_ahead_per_file_mb.
    elif not silent and any(each.outcome == "restored" for each in done):
        return [each for each in done if each.done] + settle(root, journal, keep=keep, ask=ask)
    else:
        journal.note("tried", unix_s=time.time())
    return done


def _require_readable(journal: KnobJournal, errors: Sequence[StrakesError]) -> None:
    for error in (each for each in errors if each.where == str(journal.path)):
        raise error


def _hindrance(entry: JournalEntry, root: Path, silent: str) -> str:
    if other := other_store(entry.place, root):
        return f"it was changed by strakes with the store {other}, which must put it back first"
    return f"not tried, because {silent}" if silent else ""


def _put_back(journal: KnobJournal, state: JournalState, entry: JournalEntry, own: str | None, ask: Runner) -> Restored:
    place = entry.place
    if not entry.known and not place.moved and (left := _left_commands(state.owner, DEFAULT_TIMEOUT_S)):
        why = f"a command that may change it is still running: process {', '.join(map(str, left))}"
        return _outcome(state.id, entry, "not put back", None, why)
    try:
        value = place.read(ask)
    except PlaceGoneError as error:
        return _settle(journal, entry, "gone", None, error.why)
    on_server, last = place.host or place.cluster, entry.effective if entry.known else entry.wanted
    ours = (entry.wanted, last) if on_server else (last,)
    if not (entry.known or state.tried_unix_s) and on_server and value == entry.before not in ours:
        why = f"the command that sets it to {shown(entry.wanted)} was cut off, and may still do so on a server"
        return _outcome(state.id, entry, "not put back", value, why)
    may_come_later = on_server and entry.known and value == entry.before == entry.effective != entry.wanted
    if (value == entry.before and not may_come_later) or (value == own not in ours):
        return _settle(journal, replace(entry, before=value), "unchanged", value)
    # The process that made the change also undoes an adjusted value that it could not record.
    if value not in ours and (entry.known or not (place.moved or state.owner == Owner.this_process())):
        why = f"strakes set {shown(ours[-1])}, but somebody else has changed it since"
        if not entry.known:
            why += ", or the system adjusted it when strakes was killed"
        elif not state.owner.this_boot:
            why += ", or the machine was restarted"
        return _settle(journal, entry, "changed by others", value, why)
    _write_back(journal, state, entry, ask)
    now = place.read(ask)
    if now != entry.before:
        journal.note("did", number=entry.number, effective=now)
        why = f"the system adjusted {shown(entry.before)} to {shown(now)}"
        return _outcome(journal.path.stem, entry, "not put back", now, why)
    return _settle(journal, entry, "restored", now)


def _write_back(journal: KnobJournal, state: JournalState, entry: JournalEntry, ask: Runner) -> None:
    """Write the old value of a setting. The system may change other settings in the same directory at the same time.

    First record which value to restore for each other setting: its old value, or a later value set by somebody else.
    """
    earlier = (each for each in reversed(state.entries) if each.number < entry.number)
    for each in takewhile(lambda each: each.place.moved, earlier):
        with suppress(PlaceGoneError):
            found = each.place.read(ask)
            ours = not each.outcome and (not each.known or found in (each.before, each.effective))
            before = each.before if ours else found
            journal.note("will", number=each.number, place=to_record(each.place), before=before, wanted=before)
    entry.place.write(entry.before, ask)


def _keep(journal: KnobJournal, entry: JournalEntry, ask: Runner) -> Restored:
    try:
        value, why = entry.place.read(ask), ""
    except StrakesError as error:
        value, why = None, error.why or error.what
    return _settle(journal, entry, "kept", value, why)


def _settle(journal: KnobJournal, entry: JournalEntry, outcome: Outcome, value: str | None, why: str = "") -> Restored:
    close_change(journal, entry.number, entry.place, outcome, entry.before)
    return _outcome(journal.path.stem, entry, outcome, value, why)


def close_change(journal: KnobJournal, number: int, place: KnobPlace, outcome: Outcome, before: str | None) -> None:
    """Note in the journal that a change is undone. ``before``: the value before the change.

    First remove the record, unless another journal of this store, or a lost journal, has also changed the setting.
    """
    states, _ = open_journals(journal.root)
    others = [(state, each) for state in states for each in state.open_entries if each.place.key == place.key]
    others = [(state, each) for state, each in others if (state.path, each.number) != (journal.path, number)]
    if others and outcome == "kept" and others[0][0].path > journal.path:
        hand_over(place, others[0][1].before, journal.root, others[0][0])
    if not others and (outcome != "unchanged" or before == original(place, journal.root, before) or place.moved):
        give_back(place, journal.root)
    journal.note("settled", number=number, outcome=outcome)


def _outcome(journal: str, entry: JournalEntry, outcome: str, value: str | None, why: str = "") -> Restored:
    return Restored(journal, entry.place.knob, entry.place.name, entry.before, value, outcome, why)


def restore_abandoned(root: Path, say: Callable[[str], None], ask: Runner = run) -> None:
    """Restore the settings that killed processes have changed. Call ``say`` with each line of a report."""
    sweep(root)
    states, errors = open_journals(root)
    for error in errors:
        say(str(error))
    for state in reversed(states):
        if state.held or state.life() != "dead":
            continue
        if 0 <= time.time() - state.tried_unix_s < _AGAIN_S:
            say(f"settings changed by {state.owner} have not been put back; run strakes knobs restore")
            continue
        if done := restore_journal(root, state, ask=ask):
            say(f"{state.owner} ended without putting back the settings it had changed ({' '.join(state.command)}):")
        for restored in done:
            say(f"  {restored}")


def shown(value: str | None) -> str:
    """Return a value as text, with "default" for None."""
    return "default" if value is None else value

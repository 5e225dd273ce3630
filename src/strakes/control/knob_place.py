"""Places where settings are stored: files, parameters and options."""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from strakes.base.errors import BadInputError, EnvironmentLacksError, MeasurementError, StrakesError
from strakes.base.files import closing, write_kernel_file
from strakes.base.processes import ending
from strakes.model.record import from_record
from strakes.targets.answers import from_json, not_understood, understood
from strakes.targets.command import CommandCutOffError, Completed, Runner, Servers
from strakes.targets.gluster import gluster
from strakes.targets.lustre_tool import read_params, set_param
from strakes.targets.mountinfo import find_mount, read_mounts

# Id of the cluster that a runner reaches by a command.
_clusters: dict[tuple[Runner, tuple[str, ...]], str] = {}
# A value that strakes can put back: one line of the size of those that it sets, no option ("-x"), no cut number.
_VALUE = re.compile(r"(?!-(?![\d.]+$))(?!.{0,200}(?:\d{39}|0[xX][0-9a-fA-F]{32}))[^\x00-\x1f\x7f]{0,200}")
_ID = re.compile(r"[\w-]{1,64}")
_TIMED_OUT = re.compile("ETIMEDOUT|timed out", re.IGNORECASE)  # The servers may still do what the command asked for.
_OBJECT = re.compile(r"(?:^(\S+): )?(\{[^{}]*\})", re.MULTILINE)


def plain(text: str, pattern: str = "") -> str:
    """Return the text without surrounding white space. With ``pattern``, return only its first group.

    >>> plain("users: 10\\nmax_cached_mb: 983\\n", r"^max_cached_mb: (\\d+)$")
    '983'
    """
    if not pattern:
        return text.strip()
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise not_understood("a setting", text)
    return match[1]


def _of_ceph(text: str, section: str, option: str) -> str | None:
    rows, wanted = from_json(text, "ceph config dump"), (section, option, "")
    with understood("ceph config dump", text):
        if not isinstance(rows, list):
            raise TypeError("it is not a list")
        values = [row["value"] for row in rows if (row["section"], row["name"], row.get("mask", "")) == wanted]
        return from_record(str, values[0]) if values else None


def values_in_force(text: str, option: str) -> Mapping[str, str]:
    """Return daemon -> value from the output of ``ceph tell KIND.* config get``.

    >>> values_in_force('mds.a: {"x": "1"}\\nmds.b: {"x": "2"}', "x")
    {'mds.a': '1', 'mds.b': '2'}
    """
    values = {}
    for name, document in _OBJECT.findall(text):
        with suppress(StrakesError, KeyError):
            values[name or "the daemon"] = str(from_json(document, "ceph tell")[option])
    return values


_BAD_VALUE = (errno.EINVAL, errno.ERANGE, errno.EDOM)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_MOST_BYTES = 1 << 16
_REFUSED = re.compile("EACCES|EPERM|[Pp]ermission denied|Operation not permitted|access denied")
_INVALID = re.compile("EINVAL|Invalid argument|out of range|error parsing value|not in range|does not match|invalid")


def inode_above(file: str) -> int:
    """Return the inode number of the directory of a file in /sys, or 0 for another file."""
    directory = os.path.dirname(file).removesuffix("/iosched")  # iosched is a new directory for each scheduler.
    return os.stat(directory).st_ino if file.startswith("/sys/") and os.path.isdir(directory) else 0


class PlaceGoneError(MeasurementError):
    """The setting does not exist any more, because its device, mount or server is gone."""


@dataclass(frozen=True)
class KnobPlace:
    """Place where a setting is stored. ``servers``: template of a command that reaches ``host``.

    ``moved``: the system changes this setting together with another one. ``inode``: inode number of the directory of a
    file in /sys, or 0. A changed number shows that another disk has taken the name. ``cluster``: id of the cluster
    (Ceph) or volume (GlusterFS) with the setting. The command ``cluster_words`` prints the id of the one it reaches.
    """

    knob: str
    name: str
    file: str = ""
    read_words: tuple[str, ...] = ()
    write_words: tuple[str, ...] = ()
    unset_words: tuple[str, ...] = ()
    answer: str = "plain"
    field: str = ""
    host: str = ""
    servers: str = ""
    moved: bool = False
    inode: int = 0
    cluster: str = ""
    cluster_words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unset = self.answer in ("plain", "lctl") or self.unset_words[1:]
        complete = self.read_words and self.write_words and unset and (self.cluster_words or not self.cluster)
        if "\0" in self.file or not (self.file or complete):
            raise ValueError("it is neither a file nor a complete command")
        with suppress(re.error):
            if not self.field or re.compile(self.field).groups:
                return
        raise ValueError("its field is not a pattern with a group")

    def beside(self, setting: str) -> KnobPlace:
        """Return the place of ``setting`` in this setting's directory. The system changes both settings together."""
        above, separator, _ = self.name.rpartition("/" if self.file else ".")
        name, knob = f"{above}{separator}{setting}", f"{self.knob.partition('.')[0]}.{setting}"
        file, words = (name, ()) if self.file else ("", (*self.read_words[:-1], name))
        return replace(self, knob=knob, name=name, file=file, read_words=words, moved=True, inode=inode_above(file))

    @property
    def key(self) -> tuple[object, ...]:
        """Return a key that identifies the setting."""
        if self.cluster:
            return (self.cluster, self.name)
        words = self.read_words if self.answer != "lctl" else ()
        return (self.host, self.file, self.name if not self.file else "", words, *filter(None, [self.inode]))

    @property
    def name_with_host(self) -> str:
        """Return the name of the place, with the host if it is on a server."""
        return f"{self.host}: {self.name}" if self.host else self.name

    def read(self, run: Runner) -> str | None:
        """Return the value, or None if it is not set. Raises PlaceGoneError if the place is gone, else StrakesError."""
        if (value := self._value(run)) and not _VALUE.fullmatch(value):
            raise not_understood(self.knob, value)
        return value

    def _value(self, run: Runner) -> str | None:
        if self.file:
            try:
                self._require_same_disk()
                with closing(os.open(self.file, os.O_RDONLY | os.O_CLOEXEC)) as descriptor:
                    text = os.fsdecode(os.read(descriptor, _MOST_BYTES))
            except OSError as error:
                raise self._of_file(error, "cannot be read") from error
            return plain(text, self.field)
        done = self._run(self.read_words, run)
        if self.answer == "lctl":
            return self._of_lctl(done)
        if done.status != 0:
            raise self._refusal(done, "cannot be read")
        if self.answer == "ceph config dump":
            return _of_ceph(done.stdout, *self.unset_words[-2:])
        if self.answer == "gluster volume info":
            volume = gluster(done.argv[3:]).read(done).find(".//volume")
            if volume is None or self.cluster not in ("", volume.findtext("id")):
                raise not_understood("gluster volume info", done.stdout, f"it is not of the volume {self.cluster}")
            values = {option.findtext("name"): option.findtext("value") for option in volume.iter("option")}
            return values.get(self.unset_words[-1])
        return plain(done.stdout, self.field)

    def write(self, value: str | None, run: Runner) -> None:
        """Write a value, which the system may adjust. Raises StrakesError if the system refuses it."""
        if self.file:
            try:
                self._require_same_disk()
                write_kernel_file(Path(self.file), f"{value or ''}\n")
            except OSError as error:
                raise self._of_file(error, f"is not set to {value or ''}") from error
        elif self.answer == "lctl":
            set_param(self.name, str(value)).read(self._run(self._words(str(value)), run))
        else:
            done = self._run(self.unset_words if value is None else self._words(value), run)
            if done.status != 0:
                raise self._refusal(done, "cannot be unset" if value is None else f"is not set to {value}")

    def _require_same_disk(self) -> None:
        if self.inode and inode_above(self.file) not in (0, self.inode):
            raise self._gone("another disk or mount has its name now")

    def _words(self, value: str) -> tuple[str, ...]:
        return tuple(word.replace("{place}", self.name).replace("{value}", value) for word in self.write_words)

    def _run(self, words: tuple[str, ...], run: Runner) -> Completed:
        if self.host:
            run = Servers(self.servers).runner(self.host, run)
        if self.cluster and (reached := self.cluster_reached(run)) != self.cluster:
            what = f"{self.knob} was not read or changed, because the command reaches another cluster"
            why = f"the id of the cluster or volume should be {self.cluster}, but is {reached}"
            remedy = "Run strakes where the command reaches the right one. For Ceph, set CEPH_CONF and CEPH_ARGS."
            raise EnvironmentLacksError(what, where=shlex.join(words), why=why, remedy=remedy)
        if (done := run(words)).status < 0 or (done.status and _TIMED_OUT.search(done.last_line)):
            what, why = f"a command for {self.knob} failed", ending(done.status) if done.status < 0 else done.last_line
            raise CommandCutOffError(what, where=shlex.join(words), why=why)
        return done

    def cluster_reached(self, run: Runner) -> str:
        """Return the id of the cluster that the command reaches. Each process queries it only once."""
        key = run, self.cluster_words
        if key not in _clusters:
            done = run(self.cluster_words)
            if done.status != 0:
                raise self._refusal(done, "cannot be read")
            volume = gluster(done.argv[3:]).read(done) if self.answer == "gluster volume info" else None
            reached = done.stdout.strip() if volume is None else volume.findtext(".//volume/id")
            if not reached or not _ID.fullmatch(reached):
                raise not_understood(self.cluster_words[0], done.stdout)
            _clusters[key] = reached
        return _clusters[key]

    def _of_lctl(self, done: Completed) -> str:
        params = read_params(done)
        if self.name in params.values:
            return plain(params.values[self.name], self.field)
        if params.missing:
            raise self._gone(params.why)
        raise self._refusal(done, "cannot be read")

    def _of_file(self, error: OSError, what: str) -> StrakesError:
        why = os.strerror(error.errno or 0)
        if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
            return self._gone(why)
        denied, invalid = error.errno in _NOT_ALLOWED, error.errno in _BAD_VALUE
        return self._failure(what, self.file, why, denied=denied, invalid=invalid)

    def _gone(self, why: str) -> StrakesError:
        place = self.file or ("" if self.host else "/sys/")  # lctl reads files there, too.
        if place.startswith("/sys/") and find_mount(read_mounts(), os.path.realpath(place)).file_system != "sysfs":
            why, remedy = "/sys is not mounted here", "Run strakes where it is."
            return EnvironmentLacksError(f"{self.knob} cannot be read", where=self.name, why=why, remedy=remedy)
        return PlaceGoneError(f"the setting {self.knob} does not exist here", where=self.name, why=why)

    def _refusal(self, done: Completed, what: str) -> StrakesError:
        output = done.stderr.strip() or done.stdout.strip()
        denied, invalid = (pattern.search(output) is not None for pattern in (_REFUSED, _INVALID))
        return self._failure(what, shlex.join(done.argv), done.last_line, denied=denied, invalid=invalid)

    def _failure(self, what: str, where: str, why: str, *, denied: bool, invalid: bool) -> StrakesError:
        kind: type[StrakesError] = MeasurementError
        remedy = "" if self.file else "Check that the servers answer, then try again."
        if denied:
            kind, remedy = EnvironmentLacksError, "Run strakes as root, or ask your administrator."
        elif invalid:
            kind, remedy = BadInputError, "Choose a valid value: strakes knobs list DIR shows them."
        return kind(f"{self.knob} {what}", where=where, why=why, remedy=remedy)

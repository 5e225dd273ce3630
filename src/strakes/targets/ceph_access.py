"""Options for the ``ceph`` command with the configuration, user and file system of a CephFS mount."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from strakes.base.errors import BadInputError
from strakes.base.processes import trusted_processes
from strakes.targets.calls import mount_of
from strakes.targets.mountinfo import Mount

_FUSE_PROGRAM = "ceph-fuse"
_SHORT = {"-c": "conf", "-n": "name", "-i": "id", "-k": "keyring", "-m": "mon-host", "-r": "client-mountpoint"}
_FOR_TOOL = {"conf": "--conf", "name": "--name", "id": "--id", "keyring": "--keyring", "mon-host": "--mon-host"}
_FILE_SYSTEM = ("client-fs", "client-mds-namespace", "fs", "mds-namespace")


@dataclass(frozen=True)
class Access:
    """Access to a cluster. ``options`` precede the words of a ``ceph`` command.

    ``file_system``: "" if the mount does not name it. ``process``: id of ceph-fuse, or None for the kernel client or if
    it is not visible.
    """

    options: tuple[str, ...] = ()
    file_system: str = ""
    process: int | None = None

    @property
    def configuration(self) -> str:
        """The configuration file, or "" for Ceph's default: $CEPH_CONF, else /etc/ceph/ceph.conf."""
        pairs = zip(self.options, self.options[1:], strict=False)
        return next((value for option, value in pairs if option == _FOR_TOOL["conf"]), "")


def access_of(mount: Mount, proc: Path = Path("/proc")) -> Access:
    """Return the access of a mount. Unknown options are left to Ceph's defaults."""
    if mount.file_system == "ceph":
        return _of_kernel(mount)
    for pid, words in trusted_processes(_FUSE_PROGRAM, proc):
        settings, places = _read(words)
        here = _link(proc / str(pid) / "cwd")
        if any(os.path.normpath(os.path.join(here, place)) == mount.mount_point for place in places):
            environment = _environment(proc / str(pid) / "environ")
            if "conf" not in settings and environment.get("CEPH_CONF"):
                settings["conf"] = environment["CEPH_CONF"]
            return _access(settings, here, pid)
    return Access()


def _of_kernel(mount: Mount) -> Access:
    """Read the source, which is ``MONITORS:/DIR``, since Linux 5.17 ``USER@FSID.NAME=/DIR``."""
    options = dict(option.partition("=")[::2] for option in mount.super_options)
    user, at, rest = mount.source.partition("=")[0].partition("@")
    name = options.get("name", user if at else "")
    file_system = next((options[key.replace("-", "_")] for key in _FILE_SYSTEM if key.replace("-", "_") in options), "")
    if at and not file_system:
        file_system = rest.partition(".")[2]
    return Access(("--id", name) if name else (), file_system)


def _access(settings: Mapping[str, str], here: str, pid: int) -> Access:
    options = []
    for key, option in _FOR_TOOL.items():
        if value := settings.get(key):
            options += [option, os.path.join(here, value) if key in ("conf", "keyring") else value]
    return Access(tuple(options), next((settings[key] for key in _FILE_SYSTEM if key in settings), ""), pid)


def _read(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return options with their values, and arguments that may be the mount point.

    >>> _read(["-c", "/lab/ceph.conf", "-n", "client.admin", "--client_fs=home", "/mnt"])
    ({'conf': '/lab/ceph.conf', 'name': 'client.admin', 'client-fs': 'home'}, ['/mnt'])
    """
    settings, rest = {}, []
    words = list(words)
    while words:
        word = words.pop(0)
        if word in _SHORT and words:
            settings[_SHORT[word]] = words.pop(0)
        elif word.startswith("--"):
            key, equals, value = word[2:].partition("=")
            key = key.replace("_", "-")
            # These options have a value, possibly in the next word.
            if not equals and key in (*_FOR_TOOL, *_FILE_SYSTEM, "client-mountpoint") and words:
                value = words.pop(0)
            settings[key] = value
        elif not word.startswith("-"):
            rest.append(word)
    return settings, rest


def _environment(path: Path) -> dict[str, str]:
    with suppress(OSError):
        return dict(os.fsdecode(entry).partition("=")[::2] for entry in path.read_bytes().split(b"\0"))
    return {}


def _link(path: Path) -> str:
    with suppress(OSError):
        return os.readlink(path)
    return "/"


@dataclass(frozen=True)
class Inside:
    """``directory``: path from the root of the Ceph file system. ``environment``: cluster settings for libcephfs."""

    directory: PurePosixPath
    environment: Mapping[str, str]


def inside(directory: Path) -> Inside:
    """Return the access of libcephfs to a directory. Raises BadInputError if it is not on a CephFS mount."""
    mount = mount_of(directory)
    if mount.file_system != "ceph" and mount.file_system not in ("fuse.ceph-fuse", "fuse.ceph"):
        raise BadInputError(
            "the backend cephfs needs a directory of a Ceph file system",
            where=str(directory),
            why=f"{mount.mount_point} is {mount.file_system}",
            remedy="Mount the Ceph file system, so that strakes can make and mark its directory. The load itself "
            "does not use the mount.",
        )
    return Inside(_path_inside(mount, directory.resolve()), _for_libcephfs(access_of(mount)))


def _path_inside(mount: Mount, directory: Path) -> PurePosixPath:
    """Return the path of a directory from the root of the Ceph file system.

    The source of the kernel's client names the mounted directory (``a,b:/DIR``, ``user@fsid.fs=/DIR``); ceph-fuse
    mounts the root.

    >>> kernel = Mount(1, 0, 0, 1, "/", "/mnt", (), "ceph", "10.0.0.1:6789,10.0.0.2:6789:/home", ())
    >>> _path_inside(kernel, Path("/mnt/a/b"))
    PurePosixPath('/home/a/b')
    """
    top = "/" + mount.source.partition(":/")[2] if mount.file_system == "ceph" and ":/" in mount.source else "/"
    if mount.file_system == "ceph" and "=/" in mount.source:
        top = "/" + mount.source.partition("=/")[2]
    return PurePosixPath(top) / mount.root.lstrip("/") / directory.relative_to(mount.mount_point).as_posix()


def _for_libcephfs(access: Access) -> dict[str, str]:
    """Return the environment for libcephfs from the options of the mount, unless the user has set it.

    >>> _for_libcephfs(Access(("--conf", "/c", "--id", "me")))["CEPH_ARGS"]
    '--id me'
    """
    options = dict(zip(access.options[::2], access.options[1::2], strict=True))
    given = {
        "CEPH_CONF": options.pop("--conf", ""),
        "CEPH_ARGS": " ".join(f"{option} {value}" for option, value in options.items()),
    }
    if access.file_system:
        given["CEPH_ARGS"] = f"{given['CEPH_ARGS']} --client-fs {access.file_system}".strip()
    return {name: value for name, value in given.items() if value and name not in os.environ}

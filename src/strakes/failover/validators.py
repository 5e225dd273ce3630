"""Let drbdadm, corosync and crm_verify check their own configuration, if they are installed."""

from __future__ import annotations

import errno
import itertools
import os
import re
import secrets
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree as Xml

from strakes.base.errors import StrakesError
from strakes.base.files import open_directory, write_kept
from strakes.base.foreign_text import without_secrets
from strakes.failover.blocks import Block, read_corosync, rewritten_drbd
from strakes.failover.cib import Cib
from strakes.failover.cluster import is_address
from strakes.failover.known_options import DRBD_SECTIONS, meant, options_of
from strakes.failover.limits import too_much_to_ask
from strakes.failover.setup import LIVE, Setup, links_of, nodes_of
from strakes.targets.command import Completed, run

_SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DRBDADM_84 = "/lib/drbd/drbdadm-84"
_LIMIT_S = 20.0  # Time limit in seconds of each program that checks files.
# Sections of corosync.conf that name no files or programs. Only these sections are given to corosync.
_SECTIONS = frozenset({"totem", "interface", "nodelist", "node", "quorum", "device", "net"})
# Characters to replace in corosync.conf. Slashes are among them, so that no value is a path.
_ODD = re.compile(r"[^\w .,:@%+*-]")
# Ids of transient services (systemd, UIDS-GIDS). Unlike nobody, one drawn at random has no other processes.
_FREE_IDS = range(61184, 65520)
# Messages about missing permissions, missing programs or a crash. They do not concern the checked files.
_NOT_HERE = re.compile(
    r"unshare failed|setpriv:|Operation not permitted|Permission denied|assertion|Module not loaded"
    r"|(?m:^(?=.*\bsh: ).*: not found)"
)
# Output lines of drbdadm that do not concern the checked files.
_NOISE = re.compile(r"\bmodinfo: |DRBD module version|usage-count|Warnings found during check|^\s*$")
_PACKAGES = {"corosync": "corosync", "crm_verify": "pacemaker-cli-utils"}


@dataclass(frozen=True)
class ValidatorVerdict:
    """The verdict of a program on its own configuration. State ``unable``: this machine cannot run the check."""

    program: str
    state: Literal["accepts", "refuses", "absent", "unable"]
    text: str = ""


def verdicts(setup: Setup) -> tuple[ValidatorVerdict, ...]:
    """Return the verdicts of drbdadm, corosync and crm_verify on the configurations."""
    state = ValidatorVerdict("crm_mon", "unable", "it does not show the state of the cluster")
    found = [state] if setup.where == LIVE and "state/crm_mon" not in setup.texts else []
    if setup.drbd:
        program = "drbdadm" if any(one.dialect9 for one in setup.drbd) else _DRBDADM_84
        found.append(_judge(program, lambda: _drbdadm(program, setup)))
    if setup.corosync:
        found.append(_judge("corosync", lambda: _corosync(setup)))
    if setup.cib:
        found.append(_judge("crm_verify", lambda: _crm_verify(setup)))
    return tuple(found)


def installed(program: str) -> bool:
    """Return whether a program is installed."""
    return Path(program).exists() if program.startswith("/") else shutil.which(program, path=_SEARCH) is not None


def _judge(program: str, ask: Callable[[], ValidatorVerdict]) -> ValidatorVerdict:
    if not installed(program):
        return ValidatorVerdict(program, "absent", f"install {_PACKAGES.get(program, 'drbd-utils')}")
    try:
        return ask()
    except (StrakesError, OSError) as error:
        return ValidatorVerdict(program, "unable", getattr(error, "why", "") or str(error))


def _verdict(program: str, done: Completed) -> ValidatorVerdict:
    said = "\n".join(line for line in (done.stderr or done.stdout).splitlines() if not _NOISE.search(line))
    # crm_verify also fails if it prints only warnings. Accept such a configuration.
    accepted = done.status == 0 or (program == "crm_verify" and "Warnings found" in done.stderr)
    if not accepted and (not said.strip() or _NOT_HERE.search(said)):
        return ValidatorVerdict(program, "unable", said.strip() or f"exit status {done.status} without a message")
    text = without_secrets(said.strip()) if done.status else ""
    # A statement unlike all known statements may belong to another release, so do not report a mistake.
    unknown = re.search(r"(?m)^(?!.*(?:IPADDR|ipv4))(?=.*Parse error: ).*\s+but got '([a-z-]+)'", said)
    sections = ("drbd", *(f"{version} {one}" for version in ("drbd", "8.4", "9") for one in DRBD_SECTIONS))
    if unknown and not meant(unknown[1], options_of(*sections)):
        return ValidatorVerdict(program, "unable", f"this release does not know {unknown[1]}:\n{text}")
    return ValidatorVerdict(program, "accepts" if accepted else "refuses", text)


def _drbdadm(program: str, setup: Setup) -> ValidatorVerdict:
    if setup.where == LIVE and (setup.root / "etc/drbd.conf").exists():
        done = run([program, "-c", str(setup.root / "etc/drbd.conf"), "sh-nop"], _LIMIT_S)
        for secret in re.findall(r"\bshared-secret\s+\"?([^\s\";]+)", "\n".join(setup.texts.values())):
            done = replace(done, stderr=done.stderr.replace(secret, "..."))
        return _verdict(program, done)
    files = {name: text for name, text in setup.texts.items() if name.startswith("etc/drbd")}
    parts = [part for part in ("global_common.conf", "*.res") if part[0] == "*" or f"etc/drbd.d/{part}" in files]
    usual = {"etc/drbd.conf": "".join(f'include "drbd.d/{part}";\n' for part in parts)}
    rewritten = {name: rewritten_drbd(text) for name, text in (usual | files).items()}
    return _of_files(setup, rewritten, program, "-c", "{}/etc/drbd.conf", "sh-nop")


def _of_files(setup: Setup, files: Mapping[str, str | bytes], program: str, *words: str) -> ValidatorVerdict:
    with confined(files) as (place, before):
        done = run([*before, program, *(word.format(place) for word in words)], _LIMIT_S)
    return _verdict(program, replace(done, stderr=done.stderr.replace(str(place), str(setup.root))))


def _corosync(setup: Setup) -> ValidatorVerdict:
    totem, listed = setup.corosync.one("totem"), nodes_of(setup)
    ciphers = {totem.get(key, "none") for key in ("crypto_cipher", "crypto_hash")}
    encrypts = totem.get("secauth") in ("on", "yes", "1") or ciphers != {"none"}
    if listed and listed[0].get("ring1_addr") and not listed[0].get("ring0_addr"):
        return ValidatorVerdict("corosync", "unable", "without ring0_addr, it finds itself by the name of the host")
    numbered = all(node.get("nodeid") for node in listed) or not totem.one("interface").get("bindnetaddr")
    if totem.get("rrp_mode") or not listed or not numbered or (encrypts and totem.get("transport") in ("udp", "udpu")):
        why = "no node list" if not listed else "rrp_mode" if totem.get("rrp_mode") else "encryption without knet"
        why = why if numbered else "no nodeid"
        return ValidatorVerdict("corosync", "unable", f"written for Corosync 2 ({why})")
    text = _resolved(without_files(setup.corosync))
    with confined({"authkey": bytes(256), "corosync.conf": text}) as (place, words):
        keyed = text.replace("totem {\n", f"totem {{\nkeyfile: {place}/authkey\n", 1)
        write_kept(place / "corosync.conf", keyed, mode=0o640)
        nodes = read_corosync(text, "").one("nodelist").all("node")
        addresses = list(links_of(nodes[0]).values()) if nodes else []
        added = [f'ip address add "${number}" dev lo' for number, _ in enumerate(addresses, 1)]
        check = f"exec {shlex.join(words)} corosync -t -c {place}/corosync.conf"
        script = " && ".join(["ip link set lo up", *added, check])
        user = [] if "setpriv" in words else ["--user", "--map-root-user"]
        return _verdict("corosync", run(["unshare", *user, "--net", "sh", "-c", script, "sh", *addresses], _LIMIT_S))


def without_files(section: Block) -> str:
    """Return the text of a section of corosync.conf without settings that name files or programs."""
    # Limit lengths: corosync cuts a line after 511 characters and reads the rest as a new setting.
    lines = [
        f"{key}: {_ODD.sub('?', value)[:200]}\n"
        for key, value in section.settings
        if re.fullmatch(r"\w{1,100}", key, re.ASCII) and key not in ("keyfile", "key")
    ]
    inner = (f"{one.name} {{\n{without_files(one)}}}\n" for one in section.blocks if one.name in _SECTIONS)
    return "".join([*lines, *inner])


@contextmanager
def confined(files: Mapping[str, str | bytes]) -> Iterator[tuple[Path, list[str]]]:
    """Yield a directory with these files, and a prefix that runs a command without root's rights and environment."""
    with tempfile.TemporaryDirectory(prefix="strakes-") as name:
        place, words = Path(name), ["env", "-i", "-C", "/", f"PATH={_SEARCH}", "LC_ALL=C"]
        for file, content in files.items():
            os.close(open_directory((place / file).parent, make=0o700))
            write_kept(place / file, content, mode=0o640)
        if os.geteuid() == 0:
            user = secrets.choice(_FREE_IDS)
            try:
                for path in (place, *place.rglob("*")):
                    os.chown(path, 0, user)
                    path.chmod(0o750 if path.is_dir() else 0o640)
                words += ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]
            except OSError as error:
                # chown fails with EINVAL in a user namespace without this id. There, root is an ordinary user.
                if error.errno != errno.EINVAL:
                    raise
        yield place, words


def _resolved(text: str) -> str:
    numbers = itertools.count(1)

    def address(match: re.Match[str]) -> str:
        return match[0] if is_address(match[3]) else f"{match[1]}198.18.{match[2]}.{next(numbers)}"

    return re.sub(r"(?m)^([ \t]*ring(\d)_addr:\s*)(\S+)", address, text)


def _crm_verify(setup: Setup) -> ValidatorVerdict:
    cib = setup.pacemaker
    if setup.is_fragment:
        return ValidatorVerdict("crm_verify", "unable", "the files name neither the nodes nor what fences them")
    if why := too_much_to_ask(cib.root):
        return ValidatorVerdict("crm_verify", "unable", f"{why}; run the command yourself, which takes a while")
    files = {"pacemaker/cib.xml": Xml.tostring(with_nodes_online(cib, cib.members_of_corosync))}
    return _of_files(setup, files, "crm_verify", "-V", "--xml-file", "{}/pacemaker/cib.xml")


def with_nodes_online(cib: Cib, names: Iterable[str]) -> Xml.Element:
    """Return a copy of the CIB with an appended status: the nodes ``names`` are online, and no resource runs."""
    root = cib.readable()
    root.set("have-quorum", "1")
    for status in root.findall("./status"):
        root.remove(status)
    nodes = root.find("./configuration/nodes")
    assert nodes is not None
    listed = {node.get("uname", ""): node for node in nodes}
    status = Xml.SubElement(root, "status")
    for number, name in enumerate(names, 1):
        if name not in listed:
            listed[name] = Xml.SubElement(nodes, "node", id=str(number), uname=name)
        state = {"id": listed[name].get("id", ""), "uname": name, "in_ccm": "true", "crmd": "online"}
        Xml.SubElement(status, "node_state", state | {"join": "member", "expected": "member"})
    return root

"""Which targets a mount has, on which servers they are, and whether these answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from strakes.errors import StrakesError
from strakes.targets.lustre.answers import Answers
from strakes.targets.lustre.imports import Import, parse_import
from strakes.targets.lustre.lctl_param import Params, device, get_param
from strakes.targets.lustre.lfs_check import Check, check
from strakes.targets.lustre.lfs_getname import ClientName
from strakes.targets.lustre.lfs_targets import TargetState, mdts, osts

ACTIVE = "active"
# Connected, or not connected because there is nothing to do.
_WORKING_IMPORTS = ("FULL", "IDLE")
_NO_PARAMS = Params({})


@dataclass(frozen=True)
class Connection:
    """One target as this client reaches it. ``address`` is empty where it is not known; ``state`` is "active" or says what is wrong."""

    name: str
    kind: str
    index: int
    address: str
    state: str

    @property
    def host(self) -> str:
        return host_of(self.address)


def host_of(address: str) -> str:
    """The machine of an address in Lustre's network; this one where client and server are the same.

    >>> host_of("192.168.77.1@tcp"), host_of("0@lo")
    ('192.168.77.1', 'localhost')
    """
    return "localhost" if address == "0@lo" else address.partition("@")[0]


def target_of(parameter: str, name: ClientName) -> str:
    """The target behind a client's device.

    >>> target_of("osc.labfs-OST0000-osc-ffff01.stats", ClientName("labfs", "ffff01"))
    'labfs-OST0000'
    """
    return device(parameter).removesuffix(f"-osc-{name.instance}").removesuffix(f"-mdc-{name.instance}")


def addresses(answers: Answers, name: ClientName) -> dict[str, str]:
    """Target -> address of the server it is on now. Any user may know that."""
    asked = get_param(f"mdc.*-{name.instance}.mds_conn_uuid", f"osc.*-{name.instance}.ost_conn_uuid")
    return {target_of(parameter, name): value for parameter, value in answers.get(asked, _NO_PARAMS).values.items()}


def connections(answers: Answers, path: str, name: ClientName) -> tuple[tuple[Connection, ...], str, str]:
    """All targets, metadata first; and the address and state of the management server."""
    known = (*answers.get(mdts(path), ()), *answers.get(osts(path), ()))
    checks = answers.get(check("servers", path), Check((), {}))
    imports = _imports(answers, name)
    where = addresses(answers, name)
    failing = {_plain(device, name): why for device, why in checks.failing.items()}
    reached = {_plain(device, name) for device in checks.active}
    targets = tuple(
        Connection(
            target.name,
            target.kind,
            target.index,
            where.get(target.name) or (imports[target.name].address if target.name in imports else ""),
            _state(target, imports.get(target.name), target.name in reached, failing.get(target.name)),
        )
        for target in known
    )
    manager = next((device for device in (*checks.active, *checks.failing) if device.startswith("MGC")), "")
    return targets, manager.removeprefix("MGC"), failing.get(manager, ACTIVE if manager in reached else "")


def _plain(device: str, name: ClientName) -> str:
    return device.removesuffix(f"-osc-{name.instance}").removesuffix(f"-mdc-{name.instance}")


def _imports(answers: Answers, name: ClientName) -> dict[str, Import]:
    asked = get_param(f"mdc.*-{name.instance}.import", f"osc.*-{name.instance}.import")
    # Users other than root get nothing, which limits() says.
    params = answers.get(asked, _NO_PARAMS)
    imports = []
    for text in () if params.cut_off else params.values.values():
        try:
            imports.append(parse_import(text))
        except StrakesError as error:
            answers.note(error)
    return {known.target: known for known in imports}


def _state(target: TargetState, known: Import | None, reached: bool, failing: str | None) -> str:
    """The worst that is said: lfs says ACTIVE as long as nobody took a target out, an import FULL until a request failed."""
    if target.state != "ACTIVE":
        return target.state.lower()
    if known is not None and known.deactivated:
        return "inactive"
    if failing is not None:
        return failing
    if known is not None and known.state not in _WORKING_IMPORTS:
        return known.state.lower()
    return ACTIVE if reached or known is not None else ""


def hosts(where: Mapping[str, str] | Iterable[Connection]) -> tuple[str, ...]:
    """Every server once, in the order first seen."""
    each = (host_of(value) for value in where.values()) if isinstance(where, Mapping) else (target.host for target in where)
    return tuple(dict.fromkeys(host for host in each if host))

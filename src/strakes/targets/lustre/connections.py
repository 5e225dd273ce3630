"""Which targets a mount has, on which servers they are, and whether these answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from strakes.errors import StrakesError
from strakes.targets.command import Runner, Servers
from strakes.targets.lustre.answers import Answers
from strakes.targets.lustre.imports import DEACTIVATED, Import, parse_import
from strakes.targets.lustre.lctl_list_nids import list_nids
from strakes.targets.lustre.lctl_param import Params, device, get_param
from strakes.targets.lustre.lfs_check import LfsCheck, check
from strakes.targets.lustre.lfs_getname import ClientName
from strakes.targets.lustre.lfs_targets import TargetState, mdts, osts
from strakes.targets.lustre.own import no_instance, of_mount
from strakes.targets.lustre.state_history import WORKING_STATES, States, parse_states

ACTIVE = "active"
# The host of targets that this node serves itself, whose address is then Lustre's loopback.
THIS_NODE = "localhost"
_LOOPBACK = "0@lo"
_NO_PARAMS = Params({})


@dataclass(frozen=True)
class Connection:
    """One target as this client reaches it: its ``address`` where it is known; ``state`` "active", or what is wrong."""

    name: str
    kind: str
    index: int
    address: str
    state: str

    @property
    def host(self) -> str:
        """Return the machine it is on."""
        return host_of(self.address)


def host_of(address: str) -> str:
    """Return the machine of an address in Lustre's network; this one where client and server are the same.

    >>> host_of("192.168.77.1@tcp"), host_of("0@lo")
    ('192.168.77.1', 'localhost')
    """
    return THIS_NODE if address == _LOOPBACK else address.partition("@")[0]


def target_of(parameter: str, name: ClientName) -> str:
    """Return the target behind a client's device.

    >>> target_of("osc.labfs-OST0000-osc-ffff01.stats", ClientName("labfs", "ffff01"))
    'labfs-OST0000'
    """
    return device(parameter).removesuffix(f"-osc-{name.instance}").removesuffix(f"-mdc-{name.instance}")


def addresses(answers: Answers, name: ClientName) -> dict[str, str]:
    """Target -> address of the server it is on now. Any user may know that."""
    return _addresses(answers, f"*-{name.instance}", name.file_system, no_instance)


def addresses_in(answers: Answers, file_system: str, ask_instance: Callable[[], str] = no_instance) -> dict[str, str]:
    """Return the same of a mount whose own name is not known, for that is asked of its servers."""
    return _addresses(answers, f"{file_system}-*", file_system, ask_instance)


def _addresses(answers: Answers, devices: str, file_system: str, ask_instance: Callable[[], str]) -> dict[str, str]:
    asked = get_param(f"mdc.{devices}.mds_conn_uuid", f"osc.{devices}.ost_conn_uuid")
    values = of_mount(answers.get(asked, _NO_PARAMS).values, file_system, ask_instance)
    # A server is told by the address that it is configured with, also where that is this node. Only some users may ask.
    own = Answers(answers.run).get(list_nids(), ()) if values else ()
    return {_target_in(parameter): _LOOPBACK if value in own else value for parameter, value in values.items()}


def _target_in(parameter: str) -> str:
    return _target_of_device(device(parameter))


def _target_of_device(name: str) -> str:
    return re.split("-(?:mdc|osc)-", name)[0]


def connections(answers: Answers, path: str, name: ClientName) -> tuple[tuple[Connection, ...], str, str]:
    """All targets, metadata first; and the address and state of the management server."""
    known = (*answers.get(mdts(path), ()), *answers.get(osts(path), ()))
    checks = answers.get(check("servers", path), LfsCheck((), {}))
    imports = _imports(answers, name)
    where = addresses(answers, name)
    where |= {target: known.address for target, known in imports.items() if known.address == _LOOPBACK}
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


def states(answers: Answers, file_system: str, ask_instance: Callable[[], str] = no_instance) -> dict[str, States]:
    """Return the states of all connections to targets of a file system.

    From the kernel alone, which waits for no server.
    """
    known = _states_by_device(answers, file_system, ask_instance)
    if not all(of.working for of in known.values()):
        taken_out = _taken_out(answers, file_system)
        known = {name: replace(of, deactivated=name in taken_out) for name, of in known.items()}
    return {_target_of_device(name): of for name, of in known.items()}


def _states_by_device(answers: Answers, file_system: str, ask_instance: Callable[[], str]) -> dict[str, States]:
    params = answers.get(get_param(f"mdc.{file_system}-*.state", f"osc.{file_system}-*.state"), _NO_PARAMS)
    known: dict[str, States] = {}
    for parameter, text in () if params.cut_off else of_mount(params.values, file_system, ask_instance).items():
        try:
            known[device(parameter)] = parse_states(text)
        except StrakesError as error:
            answers.note(error)
    return known


def _taken_out(answers: Answers, file_system: str) -> set[str]:
    """Return the devices that an administrator deactivated: they are disconnected, and that is meant.

    Not every version has ``active`` for every kind of device.
    """
    devices = f"{file_system}-*"
    asked = get_param(*(f"{kind}.{devices}.{own}" for own in ("active", "import") for kind in ("mdc", "osc")))
    values = answers.get(asked, _NO_PARAMS).values
    return {
        device(parameter)
        for parameter, text in values.items()
        if (text.strip() == "0" if parameter.endswith(".active") else DEACTIVATED.search(text))
    }


def _state(target: TargetState, known: Import | None, reached: bool, failing: str | None) -> str:
    """Return the worst that is told: lfs says ACTIVE until one is taken out, an import FULL until a request fails."""
    if target.state != "ACTIVE":
        return target.state.lower()
    if known is not None and known.deactivated:
        return "inactive"
    if failing is not None:
        return failing
    if known is not None and known.state not in WORKING_STATES:
        return known.state.lower()
    return ACTIVE if reached or known is not None else ""


def ways_to_servers(run: Runner, servers: Servers | None, on: tuple[str, ...]) -> dict[str, Runner]:
    """Return how commands get to each server that can be asked.

    This node, where it is one, and others by ``servers``.
    """
    ways = {host: run for host in on if host == THIS_NODE}
    return ways if servers is None else ways | {host: servers.runner(host, run) for host in on if host not in ways}


def hosts(where: Mapping[str, str] | Iterable[Connection]) -> tuple[str, ...]:
    """Every server once, in the order first seen."""
    each = (
        (host_of(value) for value in where.values())
        if isinstance(where, Mapping)
        else (target.host for target in where)
    )
    return tuple(dict.fromkeys(host for host in each if host))

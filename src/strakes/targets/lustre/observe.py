"""Counters of a Lustre file system: as its client counts them, and as its servers do where they may be asked. None is ever cleared."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from strakes.errors import StrakesError
from strakes.targets.command import Runner, Servers
from strakes.targets.lustre import brw_stats, client_stats, md_stats, ost_stats
from strakes.targets.lustre.answers import Answers, said
from strakes.targets.lustre.connections import addresses, hosts, target_of
from strakes.targets.lustre.lctl_param import Params, device, get_param
from strakes.targets.lustre.lfs_getname import ClientName
from strakes.targets.lustre.output import NotUnderstoodError
from strakes.targets.lustre.stats import Stats, parse_stats
from strakes.targets.lustre.version import module_version
from strakes.targets.model import CLIENT, SINCE, Observation

# The name under which the counters of the mount as a whole stand.
MOUNT = "client"

_NOTHING = Params({})
_SERVER_PARAMETERS = (md_stats.PARAMETER, ost_stats.PARAMETER, brw_stats.PARAMETER)
_AT_ONCE = 8


def observe(run: Runner, name: ClientName, servers: Servers | None) -> Observation:
    """Per target, and for the mount. Where counters are expected and cannot be had or understood an empty entry stands."""
    answers = Answers(run)
    seen = client_counters(answers, name)
    if servers is not None:
        for target, counters in server_counters(run, name.file_system, servers, hosts(addresses(answers, name))).items():
            seen[target] = {**seen.get(target, {}), **counters}
    return seen


def client_counters(answers: Answers, name: ClientName) -> dict[str, dict[str, float]]:
    """What this client counted. Users other than root get cut-off output, of which nothing is taken."""
    mine = f"*-{name.instance}"
    params = answers.get(get_param(f"llite.{mine}.stats", f"mdc.{mine}.stats", f"mdc.{mine}.md_stats", f"osc.{mine}.stats"), _NOTHING)
    stats = {} if params.cut_off else {parameter: _parsed(text) for parameter, text in params.values.items()}
    seen: dict[str, dict[str, float]] = {}
    for parameter, own in stats.items():
        kind = parameter.partition(".")[0]
        if parameter.endswith(".md_stats"):
            continue  # goes with the other counters of its target
        target = MOUNT if kind == "llite" else target_of(parameter, name)
        seen[target] = {}
        if own is None:
            continue
        if kind == "llite":
            seen[target] = client_stats.mount(own) | _since(CLIENT, own)
        elif kind == "osc":
            seen[target] = client_stats.data_target(own) | _since(CLIENT, own)
        elif (kinds := stats.get(parameter.removesuffix(".stats") + ".md_stats")) is not None:
            seen[target] = client_stats.metadata_target(own, kinds) | _since(CLIENT, own, kinds)
    return seen


def server_counters(run: Runner, file_system: str, servers: Servers, on: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """What the servers counted for their targets of this file system; a server that cannot be asked stands under its host."""

    def ask(host: str) -> dict[str, dict[str, float]]:
        try:
            params = get_param(*_SERVER_PARAMETERS).ask(servers.runner(host, run))
        except StrakesError:
            return {host: {}}
        return {host: {}} if params.cut_off else _of_one_server(params, file_system)

    seen: dict[str, dict[str, float]] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for counters in pool.map(ask, on):
            seen |= counters
    return seen


def not_reached(run: Runner, servers: Servers, on: tuple[str, ...]) -> dict[str, str]:
    """The servers that cannot be asked, and why."""

    def ask(host: str) -> str:
        try:
            module_version().ask(servers.runner(host, run))
        except StrakesError as error:
            return said(error)
        return ""

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return {host: why for host, why in zip(on, pool.map(ask, on), strict=True) if why}


def _of_one_server(params: Params, file_system: str) -> dict[str, dict[str, float]]:
    # A server has metadata targets, data targets, or both: what it has not is missing, and that is well.
    mine = {parameter: text for parameter, text in params.values.items() if device(parameter).startswith(f"{file_system}-")}
    seen: dict[str, dict[str, float]] = {}
    for parameter, text in mine.items():
        if parameter.endswith(".brw_stats"):
            continue
        own = _parsed(text)
        common = md_stats.common if parameter.endswith(".md_stats") else ost_stats.common
        seen[device(parameter)] = {} if own is None else common(own) | _since("", own)
    for parameter, text in mine.items():
        if parameter.endswith(".brw_stats") and (counters := seen.get(device(parameter))):
            with suppress(NotUnderstoodError):
                histograms = brw_stats.parse_histograms(text)
                counters |= brw_stats.common(histograms)
                counters[SINCE] = max(counters.get(SINCE, 0.0), histograms.start_s or 0.0)
    return seen


def _parsed(text: str) -> Stats | None:
    try:
        return parse_stats(text)
    except NotUnderstoodError:
        return None


def _since(side: str, *stats: Stats) -> dict[str, float]:
    """The latest beginning: whichever of the counters somebody clears, it moves."""
    starts = [one.start_s for one in stats if one.start_s is not None]
    return {side + SINCE: max(starts)} if starts else {}

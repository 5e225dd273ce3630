"""Counters of a Lustre file system: its client's and, where they may be asked, its servers'. None is ever cleared."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from strakes.errors import StrakesError
from strakes.targets.command import Runner, Servers
from strakes.targets.description import CLIENT, SERVER, SINCE, Observation
from strakes.targets.lustre import brw_stats, client_stats, md_stats, ost_stats
from strakes.targets.lustre.answers import Answers
from strakes.targets.lustre.ask_each import ask_each
from strakes.targets.lustre.connections import addresses, hosts, target_of, ways_to_servers
from strakes.targets.lustre.lctl_param import Params, device, get_param
from strakes.targets.lustre.lfs_getname import ClientName
from strakes.targets.lustre.output import NotUnderstoodError
from strakes.targets.lustre.own import is_target_of
from strakes.targets.lustre.recovery_status import PARAMETERS as RECOVERY
from strakes.targets.lustre.recovery_status import parse_recovery
from strakes.targets.lustre.stats import Stats, parse_stats
from strakes.targets.target import said

# The name under which the counters of the mount as a whole stand.
MOUNT = "client"

_NOTHING = Params({})
_SERVER_PARAMETERS = (md_stats.PARAMETER, ost_stats.PARAMETER, brw_stats.PARAMETER, *RECOVERY)


def observe(run: Runner, name: ClientName, servers: Servers | None) -> Observation:
    """Per target, and for the mount. An empty entry stands where counters are expected and cannot be had."""
    answers = Answers(run)
    seen = client_counters(answers, name)
    ways = ways_to_servers(run, servers, hosts(addresses(answers, name)))
    for target, counters in server_counters(name.file_system, ways).items():
        if not counters and servers is None:
            continue  # nobody asked for them: on a server, to users other than root they are not told
        seen[target] = {**seen.get(target, {}), **counters}
    return seen


def client_counters(answers: Answers, name: ClientName) -> dict[str, dict[str, float]]:
    """Return what this client counted. Users other than root get cut-off output, of which nothing is taken."""
    mine = f"*-{name.instance}"
    params = answers.get(
        get_param(f"llite.{mine}.stats", f"mdc.{mine}.stats", f"mdc.{mine}.md_stats", f"osc.{mine}.stats"), _NOTHING
    )
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


def server_counters(file_system: str, ways: Mapping[str, Runner]) -> dict[str, dict[str, float]]:
    """Return what servers counted for their targets; a server that cannot be asked stands under its host, empty."""

    def ask(host: str) -> dict[str, dict[str, float]]:
        try:
            params = get_param(*_SERVER_PARAMETERS).ask(ways[host])
        except StrakesError:
            return {host: {}}
        return {host: {}} if params.cut_off else _of_one_server(params, file_system)

    seen: dict[str, dict[str, float]] = {}
    for counters in ask_each(ways, ask).values():
        seen |= counters
    return seen


def unread(ways: Mapping[str, Runner], file_system: str) -> dict[str, str]:
    """Return the servers whose counters cannot be read, and why."""

    def ask(host: str) -> str:
        try:
            params = get_param(*_SERVER_PARAMETERS).ask(ways[host])
        except StrakesError as error:
            return said(error)
        if params.cut_off:
            return params.why or "lctl gives only a part of them"
        return "" if _of_one_server(params, file_system) else f"it serves no target of {file_system}"

    return {host: why for host, why in ask_each(ways, ask).items() if why}


def _of_one_server(params: Params, file_system: str) -> dict[str, dict[str, float]]:
    # A server has metadata targets, data targets, or both: what it has not is missing, and that is well.
    mine = {
        parameter: text for parameter, text in params.values.items() if is_target_of(device(parameter), file_system)
    }
    seen: dict[str, dict[str, float]] = {}
    for parameter, text in mine.items():
        if parameter.endswith((".brw_stats", ".recovery_status")):
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
        if parameter.endswith(".recovery_status") and (counters := seen.get(device(parameter))):
            with suppress(NotUnderstoodError):
                # It moves with every start that clients had to come back to.
                counters[SERVER] = float(parse_recovery(text).started_unix_s or 0)
    return seen


def _parsed(text: str) -> Stats | None:
    try:
        return parse_stats(text)
    except NotUnderstoodError:
        return None


def _since(side: str, *stats: Stats) -> dict[str, float]:
    """Return the latest beginning: whichever of the counters somebody clears, it moves."""
    starts = [counted.start_s for counted in stats if counted.start_s is not None]
    return {side + SINCE: max(starts)} if starts else {}

"""Rules about tickets: two sites, each a cluster of its own, of which booth lets one serve."""

from __future__ import annotations

from collections.abc import Iterator

from strakes.failover.booth import booths
from strakes.failover.known_options import meant, options_of
from strakes.failover.rules.mounts import ADDRESSES
from strakes.failover.rules.rule import BOOTH, OWN, rule
from strakes.failover.setup import Setup


@rule("pacemaker").warning(
    reason="A service that depends on a ticket runs only while the ticket is granted: without booth, or after the "
    "ticket is lost, nothing is served.",
    remedy="Remove rsc_ticket if there is only one site.",
    source=OWN,
)
def placed_by_a_ticket(setup: Setup) -> Iterator[str]:
    """Find constraints that ask for a ticket where booth does not run."""
    booth = any("booth" in primitive.agent for primitive in setup.pacemaker.primitives)
    for constraint in setup.pacemaker.constraints("rsc_ticket"):
        if not booth:
            yield f"cib: {constraint.get('id')} asks for the ticket {constraint.get('ticket')}"


@rule("pacemaker", "booth").error(
    reason="Booth grants only the tickets in its file, to the sites in its file: any other ticket is never granted, "
    "and a site at another address is not found.",
    remedy="Use one name for the ticket in booth's file and in rsc_ticket; set site= to the address that moves with "
    "booth-site.",
    source=BOOTH,
)
def ticket_or_site_unknown(setup: Setup) -> Iterator[str]:
    """Find tickets, addresses and files of booth that one side names and the other one does not."""
    named = list(booths(setup))
    known = {name for booth in named for name in booth.tickets}
    for constraint in setup.pacemaker.constraints("rsc_ticket"):
        if constraint.get("ticket", "") not in known:
            names = ", ".join(sorted(known))
            yield f"cib: {constraint.get('id')} asks for {constraint.get('ticket')}, booth has {names}"
    brought_up = {one.values.get("ip", "") for one in setup.pacemaker.services if one.agent in ADDRESSES}
    for one in setup.pacemaker.services:
        if one.agent != "booth-site":
            continue
        given = one.values.get("config", "booth").removeprefix("/etc/booth/").removesuffix(".conf")
        mine = [booth for booth in named if booth.name == given]
        if not mine:
            yield f"cib: {one.id} has config={given}, and there is no etc/booth/{given}.conf"
        for booth in mine:
            if not brought_up & set(booth.sites):
                yield f"{given}.conf: no IPaddr2 has the address of a site ({', '.join(booth.sites)})"


@rule("booth").error(
    reason="Booth grants a ticket only if more than half of sites and arbitrators agree: with two members both are "
    "needed, and when one site is lost the other never gets the ticket.",
    remedy="Set arbitrator to an address at a third place; use an odd number of members, each listed once.",
    source=BOOTH,
)
def sites_cannot_agree(setup: Setup) -> Iterator[str]:
    """Find an even number of members of booth, and members that are given twice."""
    for booth in booths(setup):
        members = (*booth.sites, *booth.arbitrators)
        manual = booth.tickets and all(own.get("mode", "").lower() == "manual" for own in booth.tickets.values())
        if len(members) % 2 == 0 and not manual:
            yield f"{booth.name}.conf: {len(booth.sites)} sites and {len(booth.arbitrators)} arbitrators"
        for member in sorted({member for member in members if members.count(member) > 1}):
            yield f"{booth.name}.conf: {member} is given twice"


@rule("booth").warning(
    reason="Anybody who can send packets to booth's port can take the ticket from the site that serves.",
    remedy="authfile = /etc/booth/booth.key, made by booth-keygen, the same on all members.",
    source=BOOTH,
)
def sites_not_authenticated(setup: Setup) -> Iterator[str]:
    """Find files of booth without a key."""
    for booth in booths(setup):
        if not booth.settings.get("authfile"):
            yield f"{booth.name}.conf: there is no authfile"


@rule("booth").error(
    reason="Booth refuses its file, or uses its default instead of the intended value.",
    remedy="Write it as in boothd(8).",
    source=BOOTH,
)
def booth_option_misspelt(setup: Setup) -> Iterator[str]:
    """Find settings that booth does not know, and values that it does not take."""
    for booth in booths(setup):
        blocks = [("", booth.settings, options_of("booth"))]
        blocks += [(f"{name}: ", own, options_of("booth ticket")) for name, own in booth.tickets.items()]
        for where, own, known in blocks:
            for name, value in own.items():
                if name not in known:
                    guess = meant(name, known)
                    yield f"{booth.name}.conf: {where}{name}" + (f", which may mean {guess}" if guess else "")
                elif complaint := known[name].complaint(value):
                    yield f"{booth.name}.conf: {where}{name} = {value}, which ought to be {complaint}"

"""Queries of a node through a network that loses, repeats, alters and delays data: a right answer or an error."""

from __future__ import annotations

import random
import socket
import threading
import time
from contextlib import suppress

from security.campaign.world import World, require
from strakes.base.errors import EnvironmentLacksError
from strakes.runs import nodes_hub as hub_module
from strakes.runs.choice import Launch
from strakes.runs.nodes_hub import Hub

_LIMIT_S = 5.0


class Proxy:
    """TCP proxy that randomly loses, repeats, alters or delays data, or cuts the connection."""

    def __init__(self, towards: int, draw: random.Random) -> None:
        self._towards, self._draw = towards, draw
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.done: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._relay, args=(near,), daemon=True).start()

    def _relay(self, near: socket.socket) -> None:
        with near, suppress(OSError), socket.create_connection(("127.0.0.1", self._towards)) as far:
            passing = [
                threading.Thread(target=self._pass, args=(*pair, random.Random(self._draw.random())), daemon=True)
                for pair in ((near, far), (far, near))
            ]
            for thread in passing:
                thread.start()
            for thread in passing:
                thread.join()

    def _pass(self, source: socket.socket, sink: socket.socket, draw: random.Random) -> None:
        with suppress(OSError):
            while piece := source.recv(65536):
                fault = draw.choices(["none", "lose", "repeat", "change", "delay", "cut"], [60, 3, 3, 3, 3, 1])[0]
                if fault != "none":
                    self.done.append(fault)
                if fault == "lose":
                    continue
                if fault == "change":
                    at = draw.randrange(len(piece))
                    piece = piece[:at] + bytes([piece[at] ^ 1 << draw.randrange(8)]) + piece[at + 1 :]
                if fault == "delay":
                    time.sleep(draw.uniform(0.0, 0.3))
                if fault == "cut":
                    break
                sink.sendall(piece * (2 if fault == "repeat" else 1))
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def exchange_with_faults(world: World, draw: random.Random) -> None:
    """Query one node through the proxy. Raises BrokenError if the hub accepts wrong data."""
    script = world.place / "launcher"
    launch = Launch(
        "command", ranks=1, ranks_per_node=1, hosts=("localhost",), command=f"{script} {{hosts}} {{engine}}"
    )
    limits = {"_ANSWER_S": _LIMIT_S, "_LAGGARD_S": _LIMIT_S, "_START_S": 4 * _LIMIT_S, "_PROOF_S": _LIMIT_S}
    before = {name: getattr(hub_module, name) for name in limits}
    hub = Hub(launch)
    proxy = Proxy(int(hub.where.rpartition(":")[2]), draw)
    # The launcher replaces the hub's address by the proxy's.
    mark = " ".join(f"{name}={world.environment[name]}" for name in ("STRAKES_CAMPAIGN",))
    script.write_text(
        f"#!/bin/sh\nshift\nexport {mark}\nfor word; do shift; case $word in *:*) word=127.0.0.1:{proxy.port};; esac\n"
        'set -- "$@" "$word"; done\nexec "$@"\n'
    )
    script.chmod(0o755)
    try:
        for name, value in limits.items():
            setattr(hub_module, name, value)
        with hub:
            (agent,) = hub.agents
            require(agent.host != "" and int(agent.facts["cpus"]) > 0, f"wrong facts were believed: {agent.facts}")
            for _ in range(3):
                reading = hub.clock(agent)
                # Hub and agent run on this machine, and no fault steps the agent's clock.
                require(abs(reading.ahead_s) <= reading.uncertainty_s + 0.001, f"a wrong clock was believed: {reading}")
    except EnvironmentLacksError:
        pass
    finally:
        for name, value in before.items():
            setattr(hub_module, name, value)
        proxy.close()
        world.drawn += [f"message: {fault}" for fault in proxy.done]

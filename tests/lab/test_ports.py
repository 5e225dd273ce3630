from __future__ import annotations

import socket

import pytest

from strakes.base.errors import EnvironmentLacksError
from strakes.lab import network


def test_a_port_in_use_is_never_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind((network.LOOPBACK, 0))
        taken.listen()
        number = taken.getsockname()[1]
        assert network.is_listening(number)
        monkeypatch.setattr(network, "_LOWEST", number)
        monkeypatch.setattr(network, "_HIGHEST", number + 1)
        with pytest.raises(EnvironmentLacksError, match="no free ports"):
            network.free_ports(1)
    assert network.free_ports(1) == (number,) and not network.is_listening(number)

from __future__ import annotations

import socket

import pytest

from strakes.errors import EnvironmentLacksError
from strakes.lab import ports


def test_a_port_that_somebody_listens_on_is_never_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind((ports.LOOPBACK, 0))
        taken.listen()
        number = taken.getsockname()[1]
        assert ports.is_listening(number)
        monkeypatch.setattr(ports, "_LOWEST", number)
        monkeypatch.setattr(ports, "_HIGHEST", number + 1)
        with pytest.raises(EnvironmentLacksError, match="no free ports"):
            ports.free_ports(1)
    assert ports.free_ports(1) == (number,)
    assert not ports.is_listening(number)


def test_several_ports_differ() -> None:
    assert len(set(ports.free_ports(50))) == 50

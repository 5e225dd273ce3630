"""The tables of options match the metadata of the installed programs and judge values as these do."""

from __future__ import annotations

import pytest

from failover import options_of_programs
from failover.clusters import need
from strakes.failover.known_options import Option, meant, options_of


def _names(words: str) -> set[str]:
    return {word.partition(":")[0].rstrip("!*") for word in words.split()}


def test_the_tables_have_every_option_of_pacemaker_and_drbd() -> None:
    need("/usr/lib/pacemaker/pacemaker-schedulerd", "/lib/drbd/drbdsetup-84", "drbdsetup")
    for section, words in options_of_programs.cluster_properties().items():
        assert _names(words) <= set(options_of(section))
    for version, program in (("9", "/usr/sbin/drbdsetup"), ("8.4", "/lib/drbd/drbdsetup-84")):
        for section, words in options_of_programs.drbd_options(program).items():
            assert _names(words) <= set(options_of(f"{version} {section}"))


def test_the_tables_have_every_parameter_of_the_agents_of_a_pair() -> None:
    need("fence_ipmilan", "fence_apc_snmp", "/usr/lib/ocf/resource.d/heartbeat/Filesystem")
    for agent in ("fence_ipmilan", "fence_apc_snmp"):
        assert _names(" ".join(options_of_programs.parameters(f"/usr/sbin/{agent}", "-o", "metadata"))) <= set(
            options_of(agent)
        )
    for agent in ("heartbeat:Filesystem", "heartbeat:exportfs", "heartbeat:IPaddr2", "pacemaker:ping"):
        words = options_of_programs.parameters("crm_resource", "--show-metadata", f"ocf:{agent}")
        assert _names(" ".join(words)) <= set(options_of(agent))


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("bool", ("true", "No", "1"), ("maybe", "2", "")),
        ("seconds", ("5", "60", "5.5"), ("5s", "five")),
        ("time", ("60s", "2min", "PT1M", "0", "5 minutes"), ("soon", "1d")),
        ("score", ("100", "-INFINITY", "infinity"), ("high", "1e3")),
        ("A|B|C", ("A", "c"), ("D", "")),
        ("1..120", ("1", "120"), ("0", "121", "10k", "1s")),
        ("250..4194304k", ("250", "100M", "4G"), ("200", "200G", "fast")),
        ("32..131072b", ("36k", "8000"), ("16", "1M")),
    ],
)
def test_a_value_is_accepted_or_gets_a_complaint(kind: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    option = Option("x", kind)
    assert not [value for value in good if option.complaint(value)] and all(option.complaint(value) for value in bad)


def test_a_misspelt_name_gets_a_suggestion_and_another_word_does_not() -> None:
    known = options_of("fence_ipmilan")
    assert meant("pasword_script", known) == "password_script" and meant("Lanplus", known) == "lanplus"
    assert not meant("volume", known)

from __future__ import annotations

from typing import get_args

import pytest

from strakes.cli.failover_text import print_rehearsal
from strakes.failover.rehearsal_room import Ending, RoomPart, Scene
from strakes.failover.rehearse import Rehearsal
from strakes.failover.times import NO_WAIT

ENDINGS = get_args(Ending)


def test_every_outcome_of_a_rehearsal_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    scenes = tuple(
        Scene(
            failures=(RoomPart("node", "mds1"),),
            ending=ending,
            fenced=("mds1",),
            places={"mgs": "mds2", "mdt0": ""},
            said=("mgs continues with the disk of the other node",),
            split_brain="",
            modelled=True,
            cuts_every_heartbeat=False,
            wait=NO_WAIT,
        )
        for ending in ENDINGS
    )
    print_rehearsal(Rehearsal("plan", scenes, (), not_simulated=2))
    printed = capsys.readouterr().out
    assert [ending for ending in ENDINGS if ending not in printed] == [] and "mgs mds2, mdt0 nobody" in printed
    assert f"{len(ENDINGS)} single failures, 3 end the service.\n" in printed and "nowhere (not known of 2," in printed

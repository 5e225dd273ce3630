"""The layout commands printed for Lustre are identical to commands that a real lfs accepted."""

from __future__ import annotations

import pytest

from strakes.base.units import GIB, MIB
from strakes.tuning.advise_choose import SizeClass
from strakes.tuning.advise_paste import lustre_layout, progressive
from targets.lustre.recorded import recording


@pytest.mark.parametrize(
    ("printed", "name", "path"),
    [
        (lustre_layout(2, 4 * MIB), "setstripe_c2_S4M", "c2s4m"),
        (lustre_layout(2, MIB), "setstripe_dir_c2", "d_c2"),
        (lustre_layout(4, None), "setstripe_c4", "c4"),
        (
            progressive((SizeClass(MIB, 1, ()), SizeClass(64 * MIB, 2, ()), SizeClass(GIB, -1, ()))),
            "setstripe_dir_pfl",
            "d_pfl",
        ),
    ],
)
def test_a_printed_layout_was_accepted_by_a_real_lfs(printed: str, name: str, path: str) -> None:
    recorded = recording(f"client/{name}.txt")
    assert printed.replace("DIR", path) == recorded.command and recorded.done.status == 0

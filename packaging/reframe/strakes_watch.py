"""A ReFrame check whose references are learned: it fails where the watch says SLOWER since the last maintenance.

Run it after an upgrade: ``reframe -c strakes_watch.py -S maintenance=2026-11-22T06:00 -r``. It types no reference: what
the file system did in the four weeks before is the reference, and the interval decides.
"""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, run_before, sanity_function, variable


@rfm.simple_test
class StrakesWatchCheck(rfm.RunOnlyRegressionTest):
    """``maintenance``: the moment of the upgrade; ``store``: where the watch keeps what it saw."""

    descr = "What an upgrade cost, by strakes watch compare"
    valid_systems = ["*"]  # noqa: RUF012 - as ReFrame wants it
    valid_prog_environs = ["*"]  # noqa: RUF012 - as ReFrame wants it
    executable = "strakes"
    maintenance = variable(str)
    store = variable(str, value="")

    @run_before("run")
    def ask(self):
        """Compare before and after."""
        self.executable_opts = ["watch", "compare", "--before", self.maintenance, "--after", self.maintenance]
        if self.store:
            self.executable_opts += ["--store", self.store]

    @sanity_function
    def is_not_slower(self):
        """Fail where a figure is SLOWER, or where none could be compared."""
        return sn.all(
            [
                sn.assert_not_found(r": SLOWER,", self.stdout),
                sn.assert_found(r": (FASTER|SAME|INCONCLUSIVE),", self.stdout),
            ]
        )

    @performance_function("%")
    def largest_cost(self):
        """Tell by how much the slowest figure changed."""
        return sn.max(sn.extractall(r"latency ([+-][\d.]+)%", self.stdout, 1, float))

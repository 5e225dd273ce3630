"""A ReFrame check with learned references: it fails if strakes watch says SLOWER since the last maintenance.

Run it after an upgrade: ``reframe -c strakes_watch.py -S maintenance=2026-11-22T06:00 -r``. No reference values are
written down: the reference is what the file system did in the four weeks before, and the interval decides.
"""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, run_before, sanity_function, variable


@rfm.simple_test
class StrakesWatchCheck(rfm.RunOnlyRegressionTest):
    """``maintenance``: the time of the upgrade; ``store``: the store of strakes watch."""

    descr = "What an upgrade cost, by strakes watch compare"
    valid_systems = ["*"]  # noqa: RUF012 - ReFrame needs it like this
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
        """Fail if a figure is SLOWER, or if none could be compared."""
        return sn.all(
            [
                sn.assert_not_found(r": SLOWER,", self.stdout),
                sn.assert_found(r": (FASTER|SAME|INCONCLUSIVE),", self.stdout),
            ]
        )

    @performance_function("%")
    def largest_cost(self):
        """Return by how many percent the slowest figure changed."""
        return sn.max(sn.extractall(r"latency ([+-][\d.]+)%", self.stdout, 1, float))

"""Expected imbalance of directories that a hash distributes over targets (balls into bins).

Of n directories, the busiest of m targets gets n / m + c sqrt(n / m), if n is well above m (Raab and Steger, RANDOM
1998). c is the expected maximum of m standard normal values (Tippett, Biometrika 17 (1925) 364).
"""

from __future__ import annotations

import math


def busiest_load(directories: int, targets: int) -> float:
    """Return the expected load of the busiest target, divided by the mean load of all targets.

    >>> round(busiest_load(6, 3), 2), round(busiest_load(600, 3), 2)
    (1.6, 1.06)
    """
    return 1 + _largest_normal(targets) / math.sqrt(directories / targets)


def directories_within(excess: float, targets: int) -> int:
    """Return the fewest directories for which the busiest target has at most 1 + ``excess`` times the mean load.

    >>> directories_within(0.1, 3)
    215
    """
    return math.ceil(targets * (_largest_normal(targets) / excess) ** 2)


def _largest_normal(count: int) -> float:
    import numpy as np
    from scipy.special import ndtr

    x = np.linspace(-8.0, 8.0, 4001)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return float(np.sum(count * x * density * ndtr(x) ** (count - 1)) * (x[1] - x[0]))

"""Prediction of one value of a Gaussian process after others (universal kriging)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def krige(values: Array, covariance: Array) -> tuple[float, float, float]:
    """Return mean and standard deviation of the last value after the others, and the logarithm of their evidence.

    All have an unknown common term with a flat prior (universal kriging; Rasmussen and Williams 2006, section 2.7).
    """
    inverse = np.linalg.inv(covariance[:-1, :-1])
    cross, ones = covariance[:-1, -1], np.ones(len(values))
    precision = ones @ inverse @ ones
    common = ones @ inverse @ values / precision
    rest = values - common
    mean = common + cross @ inverse @ rest
    variance = covariance[-1, -1] - cross @ inverse @ cross + (1 - ones @ inverse @ cross) ** 2 / precision
    log_evidence = -(rest @ inverse @ rest - np.linalg.slogdet(inverse)[1] + math.log(precision)) / 2
    return float(mean), math.sqrt(max(0.0, float(variance))), float(log_evidence)


def walk(size: Array) -> Array:
    """Return the covariance (n, n) of a random exponent and of a random walk, both of unit variance, over log sizes."""
    return np.asarray(np.outer(size, size) + np.minimum.outer(size, size))

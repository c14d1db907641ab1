"""Helpers of several tests."""

import numpy as np


def largest(values):
    """The largest magnitude."""
    return np.abs(values).max()

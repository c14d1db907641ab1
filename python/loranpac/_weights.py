"""Weights of samples."""

from __future__ import annotations

from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loranpac._labels import _plain_array

Weights = Union[NDArray[np.float64], None]


def checked_weights(sample_weight: ArrayLike | None, samples: int) -> Weights:
    """One weight per sample; the engine checks their values."""
    if sample_weight is None:
        return None
    weights = np.ascontiguousarray(_plain_array(sample_weight), dtype=np.float64)
    if weights.shape != (samples,):
        raise ValueError(f"sample_weight: one weight per sample, shape ({samples},), is expected, not {weights.shape}")
    return weights


def learnable(
    X: NDArray[np.float32], y: NDArray[Any], sample_weight: ArrayLike | None
) -> tuple[NDArray[np.float32], NDArray[Any], Weights]:
    """The samples whose weight is not 0, which are learned, with their weights."""
    weights = checked_weights(sample_weight, len(y))
    if weights is None or (weights != 0).all():
        return X, y, weights
    chosen = weights != 0
    if not chosen.any():
        raise ValueError("sample_weight: all weights are zero, so that there is nothing to learn")
    return X[chosen], y[chosen], weights[chosen]

"""Labels: conversion between the arrays of users and the labels of the engine."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets


def _plain_array(values: Any) -> Any:
    """A tensor on any device as an array; anything else unchanged."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":
            values = values.float()
        return values.numpy()
    return values


def _label_array(labels: Any) -> Any:
    """Labels, as an array of objects if NumPy would change them.

    NumPy converts numbers beside strings to strings and drops trailing NULs, so that several classes would become one.
    """
    labels = _plain_array(labels)
    if not isinstance(labels, np.ndarray) and isinstance(labels, Iterable):
        array = np.asarray(labels)
        if array.dtype.kind == "U" and array.ndim == 1:
            values = list(labels)
            if any(not isinstance(value, str) or value.endswith("\0") for value in values):
                return np.array(values, dtype=object)
    return labels


def _targets(y: NDArray[Any]) -> NDArray[Any]:
    """Labels, checked as scikit-learn requires."""
    if y.size and isinstance(y[0], bytes):
        raise TypeError(f"y: a label is a whole number or a text, not the bytes {bytes(y[0])!r}")
    if y.dtype != object or not any(isinstance(label, str) for label in y):
        # Numbers and texts cannot be sorted together; _union decides whether both are allowed.
        check_classification_targets(y)
    if y.dtype.kind == "u":
        if y.size and y.max() > np.iinfo(np.int64).max:
            raise ValueError(f"y: whole numbers below 2**63 are expected as labels, not {y.max()}")
        y = y.astype(np.int64) if y.dtype.itemsize == 8 else y
    return y


def _plain(label: Any) -> Any:
    """A label of the engine: an int for whole numbers and truth values, a str for texts."""
    if isinstance(label, (bool, np.bool_, Integral)):
        return int(label)
    if isinstance(label, (float, np.floating)) and float(label).is_integer():
        return int(label)
    if isinstance(label, str):
        return str(label)
    raise TypeError(f"y: a label is a whole number or a text, not {label!r}")


def _coded(y: NDArray[Any], classes: NDArray[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    """Labels as indices into a list of names."""
    names = [_plain(label) for label in classes]
    if classes.dtype == object:
        place = {name: number for number, name in enumerate(names)}
        return np.array([place[_plain(label)] for label in y], dtype=np.int64), names
    return np.searchsorted(classes, y).astype(np.int64), names


def _union(parts: list[NDArray[Any]], mixed: bool = False) -> NDArray[Any]:
    """All classes, sorted. Numbers beside texts are an error, unless the model already has both."""
    kinds = {isinstance(_plain(label), str) for array in parts if array.dtype == object for label in array}
    kinds |= {array.dtype.kind in "UST" for array in parts if array.size and array.dtype != object}
    if len(kinds) < 2:
        return np.unique(np.concatenate(parts))
    if mixed:
        return _sorted({_plain(label) for array in parts for label in array})
    raise ValueError("y: some labels are texts and some are numbers; within a model they must be of one kind")


def _sorted(labels: Iterable[Any]) -> NDArray[Any]:
    """Labels as the classes of a model: numbers first, then texts."""
    labels = sorted(labels, key=lambda label: (isinstance(label, str), label))
    return np.asarray(_label_array(labels))


def _some(values: Any) -> str:
    values = [repr(value.item() if isinstance(value, np.generic) else value) for value in values]
    return ", ".join(values[:5]) + (f" and {len(values) - 5} more" if len(values) > 5 else "")

"""From an encoder to features: any callable will do, and what it has computed is kept in a file.

>>> import numpy as np
>>> from loranpac.features import embed
>>> def encode(texts):  # stands for a model
...     return np.array([[len(text), text.count("e")] for text in texts])
>>> embed(encode, ["one", "three", "seventeen"], batch_size=2)
array([[3., 1.],
       [5., 2.],
       [9., 4.]], dtype=float32)
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loranpac._labels import _label_array, _plain_array
from loranpac._models import Path


def embed(
    encode: Callable[[list[Any]], ArrayLike],
    items: Iterable[Any],
    *,
    batch_size: int = 64,
    cache: Path | None = None,
    key: str | None = None,
) -> NDArray[np.float32]:
    """Features of items (texts, images, anything), batch by batch.

    Parameters
    ----------
    encode : callable
        Takes a list of items, gives their features: an array or tensor of one row per item.
    items : iterable
        What to encode.
    batch_size : int
        How many at a time.
    cache : path, optional
        An npz file. If it is there and was made from the same ``key``, features are read from it; otherwise it is written.
    key : str, optional
        What the features depend on besides texts, which are looked at themselves: the encoder's name, at least. For items that
        are not texts it must be given where there is a cache, and change with them.

    Returns
    -------
    ndarray of shape (n_items, n_features), float32
    """
    if cache is not None:
        items = list(items)
        if all(isinstance(item, str) for item in items):
            key = f"{key or ''} {_digest(items)}"
        elif key is None:
            raise ValueError("key: say what the features depend on (the encoder, the items), so that the cache can be trusted")
        if os.path.exists(cache):
            with np.load(cache, allow_pickle=False) as stored:
                if "key" not in stored or "x" not in stored:
                    raise ValueError(f"cache: {os.fspath(cache)!r} is there already, and was not written by embed")
                if str(stored["key"]) == key:
                    return stored["x"]
    iterator, batches = iter(items), []
    while batch := list(islice(iterator, batch_size)):
        features = np.asarray(_plain_array(encode(batch)), dtype=np.float32)
        if features.ndim != 2 or len(features) != len(batch):
            raise ValueError(f"encode: one row per item is expected, ({len(batch)}, features), not {features.shape}")
        batches.append(features)
    if not batches:
        raise ValueError("items: there are none")
    x = np.concatenate(batches)
    if cache is not None:
        _replace(cache, x=x, key=np.array(key))
    return x


def save(
    path: Path,
    x_train: ArrayLike,
    y_train: Sequence[Any],
    x_test: ArrayLike,
    y_test: Sequence[Any],
    *,
    dtype: Any = np.float32,
) -> Path:
    """Write a feature file for ``loranpac run``, ``loranpac bench`` and :func:`loranpac.bench.run`."""
    arrays = {"x_train": (x_train, y_train), "x_test": (x_test, y_test)}
    checked = {}
    for name, (x, y) in arrays.items():
        features, labels = np.asarray(_plain_array(x), dtype=dtype), labels_of(y)
        if features.ndim != 2 or labels.shape != (len(features),):
            shapes = f"{features.shape} and {labels.shape}"
            raise ValueError(f"{name}: features of shape (n, d) and n labels are expected, not {shapes}")
        checked[name], checked["y" + name[1:]] = features, labels
    _replace(path, **checked)
    return path


def labels_of(y: Any) -> NDArray[Any]:
    """Labels as an array that can be written without pickles."""
    labels = np.asarray(_label_array(y))
    if labels.dtype != object:
        return labels
    texts = np.array([str(label) for label in labels])
    if len(set(texts.tolist())) < len(set(labels.tolist())):
        raise ValueError("y: labels that are different would be the same texts in a file, as 7 and '7' or 'a' and 'a\\0'")
    return texts


def _digest(texts: list[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _replace(path: Path, **arrays: Any) -> None:
    """Write an npz file, all or nothing."""
    beside = f"{os.fspath(path)}.{os.getpid()}.new"
    try:
        with open(beside, "wb") as file:
            np.savez(file, **arrays)
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise

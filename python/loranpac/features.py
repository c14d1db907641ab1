"""Features from any encoder that is a callable, cached in files.

:class:`loranpac.Encoder` has the encoders of loranpac itself, which need no other library.

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
    labels: Sequence[Any] | None = None,
) -> NDArray[np.float32]:
    """Features of items (texts, images, anything), batch by batch.

    Parameters
    ----------
    encode : callable
        Takes a list of items and returns their features: an array or tensor of one row per item.
    items : iterable
        The items.
    batch_size : int
        Items per call of ``encode``.
    cache : path, optional
        An npz file. If it exists and was made with the same ``key``, the features are read from it; otherwise it is written.
    key : str, optional
        Everything that the features depend on, the name of the encoder at least. Texts are part of the key by themselves. For
        other items a cache requires a key, which must change with them.
    labels : sequence, optional
        One label per item, written into the cache as ``y``: ``loranpac learn MODEL CACHE`` then learns from the file.

    Returns
    -------
    ndarray of shape (n_items, n_features), float32

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from loranpac.features import embed
    >>> path = os.path.join(tempfile.mkdtemp(), "week1.npz")
    >>> x = embed(lambda texts: [[len(text), 1] for text in texts], ["hi", "hello"], cache=path, labels=["short", "long"])
    >>> sorted(np.load(path))
    ['key', 'x', 'y']
    """
    y = None
    if labels is not None:
        if cache is None:
            raise ValueError("labels: they are written into the cache; give its path as cache=...")
        items, y = list(items), labels_of(labels)
        if y.shape != (len(items),):
            raise ValueError(f"labels: one label per item is expected, ({len(items)},), not {y.shape}")
    if cache is not None:
        items = list(items)
        if all(isinstance(item, str) for item in items):
            key = f"{key or ''} {_digest(items)}"
        elif key is None:
            raise ValueError("key: give a text that changes with the encoder and the items; a cache of other items needs it")
        stored = _stored(cache)
        if stored is not None and str(stored["key"]) == key:
            if y is not None and not ("y" in stored and np.array_equal(stored["y"], y)):
                _replace(cache, **{**stored, "y": y})
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
        _replace(cache, x=x, key=np.array(key), **({} if y is None else {"y": y}))
    return x


def save(
    path: Path,
    x_train: ArrayLike,
    y_train: Sequence[Any],
    x_test: ArrayLike | None = None,
    y_test: Sequence[Any] | None = None,
    *,
    dtype: Any = np.float32,
) -> Path:
    """Write features and labels into an npz file.

    With two arrays the file is for ``loranpac learn`` and the other commands on models. With four it is for ``loranpac run``,
    ``loranpac bench`` and :func:`loranpac.bench.run`, too.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from loranpac.features import save
    >>> path = save(os.path.join(tempfile.mkdtemp(), "monday.npz"), [[0.0, 1.0], [1.0, 0.0]], ["cat", "dog"])
    >>> sorted(np.load(path))
    ['x', 'y']
    """
    if (x_test is None) != (y_test is None):
        raise ValueError("x_test, y_test: both or neither are expected")
    arrays = {"x": (x_train, y_train)} if x_test is None else {"x_train": (x_train, y_train), "x_test": (x_test, y_test)}
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
    """Labels as an array that NumPy writes without pickles."""
    labels = np.asarray(_label_array(y))
    if labels.dtype != object:
        return labels
    texts = np.array([str(label) for label in labels])
    if len(set(texts.tolist())) < len(set(labels.tolist())):
        raise ValueError("y: labels that are different would be the same texts in a file, as 7 and '7' or 'a' and 'a\\0'")
    return texts


def _stored(cache: Path) -> dict[str, NDArray[Any]] | None:
    """The arrays of a cache, or None if there is no file."""
    if not os.path.exists(cache):
        return None
    with np.load(cache, allow_pickle=False) as stored:
        if "key" not in stored or "x" not in stored:
            raise ValueError(f"cache: {os.fspath(cache)!r} exists, and was not written by embed")
        return dict(stored)


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

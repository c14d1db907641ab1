"""Many machines: Dask workers learn shards of the data, and the models are merged by path, in a tree.

The scheduler transfers paths only. All machines need access to the folder of the models.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from loranpac import _engine
from loranpac._estimators import LoRanPACClassifier
from loranpac._inputs import is_raw
from loranpac._labels import _label_array
from loranpac._models import Path, check_name, merge_models
from loranpac._parameters import checked_width

try:
    import dask
except ImportError as error:
    raise ImportError("loranpac.dask needs Dask: pip install 'loranpac[dask]'") from error


def fit(
    shards: Any,
    out: Path,
    estimator: LoRanPACClassifier | None = None,
    *,
    workspace: Path | None = None,
    fan_in: int = 4,
) -> LoRanPACClassifier:
    """Learn shards of samples on Dask workers, and merge their models into one.

    The result equals that of one process which learns everything, up to rounding, unless ``max_rank`` is reached. It depends
    only on the order of the shards. After an interruption the same call resumes: shards that were learned are in the
    workspace, which is removed at the end.

    Parameters
    ----------
    shards : Dask bag, or an iterable of delayed
        Each shard is a pair ``(X, y)``. A bag has a sample ``(x, y)`` in each element; its partitions are the shards. If the
        estimator has an encoder, which all workers must be able to open, samples can be texts or images.
    out : path
        The model, a folder ``NAME.lrp`` that does not exist yet.
    estimator : LoRanPACClassifier, optional
        Its parameters are used, not what it has learned. ``width="auto"`` is chosen from ``expected_samples``, the number of samples
        in all shards.
    workspace : path, optional
        A folder that all workers can access; the parent of ``out`` by default. Models of shards are in a subfolder of it until
        the end. They belong to this data: after an interrupted call, remove that subfolder before a call with other data and the
        same estimator.
    fan_in : int
        The number of models that are merged at a time.

    Returns
    -------
    LoRanPACClassifier
        The model, loaded from ``out``.
    """
    check_name(out)
    if os.path.exists(out):
        raise FileExistsError(f"{os.fspath(out)!r} already exists")
    if fan_in < 2:
        raise ValueError(f"fan_in: a whole number of at least 2 is expected, not {fan_in!r}")
    estimator = LoRanPACClassifier() if estimator is None else clone(estimator)
    parts = list(shards.to_delayed() if hasattr(shards, "to_delayed") else shards)
    if not parts:
        raise ValueError("shards: there are none")
    if not isinstance(estimator, LoRanPACClassifier):
        raise TypeError(f"estimator: a LoRanPACClassifier is expected, not {type(estimator).__name__}, which cannot be saved")
    if checked_width(estimator) == "auto":
        # One width for all shards, which are merged.
        width = _engine.auto_width(estimator.expected_samples, estimator.keep_samples, estimator.lift)
        estimator.set_params(width=float("inf") if width is None else width)
    out = os.path.abspath(out)
    # Another estimator, or other shards as far as Dask identifies them, use another subfolder.
    keys = [str(getattr(part, "key", "")) for part in parts] if hasattr(shards, "to_delayed") else len(parts)
    identity = json.dumps([{**estimator.get_params(), "n_jobs": None, "verbose": 0}, keys], sort_keys=True, default=str)
    mark = hashlib.sha256(identity.encode()).hexdigest()[:12]
    work = os.path.join(os.path.abspath(workspace or os.path.dirname(out)), f"{os.path.basename(out)}.work-{mark}")
    os.makedirs(work, exist_ok=True)
    learn = dask.delayed(_learn, pure=False)
    merge = dask.delayed(_merge, pure=False)
    level = [learn(part, estimator, os.path.join(work, f"shard-{number:05}.lrp")) for number, part in enumerate(parts)]
    height = 0
    while len(level) > 1:
        groups = [level[first : first + fan_in] for first in range(0, len(level), fan_in)]
        height += 1
        level = [merge(group, os.path.join(work, f"merge-{height}-{number:05}.lrp")) for number, group in enumerate(groups)]
    (path,) = dask.compute(level[0])
    if path is None:
        raise ValueError("shards: there are no samples in them")
    whole = LoRanPACClassifier.load(path, n_jobs=estimator.n_jobs)
    whole._learner.prepare()
    whole.save(out)
    del whole
    shutil.rmtree(work, ignore_errors=True)
    return LoRanPACClassifier.load(out, n_jobs=estimator.n_jobs)


def _learn(shard: Any, estimator: LoRanPACClassifier, path: str) -> str | None:
    """Learn a shard, unless its model exists; None for a shard without samples."""
    if not os.path.exists(path):
        X, y = _arrays(shard)
        if len(y) == 0:
            return None
        estimator = clone(estimator).set_params(n_jobs=_threads(estimator.n_jobs))
        _appear(path, lambda beside: estimator.fit(X, y).save(beside))
    return path


def _merge(paths: Iterable[str | None], path: str) -> str | None:
    """Merge models, unless the result exists."""
    models = [model for model in paths if model is not None]
    if not models:
        return None
    if not os.path.exists(path):
        # Samples that are in two shards count twice.
        _appear(path, lambda beside: merge_models(models, beside, again=True, prepare=False, n_jobs=_threads(None)))
    return path


def _appear(path: str, write: Any) -> None:
    """Write a model and rename it to its path, so that other workers see all of it or nothing."""
    beside = f"{path[: -len('.lrp')]}-{uuid.uuid4().hex}.lrp"
    try:
        write(beside)
        os.rename(beside, path)
    except OSError:
        # Another worker was faster.
        if not os.path.exists(path):
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _arrays(shard: Any) -> tuple[Any, Any]:
    """X and y of a shard, which is a pair of arrays, a tuple of raw inputs and labels, or a sequence of samples (x, y)."""
    if isinstance(shard, tuple) and len(shard) == 2 and is_raw(shard[0]):
        return shard
    if isinstance(shard, (tuple, list)) and len(shard) == 2 and np.ndim(shard[0]) == 2:
        return shard[0], shard[1]
    samples = list(shard)
    if not samples:
        return (), ()
    try:
        X, y = [x for x, _ in samples], np.asarray(_label_array([y for _, y in samples]))
        return (X if is_raw(X) else np.stack([np.asarray(x) for x in X])), y
    except (TypeError, ValueError) as error:
        raise ValueError("shards: a shard is a pair (X, y), or a sequence of samples (x, y)") from error


def _threads(asked: int | None) -> int | None:
    """The threads that the user has chosen, or else those of the worker."""
    if asked is not None:
        return asked
    try:
        from distributed import get_worker

        return get_worker().state.nthreads
    except (ImportError, ValueError):
        return None

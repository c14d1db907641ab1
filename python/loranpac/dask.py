"""Many machines: every shard of the data is learned where it lies, and models are merged by path, in a tree.

Only paths go through the scheduler. All machines need to see the folder in which the models are written.
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

from loranpac._estimators import LoRanPACClassifier
from loranpac._labels import _label_array
from loranpac._models import Path, check_name, merge_models

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
    """Learn shards of samples wherever Dask puts them, and merge what they have become into one model.

    The result is that of one process which learns everything, up to rounding, as long as no cap on the basis is met. It
    depends on the order of the shards only. If it is broken off, the same call goes on where it was: shards that have
    been learned are in the workspace, which is removed in the end.

    Parameters
    ----------
    shards : Dask bag, or an iterable of delayed
        Each shard is a pair ``(X, y)``. A bag has a sample ``(x, y)`` in each element; its partitions are the shards.
    out : path
        The model, a folder that does not exist yet and whose name ends with ``.lrp``.
    estimator : LoRanPACClassifier, optional
        What is learned: its parameters are used, not what it knows.
    workspace : path, optional
        A folder that all workers see; where ``out`` will be, by default. Models of shards are in a folder of their own in it,
        until all is done. They belong to this data: after a call that was broken off, do not repeat it with other data and the same
        estimator without removing that folder.
    fan_in : int
        How many models are merged at a time.

    Returns
    -------
    LoRanPACClassifier
        The model, loaded from ``out``.
    """
    check_name(out)
    if os.path.exists(out):
        raise FileExistsError(f"{os.fspath(out)!r} is there already")
    if fan_in < 2:
        raise ValueError(f"fan_in: a whole number of at least 2 is expected, not {fan_in!r}")
    estimator = LoRanPACClassifier() if estimator is None else clone(estimator)
    parts = list(shards.to_delayed() if hasattr(shards, "to_delayed") else shards)
    if not parts:
        raise ValueError("shards: there are none")
    if not isinstance(estimator, LoRanPACClassifier):
        raise TypeError(f"estimator: a LoRanPACClassifier is expected, not {type(estimator).__name__}, which cannot be saved")
    out = os.path.abspath(out)
    # Another estimator, or other shards as far as Dask can tell, have nothing to do with what is there.
    keys = [str(getattr(part, "key", "")) for part in parts] if hasattr(shards, "to_delayed") else len(parts)
    told = json.dumps([{**estimator.get_params(), "n_jobs": None}, keys], sort_keys=True, default=str)
    mark = hashlib.sha256(told.encode()).hexdigest()[:12]
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
    """Learn a shard, unless that has been done; nothing comes of one without samples."""
    if not os.path.exists(path):
        X, y = _arrays(shard)
        if len(y) == 0:
            return None
        estimator = clone(estimator).set_params(n_jobs=_threads(estimator.n_jobs))
        _appear(path, lambda beside: estimator.fit(X, y).save(beside))
    return path


def _merge(paths: Iterable[str | None], path: str) -> str | None:
    """Merge models, unless that has been done."""
    models = [model for model in paths if model is not None]
    if not models:
        return None
    if not os.path.exists(path):
        # Samples that are in two shards are there twice.
        _appear(path, lambda beside: merge_models(models, beside, again=True, prepare=False, n_jobs=_threads(None)))
    return path


def _appear(path: str, write: Any) -> None:
    """Make a model appear as a whole, whatever happens to this process and whoever else makes it."""
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
    """X and y of a shard: a pair of them, or samples (x, y) one after the other."""
    if isinstance(shard, (tuple, list)) and len(shard) == 2 and np.ndim(shard[0]) == 2:
        return shard[0], shard[1]
    samples = list(shard)
    if not samples:
        return (), ()
    try:
        return np.stack([np.asarray(x) for x, _ in samples]), np.asarray(_label_array([y for _, y in samples]))
    except (TypeError, ValueError) as error:
        raise ValueError("shards: a shard is a pair (X, y), or samples (x, y) one after the other") from error


def _threads(asked: int | None) -> int | None:
    """As many threads as the worker has, unless the user wants something else."""
    if asked is not None:
        return asked
    try:
        from distributed import get_worker

        return get_worker().state.nthreads
    except (ImportError, ValueError):
        return None

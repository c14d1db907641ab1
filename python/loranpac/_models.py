"""Models on disk, by path."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable
from numbers import Integral
from typing import Any, Union

from loranpac import _engine

Path = Union[str, "os.PathLike[str]"]


def merge_models(
    models: Iterable[Path], out: Path, *, again: bool = False, prepare: bool = True, n_jobs: int | None = None
) -> Path:
    """Merge models on disk into a new one, like ``loranpac merge``.

    Parameters
    ----------
    models : paths
        Models with the same lift and settings.
    out : path
        The new model, a folder ``NAME.lrp`` that does not exist yet.
    again : bool
        Count samples that several of the models have learned several times. By default they are refused.
    prepare : bool
        Form the classifier. Without it the merge is faster, and the first prediction slower.
    n_jobs : int, optional
        Threads; all cores by default.

    Returns
    -------
    path
        ``out``.
    """
    models = list(models)
    check_name(out)
    if not models:
        raise ValueError("models: at least one model is expected")
    for warning in _engine.merge_models(models, out, again, prepare, threads(n_jobs)):
        warnings.warn(warning, stacklevel=2)
    return out


def verify(path: Path, *, n_jobs: int | None = None) -> dict[str, Any]:
    """Read every byte of a model and of its earlier versions, like ``loranpac verify``.

    Parameters
    ----------
    path : path
        The model.
    n_jobs : int, optional
        Threads; all cores by default.

    Returns
    -------
    dict
        ``whole`` (whether every byte is as it was written), ``problems`` (a list of messages), and the number of ``files`` and
        ``bytes`` read.

    Examples
    --------
    >>> import os, tempfile
    >>> import loranpac
    >>> path = os.path.join(tempfile.mkdtemp(), "animals.lrp")
    >>> _ = loranpac.LoRanPACClassifier(width=100).fit([[0, 1], [1, 0]], ["cat", "dog"]).save(path)
    >>> loranpac.verify(path)["whole"]
    True
    """
    return json.loads(_engine.verify(path, threads(n_jobs)))


def history(path: Path) -> list[dict[str, Any]]:
    """The current version of a model and the earlier ones that are kept, the latest first.

    Each entry has the ``version``, the number of ``samples`` and ``tasks``, the ``classes``, the name of the ``encoder``, the
    version of the ``software``, and the version that it has ``restored`` (None unless it is the result of :func:`rollback`).

    Examples
    --------
    >>> import os, tempfile
    >>> import loranpac
    >>> path = os.path.join(tempfile.mkdtemp(), "animals.lrp")
    >>> model = loranpac.LoRanPACClassifier(width=100).fit([[0, 1], [1, 0]], ["cat", "dog"]).save(path)
    >>> _ = model.partial_fit([[1, 1]], ["cow"]).save(path)
    >>> [entry["classes"] for entry in loranpac.history(path)]
    [['cat', 'dog', 'cow'], ['cat', 'dog']]
    >>> _ = loranpac.rollback(path)
    >>> loranpac.LoRanPACClassifier.load(path).classes_.tolist()
    ['cat', 'dog']
    """
    return json.loads(_engine.history(path))


def rollback(path: Path, version: int | None = None) -> int:
    """Restore an earlier version of a model, like ``loranpac rollback``. The restored version becomes the newest.

    Parameters
    ----------
    path : path
        The model.
    version : int, optional
        The version; one further back on each call by default. If the model already has the contents of that version, nothing
        changes, and a warning is issued.

    Returns
    -------
    int
        The version that was restored. Estimators that were loaded before are unchanged; load the model again.

    Examples
    --------
    :func:`history` has one.
    """
    if version is not None:
        version = _count("version", version)
    restored, changed = _engine.rollback(path, version)
    if not changed:
        warnings.warn(f"the model already has the contents of version {restored}; nothing has changed", stacklevel=2)
    return restored


def keep_versions(path: Path, count: int) -> None:
    """Set how many earlier versions of a model are kept, like ``loranpac rollback --keep``. The default is 1."""
    _engine.keep_versions(path, _count("count", count))


def drop_history(path: Path) -> None:
    """Delete the earlier versions of a model, like ``loranpac rollback --drop``. The current version stays."""
    _engine.drop_history(path)


def check_name(path: Path) -> None:
    """Refuse a path that the command line refuses."""
    if not os.fspath(path).rstrip("/" + os.sep).endswith(".lrp"):
        raise ValueError(f"{os.fspath(path)!r}: the name of a model ends with .lrp")


def _count(name: str, value: Any) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name}: a whole number of at least 0 is expected, not {value!r}")
    return int(value)


def threads(n_jobs: int | None) -> int:
    """The number of threads for the engine: 0 for all cores."""
    if n_jobs is None:
        return 0
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(f"n_jobs: a whole number other than 0, or None, is expected, not {n_jobs!r}")
    if n_jobs == -1:
        return 0
    cores = os.cpu_count() or 1
    if n_jobs < 1:
        return max(1, cores + 1 + int(n_jobs))
    most = max(64, 4 * cores)
    if n_jobs > most:
        raise ValueError(f"n_jobs: at most {most} threads are expected on {cores} cores, not {n_jobs}")
    return int(n_jobs)

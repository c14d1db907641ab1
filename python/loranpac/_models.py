"""Models on disk, by path."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from numbers import Integral
from typing import Union

from loranpac import _engine

Path = Union[str, "os.PathLike[str]"]


def merge_models(
    models: Iterable[Path], out: Path, *, again: bool = False, prepare: bool = True, n_jobs: int | None = None
) -> Path:
    """Merge models on disk into a new one, as ``loranpac merge`` does.

    Parameters
    ----------
    models : paths
        Models with the same lift and settings.
    out : path
        The new model, a folder that does not exist yet and whose name ends with ``.lrp``.
    again : bool
        Whether samples that several of the models have learned shall count several times; otherwise they are refused.
    prepare : bool
        Whether to form the classifier, too. Without it the merge is cheaper, and the first prediction dearer.
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


def check_name(path: Path) -> None:
    """Refuse a path that the command line would refuse."""
    if not os.fspath(path).rstrip("/" + os.sep).endswith(".lrp"):
        raise ValueError(f"{os.fspath(path)!r}: the name of a model ends with .lrp")


def threads(n_jobs: int | None) -> int:
    """Threads as the engine counts them: 0 for all cores."""
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

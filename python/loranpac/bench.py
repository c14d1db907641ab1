"""Experiments: methods side by side on a stream of tasks.

>>> from loranpac import bench
>>> result = bench.run("digits", ["loranpac", "simplecil"], inc=2, width=500)
>>> result  # doctest: +ELLIPSIS
method     final %  total %  forgetting  learn s  form s
loranpac ...
simplecil ...
"""

from __future__ import annotations

import html
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np

from loranpac import _engine
from loranpac._estimators import _whole, _width
from loranpac._labels import _plain_array
from loranpac._models import Path, threads
from loranpac.features import labels_of

Data = Union[Path, Mapping[str, Any], Sequence[Any]]


def run(
    dataset: Data,
    methods: str | Sequence[str] = ("loranpac", "loranpac-soft", "ranpac", "simplecil"),
    *,
    inc: int = 10,
    base: int = 0,
    width: float = 10_000,
    lift: str = "relu-random",
    random_state: int = 0,
    seeds: int | Sequence[int] = 1993,
    per_class: int | None = None,
    truncate: float | None = None,
    schedule: str = "late",
    max_rank: int = 10_000,
    settings: Mapping[str, Any] | None = None,
    eval: str = "every",
    train_loss: str = "never",
    n_jobs: int | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> Result:
    """Run methods on a stream of tasks with new classes in each, as ``loranpac run`` does.

    Parameters
    ----------
    dataset : path, or arrays
        A feature file (``x_train``, ``y_train``, ``x_test``, ``y_test`` in an npz or safetensors file, or a table with a column
        ``split``), the same arrays in a mapping or in this order, or ``"digits"`` for those inside.
    methods : names
        What to compare; see :func:`loranpac.methods`.
    inc, base : int
        Classes in each task; classes in the first one, if it has another number.
    width, lift, random_state, truncate, schedule, max_rank
        As for :class:`loranpac.ContinualClassifier`.
    seeds : int or several
        Class orders, as NumPy's legacy generator shuffles for each.
    per_class : int, optional
        Use the first so many training samples of each class.
    settings : mapping, optional
        Settings of the methods; each takes those that it knows.
    eval, train_loss : {"every", "final", "never"}
        When the accuracy, and the error on all training samples so far, are measured.
    n_jobs : int, optional
        Threads; all cores by default.
    progress : callable, optional
        Called with a method's name and the share of its work that is done.

    Returns
    -------
    Result
        Every run, which shows itself as a table.
    """
    names = [methods] if isinstance(methods, str) else list(methods)
    known = {entry["name"]: entry for entry in json.loads(_engine.methods())}
    for name in names:
        if name not in known:
            raise ValueError(f"methods: names among {', '.join(known)} are expected, not {name!r}")
    for name, value, least in [("inc", inc, 1), ("base", base, 0), ("max_rank", max_rank, 1)]:
        _whole(name, value, least)
    width = _width(lift, width)
    for name, when in [("eval", eval), ("train_loss", train_loss)]:
        if when not in ("every", "final", "never"):
            raise ValueError(f"{name}: 'every', 'final' or 'never' is expected, not {when!r}")
    if per_class is not None:
        _whole("per_class", per_class)
    given = {name: str(value) for name, value in (settings or {}).items()}
    strange = [name for name in given if not any(name in known[method]["settings"] for method in names)]
    if strange:
        raise ValueError(f"settings: none of the methods has {', '.join(strange)}")
    runs = []
    with _file_of(dataset) as path:
        for seed in [seeds] if isinstance(seeds, (int, np.integer)) else seeds:
            for name in names:
                changes = {
                    "scenario": {"class": {"base": int(base), "increment": int(inc)}},
                    "width": 0 if width is None else width,
                    "lift": "arc-cosine" if width is None else lift,
                    "lift_seed": int(random_state),
                    "seed": int(seed),
                    "per_class": None if per_class is None else int(per_class),
                    "truncation": None if truncate is None else {"fraction": float(truncate)},
                    "schedule": schedule,
                    "max_rank": int(max_rank),
                    "settings": {key: value for key, value in given.items() if key in known[name]["settings"]},
                    "eval": eval,
                    "train_loss": train_loss,
                }
                watch = None if progress is None else (lambda share, name=name: progress(name, share))
                runs.append(json.loads(_engine.run(path, name, json.dumps(changes), threads(n_jobs), watch)))
    return Result(runs)


class Result:
    """What runs have found. It shows itself as a table; ``runs`` has everything, as ``loranpac run --json`` writes it."""

    def __init__(self, runs: list[dict[str, Any]]):
        self.runs = runs

    def summary(self) -> list[dict[str, Any]]:
        """One entry per method, best first: means over seeds."""
        rows = []
        for method in dict.fromkeys(run["method"] for run in self.runs):
            runs = [run for run in self.runs if run["method"] == method]
            rows.append(
                {
                    "method": method,
                    "final": _mean(run["final_accuracy"] for run in runs),
                    "total": _mean(run["total_accuracy"] for run in runs),
                    "forgetting": _mean(run["forgetting"] for run in runs),
                    "learn_seconds": _mean(sum(task["learn_seconds"] for task in run["tasks"]) for run in runs),
                    "form_seconds": _mean(sum(task["weights_seconds"] or 0 for task in run["tasks"]) for run in runs),
                    "seeds": len(runs),
                }
            )
        return sorted(rows, key=lambda row: -(row["final"] if row["final"] is not None else -1))

    def to_dataframe(self) -> Any:
        """One row per run and task, as a pandas ``DataFrame``."""
        import pandas

        rows = []
        for run in self.runs:
            for number, task in enumerate(run["tasks"], 1):
                plain = {key: value for key, value in task.items() if key not in ("certificate", "spectrum")}
                rows.append({"method": run["method"], "seed": run["seed"], "task": number, **plain})
        return pandas.DataFrame(rows)

    def plot(self, ax: Any = None) -> Any:
        """Accuracy over tasks, as a matplotlib plot; gives its axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.figure().gca()
        for method in dict.fromkeys(run["method"] for run in self.runs):
            runs = [run for run in self.runs if run["method"] == method]
            values = np.array([[task["accuracy_samples"] for task in run["tasks"]] for run in runs], dtype=float)
            classes = [task["classes_seen"] for task in runs[0]["tasks"]]
            (line,) = ax.plot(classes, values.mean(axis=0), marker="o", markersize=3, label=method)
            if len(runs) > 1:
                ax.fill_between(classes, values.min(axis=0), values.max(axis=0), color=line.get_color(), alpha=0.15, lw=0)
        ax.set_xlabel("classes learned")
        ax.set_ylabel("accuracy on all of them, %")
        ax.legend()
        return ax

    def _cells(self) -> list[list[str]]:
        def number(value: float | None, digits: int) -> str:
            return "-" if value is None else f"{value:.{digits}f}"

        rows = [["method", "final %", "total %", "forgetting", "learn s", "form s"]]
        for row in self.summary():
            percents = [number(row[key], 2) for key in ("final", "total", "forgetting")]
            rows.append([row["method"], *percents, *(number(row[key], 2) for key in ("learn_seconds", "form_seconds"))])
        return rows

    def __repr__(self) -> str:
        rows = self._cells()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = []
        for row in rows:
            cells = [cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _mean(values: Any) -> float | None:
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


class _file_of:
    """A path of a dataset: its own, or that of a file which is there as long as it is needed."""

    NAMES = ("x_train", "y_train", "x_test", "y_test")

    def __init__(self, dataset: Data):
        self.dataset = dataset
        self.place: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Path:
        if isinstance(self.dataset, (str, os.PathLike)):
            return self.dataset
        if isinstance(self.dataset, Mapping):
            missing = [name for name in self.NAMES if name not in self.dataset]
            if missing:
                raise ValueError(f"dataset: the arrays {', '.join(missing)} are missing")
            arrays = {name: self.dataset[name] for name in self.NAMES}
        else:
            if len(self.dataset) != len(self.NAMES):
                raise ValueError(f"dataset: four arrays are expected ({', '.join(self.NAMES)}), not {len(self.dataset)}")
            arrays = dict(zip(self.NAMES, self.dataset))
        arrays = {
            name: labels_of(array) if name[0] == "y" else np.ascontiguousarray(_plain_array(array), dtype=np.float32)
            for name, array in arrays.items()
        }
        self.place = tempfile.TemporaryDirectory()
        path = os.path.join(self.place.name, "arrays.npz")
        np.savez(path, **arrays)
        return path

    def __exit__(self, *_: Any) -> None:
        if self.place is not None:
            self.place.cleanup()

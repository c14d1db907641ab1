"""Experiments: methods side by side on a stream of tasks.

>>> from loranpac import bench
>>> result = bench.run("digits", ["loranpac", "simplecil"], inc=2, width=500)
>>> result  # doctest: +ELLIPSIS
method     accuracy %  final %  total %  forgetting  learn s  form s
loranpac ...
simplecil ...
"""

from __future__ import annotations

import html
import inspect
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Union

import numpy as np

from loranpac import _engine
from loranpac._labels import _plain_array
from loranpac._models import Path, threads
from loranpac._parameters import prior_text
from loranpac.features import labels_of

Data = Union[Path, Mapping[str, Any], Sequence[Any]]


_SETTINGS = {entry["name"]: entry for entry in json.loads(_engine.settings())}


def run(
    dataset: Data,
    methods: str | Sequence[str] = ("loranpac", "loranpac-soft", "ranpac", "simplecil"),
    *,
    settings: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    progress: Callable[[str, float], object] | None = None,
    **chosen: Any,
) -> Result:
    """Run methods on a stream of tasks with new classes in each, like ``loranpac run``.

    Parameters
    ----------
    dataset : path, or arrays
        A feature file (``x_train``, ``y_train``, ``x_test``, ``y_test`` in an npz or safetensors file), the same arrays in a
        mapping or in this order, or ``"digits"`` for those inside the package.
    methods : names
        Methods to compare; see :func:`loranpac.methods`.
    settings : mapping, optional
        Settings of the methods; each method takes those that it has.
    n_jobs : int, optional
        Threads; all cores by default.
    progress : callable, optional
        Called with a method's name and the share of its run that is done.

    Returns
    -------
    Result
        All runs. Its text is a table.
    """
    names = [methods] if isinstance(methods, str) else list(methods)
    known = {entry["name"]: entry for entry in json.loads(_engine.methods())}
    for name in names:
        if name not in known:
            raise ValueError(f"methods: names among {', '.join(known)} are expected, not {name!r}")
    unknown = [name for name in chosen if name not in _SETTINGS]
    if unknown:
        raise TypeError(f"run() has no argument {unknown[0]!r}; the settings of runs are {', '.join(_SETTINGS)}")
    given = {name: str(value) for name, value in (settings or {}).items()}
    foreign = [name for name in given if not any(name in known[method]["settings"] for method in names)]
    if foreign:
        raise ValueError(f"settings: none of the methods has {', '.join(foreign)}")
    values = {name: _value(name, value) for name, value in chosen.items() if value is not None}
    with _file_of(dataset) as path:
        runs = _engine.run(path, names, json.dumps(values), json.dumps(given), threads(n_jobs), progress)
    return Result(json.loads(runs))


def _value(name: str, value: Any) -> Any:
    """A value as the engine reads it: text, a number, or a list of them."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Real) and not isinstance(value, bool):
        return "infinite" if value == float("inf") else str(float(value))
    if name == "prior" and isinstance(value, Mapping):
        return prior_text(value)
    if isinstance(value, (Sequence, np.ndarray)):
        return [_value(name, entry) for entry in value]
    raise ValueError(f"{name}: a number, a word or a list is expected, not {value!r}")


def _document() -> None:
    """Give :func:`run` a signature and a docstring with every setting of runs."""
    signature = inspect.signature(run)
    keyword = inspect.Parameter.KEYWORD_ONLY
    listed = [inspect.Parameter(name, keyword, default=entry["default"]) for name, entry in _SETTINGS.items()]
    fixed = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    positional = [one for one in fixed if one.kind is not keyword]
    named = [one for one in fixed if one.kind is keyword]
    run.__signature__ = signature.replace(parameters=[*positional, *listed, *named])  # type: ignore[attr-defined]
    if run.__doc__:
        lines = [f"    {name} : default {entry['default']!r}\n        {entry['help']}\n" for name, entry in _SETTINGS.items()]
        run.__doc__ = run.__doc__.replace("    settings : mapping", "".join(lines) + "    settings : mapping", 1)


_document()


class Result:
    """Runs and their results. ``runs`` has all data, as ``loranpac run --json`` writes it; ``print`` shows a table.

    ``accuracy`` is over all test samples after the last task. ``final`` is the mean over tasks of the accuracy after the last
    task, and ``total`` the mean over tasks after every task; both depend on the division into tasks. ``forgetting`` is the
    drop from a task's best accuracy to its last, which grows with the number of classes even if nothing is unlearned.
    """

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
                    "accuracy": _mean(run["final_accuracy_samples"] for run in runs),
                    "final": _mean(run["final_accuracy"] for run in runs),
                    "total": _mean(run["total_accuracy"] for run in runs),
                    "forgetting": _mean(run["forgetting"] for run in runs),
                    "learn_seconds": _mean(sum(task["learn_seconds"] for task in run["tasks"]) for run in runs),
                    "form_seconds": _mean(sum(task["weights_seconds"] or 0 for task in run["tasks"]) for run in runs),
                    "seeds": len(runs),
                }
            )
        return sorted(rows, key=lambda row: -(row["accuracy"] if row["accuracy"] is not None else -1))

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
        """Plot accuracy over tasks with matplotlib; returns the axes."""
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

        rows = [["method", "accuracy %", "final %", "total %", "forgetting", "learn s", "form s"]]
        for row in self.summary():
            percents = [number(row[key], 2) for key in ("accuracy", "final", "total", "forgetting")]
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
    """The path of a dataset: its own, or that of a temporary file."""

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

    def __exit__(self, *_: object) -> None:
        if self.place is not None:
            self.place.cleanup()

"""The estimators by name."""

from __future__ import annotations

import json
from typing import Any

from loranpac import _engine
from loranpac._continual import ContinualClassifier
from loranpac._labels import _some
from loranpac._loranpac import LoRanPACClassifier

__all__ = ["ContinualClassifier", "LoRanPACClassifier", "make", "methods"]


def methods() -> list[dict[str, Any]]:
    """All methods, each with a description and its settings.

    >>> from loranpac import methods
    >>> [method["name"] for method in methods()][:2]
    ['loranpac', 'loranpac-soft']
    """
    return json.loads(_engine.methods())


def make(method: str, **parameters: Any) -> ContinualClassifier:
    """An estimator by the name of its method. Parameters that the estimator does not have are settings of the method.

    >>> from loranpac import make
    >>> make("ranpac", width=2000)
    ContinualClassifier(method='ranpac', width=2000)
    >>> make("loranpac", truncate=0.1, ridge=10)
    LoRanPACClassifier(filter='hard', ridge=10, truncate=0.1)
    """
    known = {entry["name"]: entry for entry in methods()}
    if method not in known:
        raise ValueError(f"method: one of {', '.join(known)} is expected, not {method!r}")
    cls = {"loranpac": LoRanPACClassifier, "loranpac-soft": LoRanPACClassifier}.get(method, ContinualClassifier)
    own = {name: parameters.pop(name) for name in list(parameters) if name in cls().get_params()}
    if cls is LoRanPACClassifier and not parameters:
        filter = "hard" if method == "loranpac" else "soft"
        if own.pop("filter", filter) != filter:
            raise ValueError(f"filter: {filter!r} is expected for the method {method!r}")
        return cls(**own, filter=filter)
    if "ridge" in own:
        parameters["ridge"] = own.pop("ridge")
    if own.pop("half", False):
        parameters["samples"] = "f16"
    unknown = [name for name in parameters if name not in known[method]["settings"]]
    if unknown:
        names = ", ".join([*ContinualClassifier().get_params(), *known[method]["settings"]])
        raise TypeError(f"{method} has no parameter {_some(unknown)}; it has {names}")
    return ContinualClassifier(method, **own, settings=parameters or None)

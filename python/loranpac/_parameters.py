"""Parameters of estimators: checks, and their form in the engine and in models on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from loranpac import _engine
from loranpac._encoder import Encoder
from loranpac._labels import _plain
from loranpac._models import Path


def engine_options(
    estimator: Any, method: str, settings: dict[str, Any], n_features: int, n_samples: int, n_classes: int
) -> dict[str, Any]:
    """The engine's options. Invalid parameters raise here, when samples arrive, as scikit-learn requires."""
    width = checked_width(estimator)
    if estimator.max_rank is not None:
        _whole("max_rank", estimator.max_rank)
    _whole("random_state", estimator.random_state, least=0)
    if estimator.schedule not in ("late", "paper"):
        raise ValueError(f"schedule: 'late' or 'paper' is expected, not {estimator.schedule!r}")
    cuts = [(name, value) for name in ("truncate", "threshold", "rank") if (value := getattr(estimator, name)) is not None]
    if len(cuts) > 1:
        raise ValueError(f"at most one of truncate, threshold and rank is expected, not {' and '.join(name for name, _ in cuts)}")
    for name, value in [*cuts, ("gamma", 1.0 if estimator.gamma is None else estimator.gamma)]:
        if not isinstance(value, Real) or isinstance(value, bool):
            raise ValueError(f"{name}: a number is expected, not {value!r}")
    if estimator.rank is not None:
        _whole("rank", estimator.rank)
    if hasattr(estimator, "prior"):
        prior_text(estimator.prior)
    return {
        "method": method,
        "dim": n_features,
        "lift": estimator.lift,
        "width": width,
        "samples": max(n_samples, estimator.expected_samples or 0),
        "classes": n_classes,
        "keep_samples": estimator.keep_samples,
        "seed": int(estimator.random_state),
        "gamma": _engine.GAMMA if estimator.gamma is None else float(estimator.gamma),
        "truncation": (cuts[0][0], float(cuts[0][1])) if cuts else None,
        "schedule": estimator.schedule,
        "max_rank": None if estimator.max_rank is None else int(estimator.max_rank),
        "settings": [(name, str(value)) for name, value in settings.items()],
        "keep": 1,
    }


def prior_text(prior: Any) -> str:
    """A prior as the engine reads it: a name, or a JSON object with a number for each label."""
    if isinstance(prior, str) and prior in ("none", "train", "uniform"):
        return prior
    if not isinstance(prior, Mapping):
        raise ValueError(f"prior: 'none', 'train', 'uniform' or a dict with a number for each class is expected, not {prior!r}")
    for label, weight in prior.items():
        if not isinstance(weight, Real) or isinstance(weight, bool) or not 0 < weight < float("inf"):
            raise ValueError(f"prior: class {label!r} needs a number above 0, not {weight!r}")
    return json.dumps({str(_plain(label)): float(weight) for label, weight in prior.items()})


def parameters_of(manifest: dict[str, Any], model: Path, n_jobs: int | None) -> dict[str, Any]:
    """The parameters of a ``LoRanPACClassifier`` from the manifest of a model. The encoder is opened when it is used."""
    lift, config = manifest["lift"], manifest["config"]
    infinite = lift["name"] == "arc-cosine"
    default = _engine.SAMPLE_CAP if infinite else _engine.CAP
    return {
        "width": float("inf") if infinite else lift["width"],
        "lift": "relu-random" if infinite else lift["name"],
        "half": config.get("half", False),
        "gamma": lift["gamma"],
        "random_state": lift["seed"],
        "schedule": config["schedule"],
        "max_rank": None if config["max_rank"] == default else config["max_rank"],
        "prior": _prior(manifest.get("prior", "none"), manifest["classes"]),
        "encoder": _encoder(manifest["encoder"], model, n_jobs),
        "n_jobs": n_jobs,
        **_filter_parameters(config["filter"]),
    }


def _prior(recorded: Any, classes: list[dict[str, Any]]) -> Any:
    """The prior of a model, with its labels for those of the table."""
    if isinstance(recorded, str):
        return recorded
    labels = {str(entry["label"]): entry["label"] for entry in classes}
    return {labels.get(text, text): weight for text, weight in recorded["table"].items()}


def _encoder(recorded: dict[str, Any], model: Path, n_jobs: int | None) -> Encoder | str | None:
    """The encoder of a model; its name, if the model does not record where it is."""
    name, reference = recorded["name"], recorded.get("reference") or {}
    location = reference.get("location")
    if location is None:
        return name
    recorded_options = {name: reference[name] for name in ("preprocess", "adapter", "concat") if name in reference}
    options = {**recorded_options, "n_jobs": n_jobs}
    return Encoder._recorded(name or location, reference["digest"], location, model, options)


def _filter_parameters(filter: dict[str, Any]) -> dict[str, Any]:
    names = {"fraction": "truncate", "threshold": "threshold", "rank": "rank"}

    def cut(truncation: dict[str, Any]) -> dict[str, Any]:
        ((kind, value),) = truncation.items()
        return {names[kind]: value}

    if "hard" in filter:
        return {"filter": "hard", **cut(filter["hard"]["truncation"]), "ridge": filter["hard"]["ridge"] or None}
    soft = filter["soft"]
    if soft == "geometric-mean":
        return {"filter": "soft"}
    if soft == "leave-one-out":
        return {"filter": "soft", "ridge": "loo"}
    if "fixed" in soft:
        return {"filter": "soft", "ridge": soft["fixed"]}
    return {"filter": "soft", **cut(soft["eigenvalue"])}


def checked_width(estimator: Any) -> int | str | None:
    """The engine's width: "auto", or None if it is infinite; and what an automatic one depends on is checked."""
    width = estimator.width
    if estimator.expected_samples is not None:
        _whole("expected_samples", estimator.expected_samples)
    if not isinstance(estimator.keep_samples, bool):
        raise ValueError(f"keep_samples: True or False is expected, not {estimator.keep_samples!r}")
    if isinstance(width, str) and width == "auto":
        return width
    if isinstance(width, Real) and not isinstance(width, bool):
        value = float(width)
        if value == float("inf"):
            return None
        if value >= 1 and value.is_integer():
            return int(value)
    raise ValueError(f"width: a whole number of at least 1, float('inf') or 'auto' is expected, not {width!r}")


def _whole(name: str, value: Any, least: int = 1) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}: a whole number of at least {least} is expected, not {value!r}")

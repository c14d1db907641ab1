"""Adaptation of an encoder: small modules are trained inside it."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Callable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import column_or_1d

from loranpac import _engine
from loranpac._encoder import Encoder
from loranpac._encoding import as_list
from loranpac._inputs import checked, items
from loranpac._labels import _coded, _label_array, _targets
from loranpac._models import Path, threads


@dataclass(frozen=True)
class Epoch:
    """An epoch of training.

    Attributes
    ----------
    loss : float
        The mean loss.
    accuracy : float or None
        Accuracy of held-out samples by the nearest class mean, in percent. None if none were held out.
    """

    loss: float
    accuracy: float | None


@dataclass(frozen=True)
class Adaptation:
    """The outcome of :func:`adapt`.

    Attributes
    ----------
    path : str
        The absolute path of the adapter.
    written : bool
        Whether the file was written. False only with ``only_if_better``.
    frozen, adapted : float or None
        Accuracy of held-out samples by the nearest class mean before and after training, in percent. None if none were held
        out. ``adapted`` belongs to the best epoch, and is therefore a little optimistic.
    helps : bool or None
        Whether ``adapted`` is higher than ``frozen``.
    epochs : tuple of Epoch
        What each epoch came to.
    best : int
        The epoch whose numbers were kept, counted from 1.
    classes, trained, held_out : int
        Classes; samples that were trained on; samples that were held out.
    parameters : int
        Trained numbers.
    halved : int
        How often the rate was halved because the loss was not finite.
    """

    path: str
    written: bool
    frozen: float | None
    adapted: float | None
    helps: bool | None
    epochs: tuple[Epoch, ...]
    best: int
    classes: int
    trained: int
    held_out: int
    parameters: int
    halved: int


def adapt(
    encoder: Encoder | Path,
    X: Iterable[Any],
    y: ArrayLike,
    *,
    out: Path,
    module: str = "adapter",
    size: int | None = None,
    classes: int | None = None,
    epochs: int = 20,
    rate: float = 0.01,
    batch: int = 48,
    seed: int = 0,
    optimiser: str = "sgd",
    head: str = "cosine",
    scale: float = 1.0,
    held_out: int = 5,
    patience: int = 5,
    augment: bool = True,
    only_if_better: bool = False,
    preprocess: str | None = None,
    skip_bad: bool = False,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Adaptation:
    """Train small modules inside a frozen transformer, as ``loranpac adapt`` does.

    The file is a function of encoder, samples, settings and seed: the same bytes for any number of threads, and the same as
    the command line writes. A checkpoint beside it is written after each epoch. After an interrupt (Ctrl-C stops after the
    current step), the same call resumes from it.

    Parameters
    ----------
    encoder : Encoder, str or path
        A ViT or a BERT: a folder with ``model.safetensors`` and ``config.json``, or a ``.safetensors`` file.
    X : list
        Texts or images, as :meth:`Encoder.encode` takes them. They are kept in memory.
    y : array-like of shape (n_inputs,)
        Labels: whole numbers or texts, of two classes or more.
    out : path
        The adapter to write, ``NAME.safetensors``. An existing file is replaced when training has ended.
    module : {"adapter", "lora", "vpt-deep", "vpt-shallow", "ssf"}
        What is trained: a bottleneck beside each MLP (AdaptFormer), changes of low rank, prompt tokens, or scales and shifts.
    size : int, optional
        Features of the bottleneck (64), rank (8), or tokens (5).
    classes : int, optional
        Train on the first classes only, in order of appearance.
    epochs, rate, batch : int, float, int
        Most epochs; rate of the first, which falls along a cosine to zero; samples per step.
    seed : int
        Seed of everything random.
    optimiser : {"sgd", "adam"}
        SGD with momentum 0.9 and weight decay 0.0005, or Adam.
    head : {"cosine", "linear"}
        The classifier that is trained with the module, and dropped.
    scale : float
        The scale of a cosine classifier before training.
    held_out : int
        One in this many samples of each class that has as many is held out; 0: none.
    patience : int
        Training ends after this many epochs without a better accuracy of held-out samples; 0: never.
    augment : bool
        Crop and mirror images at random.
    only_if_better : bool
        Write no file unless held-out samples are classified better than without adaptation.
    preprocess : str, optional
        Preprocessing of images, as in :class:`Encoder`. An :class:`Encoder` has its own.
    skip_bad : bool
        Skip images that cannot be decoded, with a warning for each.
    n_jobs : int, optional
        Threads; all cores by default.
    verbose : int
        Print to standard error: 0 nothing, 1 the cost and a line per epoch, 2 a line per step.

    Returns
    -------
    Adaptation

    Examples
    --------
    Not run here, because it needs the weights of an encoder::

        outcome = adapt("minilm/", texts, labels, out="tickets.safetensors", verbose=1)
        if outcome.helps:
            model = LoRanPACClassifier(encoder="minilm/", adapter=outcome.path).fit(texts, labels)
    """
    place, preprocess, digest = _place(encoder, preprocess)
    out = _out(out)
    given = {
        "module": _one_of("module", module, None),
        "size": None if size is None else _whole("size", size, 1),
        "classes": None if classes is None else _whole("classes", classes, 1),
        "epochs": _whole("epochs", epochs, 1),
        "rate": _number("rate", rate),
        "batch": _whole("batch", batch, 1),
        "seed": _whole("seed", seed, 0),
        "optimiser": _one_of("optimiser", optimiser, ("sgd", "adam")),
        "head": _one_of("head", head, ("cosine", "linear")),
        "scale": _number("scale", scale),
        "held_out": _whole("held_out", held_out, 0),
        "patience": _whole("patience", patience, 0),
        "augment": bool(augment),
        "only_if_better": bool(only_if_better),
        "skip_bad": bool(skip_bad),
    }
    X, labels = as_list(X), _targets(column_or_1d(_label_array(y)))

    def source(name: str, modality: str) -> Iterator[Any]:
        inputs = checked(X, modality, "X")
        if len(labels) != len(inputs):
            raise ValueError(f"y: a label for each of {len(inputs)} inputs is expected, not {len(labels)}")
        return items(inputs, modality, name, "X")

    coded, report = _coded(labels, np.unique(labels)), _report(verbose)
    described, skipped = _engine.adapt((place, preprocess, digest), source, coded, out, given, threads(n_jobs), report)
    for reason in skipped:
        warnings.warn(f"skipped: {reason}", UserWarning, stacklevel=2)
    return _adaptation(out, json.loads(described))


def _adaptation(path: str, found: dict[str, Any]) -> Adaptation:
    outcome = found["outcome"]
    return Adaptation(
        path=path,
        written=found["written"],
        frozen=outcome["frozen"],
        adapted=outcome["adapted"],
        helps=found["helps"],
        epochs=tuple(Epoch(epoch["loss"], epoch["accuracy"]) for epoch in found["epochs"]),
        best=outcome["best"],
        classes=outcome["classes"],
        trained=outcome["trained"],
        held_out=outcome["held_out"],
        parameters=found["parameters"],
        halved=found["halved"],
    )


def _place(encoder: Any, preprocess: str | None) -> tuple[str, str | None, str | None]:
    """Path, preprocessing and digest of an encoder."""
    if preprocess is not None and not isinstance(preprocess, str):
        raise TypeError(f"preprocess: a str or None is expected, not {preprocess!r}")
    if isinstance(encoder, Encoder):
        if encoder.adapter is not None:
            raise ValueError("encoder: it has an adapter already; give the encoder without it")
        if preprocess is not None:
            raise ValueError("preprocess: give it to the Encoder instead")
        return encoder.location, encoder.preprocess, encoder.digest
    if not isinstance(encoder, (str, os.PathLike)) or not os.fspath(encoder):
        raise TypeError(f"encoder: an Encoder or a path is expected, not {encoder!r}")
    return os.fspath(encoder), preprocess, None


def _out(out: Any) -> str:
    if not isinstance(out, (str, os.PathLike)) or not os.fspath(out):
        raise TypeError(f"out: a path is expected, not {out!r}")
    path = os.path.abspath(out)
    if not path.endswith(".safetensors"):
        raise ValueError(f"out: the name of an adapter must end with .safetensors, not {os.path.basename(path)!r}")
    if not os.path.isdir(os.path.dirname(path)):
        raise FileNotFoundError(f"out: {path!r}: its folder does not exist")
    return path


def _report(verbose: Any) -> Callable[[str, bool], None] | None:
    """A function that prints lines: all of them (2), or those that are not about a single step (1)."""
    if not isinstance(verbose, Integral) or verbose < 0:
        raise ValueError(f"verbose: 0, 1 or 2 is expected, not {verbose!r}")
    if verbose == 0:
        return None

    def report(text: str, single: bool) -> None:
        if single and verbose < 2:
            return
        try:
            print("\n".join(f"[adapt] {line}" for line in text.splitlines()), file=sys.stderr, flush=True)
        except (OSError, ValueError):
            pass  # Output that cannot be written must not end the task.

    return report


def _one_of(name: str, value: Any, known: tuple[str, ...] | None) -> str:
    if not isinstance(value, str) or (known is not None and value not in known):
        expected = "a str" if known is None else " or ".join(map(repr, known))
        raise ValueError(f"{name}: {expected} is expected, not {value!r}")
    return value


def _whole(name: str, value: Any, least: int) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= value < 2**63:
        raise ValueError(f"{name}: a whole number of at least {least} is expected, not {value!r}")
    return int(value)


def _number(name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ValueError(f"{name}: a number is expected, not {value!r}")
    return float(value)

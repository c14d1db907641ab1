"""The method of the paper, with soft and hard filters, as a scikit-learn estimator."""

from __future__ import annotations

import json
import os
from numbers import Real
from typing import Any

from sklearn.exceptions import NotFittedError

from loranpac import _engine
from loranpac._continual import ContinualClassifier
from loranpac._encoder import Encoder
from loranpac._labels import _sorted
from loranpac._models import Path, threads
from loranpac._parameters import parameters_of


class LoRanPACClassifier(ContinualClassifier):
    """Truncated least squares on random ReLU features, updated in closed form.

    Parameters
    ----------
    width : "auto", int or float("inf")
        Width of the lifted features, E. Accuracy grows with it, and cost in proportion to it; where it is close to the number of
        samples, accuracy suffers. ``"auto"`` is three to five times the samples, between 10,000 and 100,000 and as far as memory allows. It
        is chosen when the first samples are learned, and stays; see ``width_``. ``float("inf")`` is the limit, computed by the
        arc-cosine kernel: exact, and faster up to about ten thousand samples, but the model keeps the samples.
    expected_samples : int, optional
        The samples that will be learned in all, for ``width="auto"``; by default those of the first call of ``fit`` or
        ``partial_fit``. Models that are to be merged need the same.
    keep_samples : bool
        The model may keep samples: ``width="auto"`` is then infinite for up to 20,000 samples.
    filter : {"soft", "hard"}
        A ridge that is derived from the spectrum (its geometric mean), or the paper's cut.
    truncate, threshold, rank : float, float, int, optional
        Hard: the share of directions that is cut, the paper's zeta (default 0.25); the eigenvalue below which they are cut; or
        the number of directions that are kept. Soft: the ridge is the eigenvalue at that place. At most one of them.
    ridge : float or "loo", optional
        Soft: the ridge itself, or (infinite width) the best of six decades by leave-one-out accuracy. Hard: added to the
        kept eigenvalues.
    schedule : {"late", "paper"}
        Hard: cut when the classifier is formed, or after every task as in the paper's Algorithm 4.
    max_rank : int, optional
        Number of directions to which the basis is cut, by default 10,000. At infinite width, the number of samples that
        are kept, by default all. Between cuts it has up to
        ``1.6 * max_rank`` (fewer above 9,000), each of 4 E bytes.
    lift : str
        Feature map.
    gamma : float, optional
        Inverse width of the kernel behind ``lift="fourier"``.
    prior : {"none", "train", "uniform"} or dict
        How often classes are expected among the samples to predict, which matters if they differ in size: scores as they are,
        which favours large classes; as often as in training; equally often; or a number above 0 for each class. It may be changed after
        ``fit``. A temperature that was fitted with another prior should be fitted again.
    half : bool
        At infinite width: keep samples in half precision.
    random_state : int
        Seed of the random projection. Models with the same seed, width and lift can be merged.
    encoder : Encoder, str or path, optional
        The encoder of images and texts: an :class:`Encoder`, or what it is opened with (a path, an address, ``"text-ngrams"``,
        ``"image-basic"``). ``X`` can then be a list of texts or images instead of features. Any other str is a name. The model
        records its encoder, :meth:`load` finds it again, and another one is refused.
    adapter : path, optional
        With the path of an encoder: modules that :func:`adapt` has trained in it. An :class:`Encoder` has its own.
    n_jobs : int, optional
        Threads; all cores by default.
    verbose : int
        Print progress to standard error while learning: 0 prints nothing, 1 a line per few thousand samples, 2 a line per chunk.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    n_features_in_, n_samples_seen_ : int
        Features of a sample; samples learned.
    width_ : int or float("inf")
        The width, chosen or given.
    certificate_ : dict
        The paper's quantities.
    train_mse_ : float
        The mean squared error on everything learned, computed without the samples.
    leave_one_out_ : float
        At infinite width, soft: leave-one-out accuracy on everything learned.
    temperature_ : float
        The temperature of probabilities, after :meth:`calibrate`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from loranpac import LoRanPACClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LoRanPACClassifier(width=1000)
    >>> for day in range(5):  # two new classes every day
    ...     new = (y // 2 == day) & (np.arange(len(y)) < 1200)
    ...     model = model.partial_fit(X[new], y[new])
    >>> model.classes_
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.93)
    True
    """

    # Pickles of earlier versions have none.
    prior: str | dict[Any, float] = "none"

    def __init__(
        self,
        width: float | str = "auto",
        *,
        expected_samples: int | None = None,
        keep_samples: bool = False,
        filter: str = "soft",
        truncate: float | None = None,
        threshold: float | None = None,
        rank: int | None = None,
        ridge: float | str | None = None,
        schedule: str = "late",
        max_rank: int | None = None,
        lift: str = "relu-random",
        gamma: float | None = None,
        prior: str | dict[Any, float] = "none",
        half: bool = False,
        random_state: int = 0,
        encoder: Encoder | Path | None = None,
        adapter: Path | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.width = width
        self.expected_samples = expected_samples
        self.keep_samples = keep_samples
        self.filter = filter
        self.truncate = truncate
        self.threshold = threshold
        self.rank = rank
        self.ridge = ridge
        self.schedule = schedule
        self.max_rank = max_rank
        self.lift = lift
        self.gamma = gamma
        self.prior = prior
        self.half = half
        self.random_state = random_state
        self.encoder = encoder
        self.adapter = adapter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _method(self) -> str:
        if self.filter not in ("soft", "hard"):
            raise ValueError(f"filter: 'soft' or 'hard' is expected, not {self.filter!r}")
        return "loranpac" if self.filter == "hard" else "loranpac-soft"

    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"samples": "f16"} if self.half else {}
        if self.ridge is None:
            return settings
        if self.ridge == "loo" and self.filter == "soft":
            return {**settings, "ridge": "loo"}
        if not isinstance(self.ridge, Real) or isinstance(self.ridge, bool):
            expected = "a number or 'loo'" if self.filter == "soft" else "a number"
            raise ValueError(f"ridge: {expected} is expected, not {self.ridge!r}")
        return {**settings, "ridge": float(self.ridge)}

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        encoder: Encoder | Path | None = None,
        adapter: Path | None = None,
        n_jobs: int | None = None,
    ) -> LoRanPACClassifier:
        """Read a model that :meth:`save` or the command line has written.

        Every byte is compared with its checksum. Learning continues from the saved state; :meth:`save` to the same path writes
        the changes.

        Parameters
        ----------
        path : path
            The folder of the model.
        encoder : Encoder, str or path, optional
            The encoder of the model, if it is not where it was; another one is refused. By default the encoder and its adapter
            are found by their digest when images or texts arrive: in their recorded places, beside the model, or in the folders
            of the environment variable ``LORANPAC_ENCODERS``. The address of an embedding server is contacted only if you give
            it here.
        adapter : path, optional
            The adapter of the model's encoder, if it is not where it was.
        n_jobs : int, optional
            Threads; all cores by default.
        """
        if not os.path.isdir(path):
            raise FileNotFoundError(f"{os.fspath(path)!r}: no such model")
        learner = _engine.Learner.load(path, threads(n_jobs))
        manifest = json.loads(learner.manifest())
        labels = learner.labels()
        if not labels:
            raise NotFittedError(f"{os.fspath(path)!r} has not learned anything yet")
        model = cls(**parameters_of(manifest, path, n_jobs))
        model._adopt(learner)
        model._folder = os.path.abspath(path)
        model.n_features_in_ = manifest["lift"]["dim"]
        model.classes_ = _sorted(labels)
        if manifest["calibration"] is not None:
            model.temperature_ = manifest["calibration"]["temperature"]
        if encoder is not None or adapter is not None:
            model._relocate(encoder, adapter)
        model._changed()
        return model

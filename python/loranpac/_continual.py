"""Any method of the registry as a scikit-learn estimator."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from loranpac import _engine
from loranpac._editing import Editing
from loranpac._encoder import Encoder
from loranpac._facts import Facts
from loranpac._labels import _coded, _label_array, _plain, _some, _union
from loranpac._models import Path, check_name, threads
from loranpac._parameters import engine_options
from loranpac._prediction import Prediction
from loranpac._progress import progress
from loranpac._weights import learnable


class ContinualClassifier(Editing, Prediction, Facts):
    """Any method as a scikit-learn estimator; :func:`make` builds one by name.

    Parameters
    ----------
    method : str
        The name of the method; see :func:`methods`.
    width : "auto", int or float("inf")
        Width of the lifted features, E. Methods without a lift ignore it. ``float("inf")`` is the limit of ``relu-random`` and
        ``abs-random``, computed by its kernel, for ``loranpac`` and ``loranpac-soft``: the model then keeps the samples. ``"auto"``
        is three to five times the samples, between 10,000 and 100,000 and as far as memory allows, chosen when the first samples are
        learned; see ``width_``.
    expected_samples : int, optional
        The samples that will be learned in all, for ``width="auto"``; by default those of the first call.
    keep_samples : bool
        The model may keep samples: ``width="auto"`` is then infinite for up to 20,000 samples.
    lift : str
        Feature map: ``relu-random``, ``random``, ``sigmoid-random``, ``fourier``, ``identity`` and others.
    truncate, threshold, rank : float, float, int, optional
        At most one of them: the share of directions that is cut, the paper's zeta; the eigenvalue below which they are
        cut; or the number of directions that are kept. A soft filter cuts nothing: its ridge is the eigenvalue at that place.
    schedule : {"late", "paper"}
        Cut when the classifier is formed, or after every task as in the paper's Algorithm 4.
    max_rank : int, optional
        Number of directions to which the basis is cut, by default 10,000 (at infinite width, of samples, by default
        all). Between cuts it has up to ``1.6 * max_rank`` (fewer above 9,000).
    gamma : float, optional
        Inverse width of the kernel behind Fourier features.
    random_state : int
        Seed of the random projection. Models with the same seed, width and lift can be merged.
    settings : dict, optional
        Further settings of the method, e.g. ``{"ridge": 1e3}``.
    encoder : Encoder, str or path, optional
        The encoder of images and texts: an :class:`Encoder`, or what it is opened with (a path, an address, ``"text-ngrams"``,
        ``"image-basic"``). ``X`` can then be a list of texts or images instead of features. Any other str is a name. Another
        encoder than that of the samples learned before is refused.
    adapter : path, optional
        With the path of an encoder: modules that :func:`adapt` has trained in it. An :class:`Encoder` has its own.
    n_jobs : int, optional
        Threads; all cores by default.
    verbose : int
        Print progress to standard error while learning: 0 prints nothing, 1 a line per few thousand samples, 2 a line per chunk.

    Attributes
    ----------
    classes_ : ndarray
        The classes learned so far (and those declared to ``partial_fit``), sorted.
    n_features_in_ : int
        Features of a sample.
    n_samples_seen_ : int
        Samples learned.
    width_ : int or float("inf")
        The width, chosen or given.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from loranpac import make
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make("ranpac", width=500).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.9)
    True
    """

    def __init__(
        self,
        method: str = "loranpac",
        *,
        width: float | str = "auto",
        expected_samples: int | None = None,
        keep_samples: bool = False,
        lift: str = "relu-random",
        truncate: float | None = None,
        threshold: float | None = None,
        rank: int | None = None,
        schedule: str = "late",
        max_rank: int | None = None,
        gamma: float | None = None,
        random_state: int = 0,
        settings: dict[str, Any] | None = None,
        encoder: Encoder | Path | None = None,
        adapter: Path | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.method = method
        self.width = width
        self.expected_samples = expected_samples
        self.keep_samples = keep_samples
        self.lift = lift
        self.truncate = truncate
        self.threshold = threshold
        self.rank = rank
        self.schedule = schedule
        self.max_rank = max_rank
        self.gamma = gamma
        self.random_state = random_state
        self.settings = settings
        self.encoder = encoder
        self.adapter = adapter
        self.n_jobs = n_jobs
        self.verbose = verbose

    # Subclasses override these two.

    def _method(self) -> str:
        return self.method

    def _settings(self) -> dict[str, Any]:
        return dict(self.settings or {})

    def _new_learner(self, X: NDArray[np.float32], classes: NDArray[Any]) -> _engine.Learner:
        samples, features = X.shape
        options = engine_options(self, self._method(), self._settings(), features, samples, len(classes))
        return self._identified(_engine.Learner(options, threads(self.n_jobs)))

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> ContinualClassifier:
        """Learn samples from scratch: everything learned before is dropped.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of texts or images
            Features. C-order float32 arrays are used without a copy; everything else is converted. With an encoder, ``X`` can be
            everything that :meth:`Encoder.encode` takes.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights from 0 on (``loranpac`` and ``loranpac-soft``). A sample of weight 2 is learned as if it were there twice, and
            one of weight 0 not at all. Multiplying all weights by a number does not change the answers, unless the ridge or the
            threshold is a number that you choose.
        """
        with self._restore_features_on_failure():
            X, y = self._samples_with_labels(X, y, reset=True)
            X, y, weights = learnable(X, y, sample_weight)
            classes = _union([y])
            learner = self._new_learner(X, classes)
            try:
                learner.learn(X, _coded(y, classes), progress(self.verbose, self._method(), len(X)), weights=weights)
            except KeyboardInterrupt:
                raise KeyboardInterrupt("fit was interrupted; the model is as it was before") from None
        self._adopt(learner)
        self.classes_ = classes
        self._changed(calibrated=False)
        return self

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> ContinualClassifier:
        """Learn a task: more samples, of known or new classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of texts or images
            Features, or inputs of the encoder.
        y : array-like of shape (n_samples,)
            Labels; any of them may be new.
        classes : array-like, optional
            Not required. If given, as for other estimators, these classes are in ``classes_`` even without samples (with a score
            of minus infinity), and other labels are refused.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, as in :meth:`fit`.
        """
        first = not hasattr(self, "_learner")
        with self._restore_features_on_failure():
            X, y = self._samples_with_labels(X, y, reset=first)
            X, y, weights = learnable(X, y, sample_weight)
            declared = None if classes is None else _union([column_or_1d(_label_array(classes))])
            if declared is not None:
                undeclared = [label for label in _union([y]) if label not in declared]
                if undeclared:
                    raise ValueError(f"y: the labels {_some(undeclared)} are not in classes={_some(declared)}")
            new = [y] if declared is None else [y, declared]
            everything = _union(new) if first else self._with(*new)
            learner = self._new_learner(X, everything) if first else self._learner
            report = progress(self.verbose, self._method(), len(X))
            coded = _coded(y, everything)
            known, digests = (None if first else learner.knows(X, coded, weights)) or (False, None)
            if known:
                warnings.warn("these samples have been learned before; they count twice now", stacklevel=2)
            try:
                learner.learn(X, coded, report, digests, weights)
            except BaseException:
                # The first part of the task may have been learned.
                learned = set(learner.labels())
                if first and not learned:
                    raise
                before = set() if first else set(self.classes_)
                keep = [label in before or _plain(label) in learned for label in everything]
                self._adopt(learner)
                self.classes_ = everything[keep]
                self._changed()
                raise
        self._adopt(learner)
        self.classes_ = everything
        self._changed()
        return self

    def save(self, path: Path, *, overwrite: bool = False) -> ContinualClassifier:
        """Write the model into a folder ``NAME.lrp``, which the command line reads as well.

        Parameters
        ----------
        path : path
            The folder.
        overwrite : bool
            Replace an existing model: this one becomes its next version, and :func:`rollback` restores the previous one.
            A model that was loaded from the folder, or saved to it, needs no ``overwrite`` unless another process has changed the
            folder since; only the changes are written then.
        """
        self._check_fitted()
        check_name(path)
        self._check_saveable()
        folder = os.path.abspath(path)
        if os.path.exists(folder) and not overwrite and folder != getattr(self, "_folder", None):
            raise FileExistsError(f"{os.fspath(path)!r} already exists; overwrite=True makes this its next version")
        self._settle_encoder(record=True)
        self._settle_prior()
        self._learner.save(folder, overwrite)
        self._folder = folder
        return self

    def to_onnx(self, path: Path, *, half: bool = False, probabilities: bool = False) -> None:
        """Write the classifier as ONNX: input ``x``, outputs ``scores`` and ``label_index``; labels are in the metadata.

        Parameters
        ----------
        path : path
            A file whose name ends with ``.onnx``.
        half : bool
            Weights in half precision: half the size.
        probabilities : bool
            Add an output with probabilities (after :meth:`calibrate`).
        """
        self._export(path, ".onnx", half, probabilities)

    def to_safetensors(self, path: Path, *, half: bool = False) -> None:
        """Write the classifier as a small file for ``loranpac predict``.

        Parameters
        ----------
        path : path
            A file whose name ends with ``.safetensors``.
        half : bool
            Weights in half precision: half the size.
        """
        self._export(path, ".safetensors", half, False)

    def _export(self, path: Path, suffix: str, half: bool, probabilities: bool) -> None:
        self._check_fitted()
        if not os.fspath(path).endswith(suffix):
            raise ValueError(f"path: a name that ends with {suffix} is expected, not {os.fspath(path)!r}")
        self._settle_encoder(record=True)
        self._settle_prior()
        self._learner.export(path, half, probabilities)

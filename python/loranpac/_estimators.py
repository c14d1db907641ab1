"""The estimators: the engine with the manners of scikit-learn."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from loranpac import _engine
from loranpac._labels import _coded, _label_array, _plain, _plain_array, _some, _sorted, _targets, _union
from loranpac._models import Path, check_name, threads


def methods() -> list[dict[str, Any]]:
    """Every method there is, with what it is and which settings it takes.

    >>> [method["name"] for method in methods()][:2]
    ['loranpac', 'loranpac-soft']
    """
    return json.loads(_engine.methods())


class ContinualClassifier(ClassifierMixin, BaseEstimator):
    """Any of the methods, with the manners of scikit-learn; :func:`make` makes one by name.

    Parameters
    ----------
    method : str
        Its name; see :func:`methods`.
    width : int or float("inf")
        Width of the lifted features, E. Methods without a lift ignore it. ``float("inf")`` is the limit of ``relu-random``,
        by its kernel, for ``loranpac`` and ``loranpac-soft``: the model then keeps the samples.
    lift : str
        Feature map: ``relu-random``, ``random``, ``sigmoid-random``, ``fourier``, ``identity`` and others.
    truncate, threshold, rank : float, float, int, optional
        At most one of them: the share of directions that is cut, the paper's zeta; the eigenvalue below which they are
        cut; or how many are kept. Under a soft filter, which cuts nothing, the ridge is the eigenvalue at that place.
    schedule : {"late", "paper"}
        Cut when the classifier is formed, or after every task as in the paper's Algorithm 4.
    max_rank : int
        Keep at most so many directions.
    gamma : float, optional
        Inverse width of the kernel behind Fourier features.
    random_state : int
        Seed of the random projection. Models with the same seed, width and lift can be merged.
    settings : dict, optional
        Further settings of the method, e.g. ``{"ridge": 1e3}``.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    classes_ : ndarray
        The classes seen so far (and those that ``partial_fit`` was told of), sorted.
    n_features_in_ : int
        Features of a sample.
    n_samples_seen_ : int
        Samples learned.

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
        width: float = 10_000,
        lift: str = "relu-random",
        truncate: float | None = None,
        threshold: float | None = None,
        rank: int | None = None,
        schedule: str = "late",
        max_rank: int = 10_000,
        gamma: float | None = None,
        random_state: int = 0,
        settings: dict[str, Any] | None = None,
        n_jobs: int | None = None,
    ):
        self.method = method
        self.width = width
        self.lift = lift
        self.truncate = truncate
        self.threshold = threshold
        self.rank = rank
        self.schedule = schedule
        self.max_rank = max_rank
        self.gamma = gamma
        self.random_state = random_state
        self.settings = settings
        self.n_jobs = n_jobs

    # What a subclass says about its method.

    def _method(self) -> str:
        return self.method

    def _settings(self) -> dict[str, Any]:
        return dict(self.settings or {})

    # Learning.

    def fit(self, X: ArrayLike, y: ArrayLike) -> ContinualClassifier:
        """Learn samples, and nothing else: what was known before is gone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features. float32 in C order is used as it is; all else is converted.
        y : array-like of shape (n_samples,)
            Labels.
        """
        with self._as_before_on_failure():
            X, y = self._samples_with_labels(X, y, reset=True)
            classes = _union([y])
            learner = self._new_learner(X.shape[1])
            try:
                learner.learn(X, *_coded(y, classes))
            except KeyboardInterrupt:
                raise KeyboardInterrupt("fit was interrupted; the model is as it was before") from None
        self._learner, self.classes_ = learner, classes
        self._changed(calibrated=False)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> ContinualClassifier:
        """Learn a task: more samples, of known or new classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Labels; any of them may be new.
        classes : array-like, optional
            Not needed. If given, as other estimators want it, these classes are in ``classes_`` even if there are no samples of
            them yet (with a score of minus infinity), and other labels are refused.
        """
        first = not hasattr(self, "_learner")
        with self._as_before_on_failure():
            X, y = self._samples_with_labels(X, y, reset=first)
            declared = None if classes is None else _union([column_or_1d(_label_array(classes))])
            if declared is not None:
                strange = [label for label in _union([y]) if label not in declared]
                if strange:
                    raise ValueError(f"y: the labels {_some(strange)} are not in classes={_some(declared)}")
            new = [y] if declared is None else [y, declared]
            everything = _union(new) if first else self._with(*new)
            learner = self._new_learner(X.shape[1]) if first else self._learner
            codes, names = _coded(y, everything)
            if not first and learner.knows(X, codes, names):
                warnings.warn("these samples have been learned before; they count twice now", stacklevel=2)
            try:
                learner.learn(X, codes, names)
            except BaseException:
                # A part of the task may have been learned, in the order in which it came.
                learned = set(learner.labels())
                if first and not learned:
                    raise
                before = set() if first else set(self.classes_)
                keep = [label in before or _plain(label) in learned for label in everything]
                self._learner, self.classes_ = learner, everything[keep]
                self._changed()
                raise
        self._learner, self.classes_ = learner, everything
        self._changed()
        return self

    def unlearn(self, X: ArrayLike, y: ArrayLike, *, again: bool = False) -> ContinualClassifier:
        """Take samples back that have been learned, as if they had never been seen, to rounding.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples that have been learned.
        y : array-like of shape (n_samples,)
            The labels under which they have been learned.
        again : bool
            Whether to do it although the same was done before: for samples that were learned several times. Otherwise the
            second call changes nothing and warns.

        Samples that were never learned are refused where the features prove it. If they can prove nothing, and the samples are
        not those of one call of :meth:`partial_fit`, there is a warning, and the training error is no longer exact.
        """
        self._check_fitted()
        X, y = self._samples_with_labels(X, y, reset=False)
        before = self._learner.labels()
        unchecked = self._learner.unlearn(X, *_coded(y, self._with(y)), again)
        self._drop_classes(before)
        _warn_edited(unchecked, _AGAIN)
        return self

    def relabel(self, X: ArrayLike, y_old: ArrayLike, y_new: Any, *, again: bool = False) -> ContinualClassifier:
        """Move samples to other labels, as if they had been learned under those, to rounding.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples that have been learned.
        y_old : array-like of shape (n_samples,)
            The labels under which they have been learned.
        y_new : label, or array-like of shape (n_samples,)
            Their new label, or one for each of them; any of them may be new.
        again : bool
            Whether to do it although the same was done before: for samples that were learned several times. Otherwise the
            second call changes nothing and warns.

        Samples are checked as by :meth:`unlearn`.

        Examples
        --------
        >>> X = np.eye(4, dtype=np.float32)
        >>> model = LoRanPACClassifier(width=100).fit(X, ["cat", "cat", "dog", "dog"])
        >>> model.relabel(X[1:2], ["cat"], "dog").class_count_
        array([1, 3])
        """
        self._check_fitted()
        X, y_old = self._samples_with_labels(X, y_old, reset=False)
        y_new = _plain_array(y_new)
        y_new = _targets(column_or_1d(_label_array([y_new] * len(X) if np.ndim(y_new) == 0 else y_new)))
        check_consistent_length(X, y_new)
        classes, before = self._with(y_new), set(self._learner.labels())
        names = self._with(y_old, y_new)
        codes_old, plain = _coded(y_old, names)
        unchecked = self._learner.relabel(X, codes_old, _coded(y_new, names)[0], plain, again)
        if unchecked is not None:
            known, declared = set(self._learner.labels()), {_plain(label) for label in self.classes_} - before
            self.classes_ = classes[[_plain(label) in known | declared for label in classes]]
            self._changed()
        _warn_edited(unchecked, _AGAIN)
        return self

    def forget(self, label: Any) -> ContinualClassifier:
        """Remove a class from prediction. If that was done before, nothing changes, and a warning is issued.

        Its samples are no longer in the class sums, but their directions remain in the Gram matrix of the features, where
        they belong to nobody. :meth:`unlearn` removes those, too, if you still have the samples. At infinite width the
        samples of the class are removed.
        """
        self._check_fitted()
        before = self._learner.labels()
        unchecked = self._learner.forget(_plain(label))
        self._drop_classes(before)
        _warn_edited(unchecked)
        return self

    def rename(self, old: Any, new: Any) -> ContinualClassifier:
        """Give a class another name. If that was done before, nothing changes, and a warning is issued."""
        self._check_fitted()
        kept = self.classes_[[_plain(label) != _plain(old) for label in self.classes_]]
        classes = _union([kept, np.asarray(_label_array([_plain(new)]))], mixed=self._is_mixed())
        unchecked = self._learner.rename(_plain(old), _plain(new))
        if unchecked is not None:
            self.classes_ = classes
            self._changed()
        _warn_edited(unchecked)
        return self

    def merge(self, other: ContinualClassifier | Iterable[ContinualClassifier], *, again: bool = False) -> ContinualClassifier:
        """Take in what other models have learned, as if it had been learned here.

        Parameters
        ----------
        other : estimator, or several
            Models with the same lift (kind, width, ``random_state``) and settings.
        again : bool
            Whether samples that several of them have learned shall count several times; otherwise they are refused.
        """
        self._check_fitted()
        others = list(other) if isinstance(other, Iterable) else [other]
        for model in others:
            if not isinstance(model, ContinualClassifier):
                raise TypeError(f"other: a fitted {type(self).__name__} is expected, not {type(model).__name__}")
            model._check_fitted()
        classes = self._with(*(model.classes_ for model in others))
        for warning in self._learner.merge([model._learner for model in others], again):
            warnings.warn(warning, stacklevel=2)
        self.classes_ = classes
        self._changed(calibrated=False)
        return self

    # Predicting.

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each sample."""
        scores, classes = self._scores(X)
        return classes[np.argmax(scores, axis=1)]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float32]:
        """Scores: one column per class of ``classes_``; for two classes, the second's score less the first's."""
        scores, _ = self._scores(X)
        if scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities: softmax of the scores over a temperature, which :meth:`calibrate` fits to held-out samples.

        Without that they rank the classes as the scores do, but mean little as probabilities.
        """
        return self._softmax(self._scores(X)[0])

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def calibrate(self, X: ArrayLike, y: ArrayLike) -> ContinualClassifier:
        """Fit the temperature of probabilities to samples that have not been learned."""
        self._check_fitted()
        X, y = self._samples_with_labels(X, y, reset=False)
        self.temperature_ = self._learner.calibrate(X, *_coded(y, self._with(y)))
        return self

    def novelty(self, X: ArrayLike) -> NDArray[np.float64]:
        """How much of each sample lies outside of what the model has learned, from 0 to 1."""
        X = self._samples(X)
        novelty = self._learner.novelty(X)
        if novelty is None:
            raise TypeError(f"{self._method()} cannot tell how foreign a sample is; loranpac and loranpac-soft can")
        return novelty

    def lifted(self, X: ArrayLike) -> NDArray[np.float32]:
        """The random features of samples, of shape (n_samples, width): what the classifier is linear in."""
        return self._learner.lift(self._samples(X))

    # What is known about the model.

    @property
    def certificate_(self) -> dict[str, Any]:
        """The paper's quantities: what truncation has cost, conditioning, gaps (see ``docs/theory.md``)."""
        certificate = self._summary()["certificate"]
        if certificate is None:
            raise AttributeError(f"{self._method()} has no certificate")
        return certificate

    @property
    def train_mse_(self) -> float:
        """The mean squared error on everything learned, computed without the samples. After a cut or a compression, a lower
        bound. After edits of samples that could not be checked (``certificate_["assumed"]``) it holds if they had been learned
        under their labels."""
        error = self._summary()["train_mse"]
        if error is None:
            raise AttributeError(f"{self._method()} does not know its training error")
        return error

    @property
    def leave_one_out_(self) -> float:
        """The share of samples that the model would get right without having seen them: infinite width, soft filter."""
        share = self._summary().get("leave_one_out")
        if share is None:
            raise AttributeError("leave-one-out accuracy needs width=inf, the soft filter, and all samples")
        return share

    @property
    def verdict_(self) -> str:
        """The certificate in words."""
        verdict = self._summary()["verdict"]
        if verdict is None:
            raise AttributeError(f"{self._method()} has no certificate")
        return " ".join([verdict["line"], *(f"Warning: {warning}." for warning in verdict["warnings"])])

    @property
    def n_samples_seen_(self) -> int:
        """Samples learned."""
        return self._summary()["samples"]

    @property
    def class_count_(self) -> NDArray[np.int64]:
        """Samples of each class of ``classes_``."""
        self._check_fitted("class_count_")
        counts = self._learner.counts()
        if counts is None:
            raise AttributeError(f"{self._method()} does not count")
        count_of = dict(zip(self._learner.labels(), counts))
        return np.array([count_of.get(_plain(label), 0) for label in self.classes_], dtype=np.int64)

    def spectrum(self) -> NDArray[np.float64]:
        """Eigenvalues of the Gram matrix of the lifted samples, in descending order."""
        self._check_fitted()
        values = self._learner.spectrum()
        if values is None:
            raise TypeError(f"{self._method()} does not keep the spectrum; loranpac and loranpac-soft do")
        return np.array(values)

    # On the disk and elsewhere.

    def save(self, path: Path, *, overwrite: bool = False) -> ContinualClassifier:
        """Write the model into a folder ``NAME.lrp``, which the command line reads as well.

        Parameters
        ----------
        path : path
            The folder.
        overwrite : bool
            Whether a model that is there may be replaced; it then becomes its next version, and ``loranpac rollback`` goes
            back. The model that this one was loaded from, or saved to, needs no permission unless another process has changed it since;
            only what is new is written then.
        """
        self._check_fitted()
        check_name(path)
        self._check_saveable()
        folder = os.path.abspath(path)
        if os.path.exists(folder) and not overwrite and folder != getattr(self, "_folder", None):
            raise FileExistsError(f"{os.fspath(path)!r} is there already; overwrite=True makes this its next version")
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
            An output with probabilities, too (after :meth:`calibrate`).
        """
        self._check_fitted()
        if not os.fspath(path).endswith(".onnx"):
            raise ValueError(f"path: a name that ends with .onnx is expected, not {os.fspath(path)!r}")
        self._learner.export(path, half, probabilities)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        learner = state.pop("_learner", None)
        state.pop("_folder", None)
        state.pop("_cached_summary", None)
        if learner is not None:
            self._check_saveable()
            with tempfile.TemporaryDirectory() as place:
                folder = os.path.join(place, "model.lrp")
                learner.save_copy(folder)
                files = {name: _read(os.path.join(folder, name)) for name in os.listdir(folder) if name != "LOCK"}
            state["_files"] = files
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        files = state.pop("_files", None)
        super().__setstate__(state)
        if files is not None:
            place = tempfile.mkdtemp()
            try:
                folder = os.path.join(place, "model.lrp")
                os.mkdir(folder)
                for name, data in files.items():
                    if os.path.basename(name) != name:
                        raise ValueError(f"{name!r} is not a name that a file of a model can have")
                    with open(os.path.join(folder, name), "wb") as file:
                        file.write(data)
                self._learner = _engine.Learner.load(folder, threads(self.n_jobs))
            finally:
                # What is mapped stays readable; where it cannot be removed meanwhile, it is the system's to clean.
                shutil.rmtree(place, ignore_errors=True)

    # What the above share.

    def _new_learner(self, n_features: int) -> _engine.Learner:
        """A learner with the parameters; what is wrong with them is told here, as scikit-learn wants it."""
        width = _width(self.lift, self.width)
        _whole("max_rank", self.max_rank)
        _whole("random_state", self.random_state, least=0)
        if self.schedule not in ("late", "paper"):
            raise ValueError(f"schedule: 'late' or 'paper' is expected, not {self.schedule!r}")
        cuts = [(name, value) for name in ("truncate", "threshold", "rank") if (value := getattr(self, name)) is not None]
        if len(cuts) > 1:
            raise ValueError(f"at most one of truncate, threshold and rank is expected, not {' and '.join(n for n, _ in cuts)}")
        for name, value in [*cuts, ("gamma", 1.0 if self.gamma is None else self.gamma)]:
            if not isinstance(value, Real) or isinstance(value, bool):
                raise ValueError(f"{name}: a number is expected, not {value!r}")
        if self.rank is not None:
            _whole("rank", self.rank)
        options = {
            "method": self._method(),
            "dim": n_features,
            "lift": self.lift,
            "width": width,
            "seed": int(self.random_state),
            "gamma": _engine.GAMMA if self.gamma is None else float(self.gamma),
            "truncation": (cuts[0][0], float(cuts[0][1])) if cuts else None,
            "schedule": self.schedule,
            "max_rank": int(self.max_rank),
            "settings": [(name, str(value)) for name, value in self._settings().items()],
            "keep": 1,
            "encoder": None,
        }
        return _engine.Learner(options, threads(self.n_jobs))

    def _samples(self, X: ArrayLike) -> NDArray[np.float32]:
        self._check_fitted()
        return _aligned(validate_data(self, _plain_array(X), reset=False, dtype=np.float32, order="C"))

    def _samples_with_labels(self, X: Any, y: Any, reset: bool) -> tuple[NDArray[np.float32], NDArray[Any]]:
        X, y = validate_data(self, _plain_array(X), _label_array(y), reset=reset, dtype=np.float32, order="C")
        return _aligned(X), _targets(y)

    def _scores(self, X: ArrayLike) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Scores, and the classes that they are of: another thread may teach the model new ones in the meantime."""
        X = self._samples(X)
        classes = self.classes_
        return self._learner.scores(X, [_plain(label) for label in classes]), classes

    def _softmax(self, scores: NDArray[np.float32]) -> NDArray[np.float64]:
        temperature = getattr(self, "temperature_", _engine.UNCALIBRATED)
        values = scores.astype(np.float64)
        values = np.exp((values - values.max(axis=1, keepdims=True)) / temperature)
        return values / values.sum(axis=1, keepdims=True)

    def _summary(self) -> dict[str, Any]:
        if not hasattr(self, "_learner"):
            # An attribute that is not there yet: hasattr and check_is_fitted rely on it.
            raise AttributeError(f"this {type(self).__name__} has not learned anything yet")
        if self.__dict__.get("_cached_summary") is None:
            self._cached_summary = json.loads(self._learner.summary())
        return self._cached_summary

    def _with(self, *more: NDArray[Any]) -> NDArray[Any]:
        """The classes, and more."""
        return _union([self.classes_, *more], mixed=self._is_mixed())

    def _is_mixed(self) -> bool:
        """Whether the model has numbers and texts as labels, as the command line allows."""
        return len({isinstance(_plain(label), str) for label in self.classes_}) == 2

    def _changed(self, calibrated: bool = True) -> None:
        self._cached_summary = None
        if not calibrated:
            self.__dict__.pop("temperature_", None)

    def _drop_classes(self, before: list[Any]) -> None:
        """After the engine has lost classes: those that it does not know any more go."""
        lost = set(before) - set(self._learner.labels())
        self.classes_ = self.classes_[[_plain(label) not in lost for label in self.classes_]]
        self._changed()

    @contextmanager
    def _as_before_on_failure(self) -> Iterator[None]:
        """What is known about features comes and goes with what is known."""
        names = ("n_features_in_", "feature_names_in_")
        before = {name: self.__dict__[name] for name in names if name in self.__dict__}
        had = hasattr(self, "_learner")
        try:
            yield
        except BaseException:
            if had or not hasattr(self, "_learner"):
                for name in names:
                    self.__dict__.pop(name, None)
                self.__dict__.update(before)
            raise

    def _check_fitted(self, name: str | None = None) -> None:
        if name is not None and not hasattr(self, "_learner"):
            raise AttributeError(f"{name}: this {type(self).__name__} has not learned anything yet")
        check_is_fitted(self, "_learner")

    def _check_saveable(self) -> None:
        strange = [label for label in self.classes_ if not isinstance(_plain(label), (int, str))]
        if strange:
            raise TypeError(f"labels that are neither whole numbers nor texts cannot be saved: {_some(strange)}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learner")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


class LoRanPACClassifier(ContinualClassifier):
    """Truncated least squares on random ReLU features, kept up to date in closed form.

    Parameters
    ----------
    width : int or float("inf")
        Width of the lifted features, E. More is better and costs more, in proportion; 10,000 is a good start.
        ``float("inf")`` is the limit, by the arc-cosine kernel: exact, and faster up to some ten thousand samples, but the
        model keeps the samples.
    filter : {"soft", "hard"}
        A ridge that is read off the spectrum (its geometric mean), or the paper's cut.
    truncate, threshold, rank : float, float, int, optional
        Hard: the share of directions that is cut, the paper's zeta (0.25 if nothing is said); the eigenvalue below which they
        are cut; or how many are kept. Soft: the ridge is the eigenvalue at that place. At most one of them.
    ridge : float or "loo", optional
        Soft: the ridge itself, or (infinite width) the best of six decades by leave-one-out accuracy. Hard: added to the
        kept eigenvalues.
    schedule : {"late", "paper"}
        Hard: cut when the classifier is formed, or after every task as in the paper's Algorithm 4.
    max_rank : int
        Keep at most so many directions: memory is E times this at most. At infinite width, so many samples, and up to a quarter
        (or 384) more between cuts.
    lift : str
        Feature map.
    gamma : float, optional
        Inverse width of the kernel behind ``lift="fourier"``.
    half : bool
        At infinite width: keep samples in half precision.
    random_state : int
        Seed of the random projection. Models with the same seed, width and lift can be merged.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    n_features_in_, n_samples_seen_ : int
        Features of a sample; samples learned.
    certificate_ : dict
        The paper's quantities.
    train_mse_ : float
        The mean squared error on everything learned, computed without the samples.
    leave_one_out_ : float
        At infinite width, soft: the share of samples that the model would get right without having seen them.
    temperature_ : float
        Of probabilities, after :meth:`calibrate`.

    Examples
    --------
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

    def __init__(
        self,
        width: float = 10_000,
        *,
        filter: str = "soft",
        truncate: float | None = None,
        threshold: float | None = None,
        rank: int | None = None,
        ridge: float | str | None = None,
        schedule: str = "late",
        max_rank: int = 10_000,
        lift: str = "relu-random",
        gamma: float | None = None,
        half: bool = False,
        random_state: int = 0,
        n_jobs: int | None = None,
    ):
        self.width = width
        self.filter = filter
        self.truncate = truncate
        self.threshold = threshold
        self.rank = rank
        self.ridge = ridge
        self.schedule = schedule
        self.max_rank = max_rank
        self.lift = lift
        self.gamma = gamma
        self.half = half
        self.random_state = random_state
        self.n_jobs = n_jobs

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
    def load(cls, path: Path, *, n_jobs: int | None = None) -> LoRanPACClassifier:
        """Read a model that :meth:`save` or the command line has written.

        Every byte is compared with its checksum. Learning goes on where it was; :meth:`save` to the same path writes what
        is new.
        """
        if not os.path.isdir(path):
            raise FileNotFoundError(f"{os.fspath(path)!r}: there is no such model")
        learner = _engine.Learner.load(path, threads(n_jobs))
        manifest = json.loads(learner.manifest())
        labels = learner.labels()
        if not labels:
            raise NotFittedError(f"{os.fspath(path)!r} has not learned anything yet")
        lift, config = manifest["lift"], manifest["config"]
        infinite = lift["name"] == "arc-cosine"
        model = cls(
            width=float("inf") if infinite else lift["width"],
            lift="relu-random" if infinite else lift["name"],
            half=config.get("half", False),
            gamma=lift["gamma"],
            random_state=lift["seed"],
            schedule=config["schedule"],
            max_rank=config["max_rank"],
            n_jobs=n_jobs,
            **_filter_parameters(config["filter"]),
        )
        model._learner, model._folder = learner, os.path.abspath(path)
        model.n_features_in_ = lift["dim"]
        model.classes_ = _sorted(labels)
        if manifest["calibration"] is not None:
            model.temperature_ = manifest["calibration"]["temperature"]
        model._changed()
        return model


def make(method: str, **parameters: Any) -> ContinualClassifier:
    """An estimator by the name of its method; parameters that are not the estimator's are settings of the method.

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
    strange = [name for name in parameters if name not in known[method]["settings"]]
    if strange:
        names = ", ".join([*ContinualClassifier().get_params(), *known[method]["settings"]])
        raise TypeError(f"{method} has no parameter {_some(strange)}; it has {names}")
    return ContinualClassifier(method, **own, settings=parameters or None)


def _filter_parameters(filter: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an estimator from a filter as a model on disk has it."""
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


def _aligned(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """The array, moved if it begins in the middle of a number, as one may that has come over a network."""
    return X if X.flags.aligned else X.copy()


_AGAIN = "; again=True applies it once more, for samples that were learned several times"


def _warn_edited(unchecked: int | None, hint: str = "") -> None:
    """Warn of an edit that was done before (None), or of samples that it could not check."""
    if unchecked is None:
        warnings.warn(f"already applied; nothing has changed{hint}", stacklevel=3)
    elif unchecked > 0:
        warnings.warn(
            f"could not check that {unchecked} of the samples had been learned under their labels: there are not fewer samples "
            "than directions, and they are not those of one call of partial_fit. The training error is no longer exact",
            stacklevel=3,
        )


def _width(lift: str, width: Any) -> int | None:
    """The engine's width: None if it is infinite."""
    if isinstance(width, Real) and width == float("inf"):
        if lift != "relu-random":
            raise ValueError(f"lift: width=inf is the limit of 'relu-random', and not of {lift!r}")
        return None
    if not isinstance(width, Real) or isinstance(width, bool) or width < 1 or width != int(width):
        raise ValueError(f"width: a whole number of at least 1 or float('inf') is expected, not {width!r}")
    return int(width)


def _whole(name: str, value: Any, least: int = 1) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}: a whole number of at least {least} is expected, not {value!r}")


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()

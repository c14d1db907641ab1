"""What all parts of the estimators share: the engine's learner, input checks and pickles."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from loranpac import _engine
from loranpac._encoding import Encoding, as_list
from loranpac._labels import _label_array, _plain, _plain_array, _some, _targets, _union
from loranpac._models import threads
from loranpac._parameters import prior_text


class LearnerBase(Encoding, ClassifierMixin, BaseEstimator):
    """An estimator that holds a learner of the engine in ``_learner`` once it has learned something."""

    classes_: NDArray[Any]

    def _method(self) -> str:
        """The name of the method."""
        raise NotImplementedError

    def _samples(self, X: ArrayLike) -> NDArray[np.float32]:
        self._check_fitted()
        X = as_list(_plain_array(X))
        encoder = self._encoder_of(X, fitted=True)
        if encoder is not None:
            X = self._encoded(encoder, X, learning=False)
        return _aligned(validate_data(self, X, reset=False, dtype=np.float32, order="C"))

    def _samples_with_labels(self, X: Any, y: Any, reset: bool) -> tuple[NDArray[np.float32], NDArray[Any]]:
        X, y = as_list(_plain_array(X)), _label_array(y)
        encoder = self._encoder_of(X, fitted=not reset)
        if encoder is None:
            X, y = validate_data(self, X, y, reset=reset, dtype=np.float32, order="C")
            return _aligned(X), _targets(y)
        # Labels are checked before images and texts are encoded, which can take long.
        y = _targets(check_X_y(np.zeros((len(X), 1), dtype=np.float32), y)[1])
        X = self._encoded(encoder, X, learning=True)
        return _aligned(validate_data(self, X, reset=reset, dtype=np.float32, order="C")), y

    def _settle_prior(self) -> None:
        """Pass the parameter ``prior`` to the learner, of estimators that have it: it may have been changed after ``fit``."""
        prior = getattr(self, "prior", None)
        if prior is not None:
            self._learner.set_prior(prior_text(prior))

    def _summary(self) -> dict[str, Any]:
        if not hasattr(self, "_learner"):
            # hasattr and check_is_fitted rely on this exception.
            raise AttributeError(f"this {type(self).__name__} has not learned anything yet")
        if self.__dict__.get("_cached_summary") is None:
            self._cached_summary = json.loads(self._learner.summary())
        return self._cached_summary

    def _with(self, *more: NDArray[Any]) -> NDArray[Any]:
        """The classes of the model and of other arrays, sorted."""
        return _union([self.classes_, *more], mixed=self._is_mixed())

    def _is_mixed(self) -> bool:
        """Whether the model has both integers and strings as labels, as the command line allows."""
        return len({isinstance(_plain(label), str) for label in self.classes_}) == 2

    def _changed(self, calibrated: bool = True) -> None:
        """Drop cached facts after a change, and the temperature unless it is still valid."""
        self._cached_summary = None
        if not calibrated:
            self.__dict__.pop("temperature_", None)

    @contextmanager
    def _restore_features_on_failure(self) -> Iterator[None]:
        """Restore what validation records about the features if nothing was learned."""
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
        invalid = [label for label in self.classes_ if not isinstance(_plain(label), (int, str))]
        if invalid:
            raise TypeError(f"only integers and strings can be saved as labels, not {_some(invalid)}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learner")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        learner = state.pop("_learner", None)
        state.pop("_folder", None)
        state.pop("_cached_summary", None)
        if learner is not None:
            self._check_saveable()
            prior = state.get("prior")
            if prior is not None:
                learner.set_prior(prior_text(prior))
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
                        raise ValueError(f"{name!r} is not a valid name for a file of a model")
                    with open(os.path.join(folder, name), "wb") as file:
                        file.write(data)
                self._learner = _engine.Learner.load(folder, threads(self.n_jobs))
            finally:
                # Mapped files stay readable. Systems that cannot remove mapped files clean up later.
                shutil.rmtree(place, ignore_errors=True)


def _aligned(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """The array, copied if its data is not aligned, which happens to arrays received over a network."""
    return X if X.flags.aligned else X.copy()


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()

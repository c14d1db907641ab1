"""Answers of a model: classes, scores, probabilities, novelty and random features."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from loranpac import _engine
from loranpac._base import LearnerBase
from loranpac._labels import _coded, _plain

Model = TypeVar("Model", bound="Prediction")


class Prediction(LearnerBase):
    """The methods of an estimator that answer for samples: features, or inputs of the encoder."""

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each sample."""
        scores, classes = self._scores(X)
        return classes[np.argmax(scores, axis=1)]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float32]:
        """Scores: one column per class of ``classes_``; for two classes, the score of the second minus that of the first."""
        scores, _ = self._scores(X)
        if scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities: softmax of the scores over a temperature, which :meth:`calibrate` fits to held-out samples.

        Without a fitted temperature they rank the classes as the scores do, but are not calibrated.
        """
        return self._softmax(self._scores(X)[0])

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithms of :meth:`predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def calibrate(self: Model, X: ArrayLike, y: ArrayLike) -> Model:
        """Fit the temperature of probabilities to samples that were not learned."""
        self._check_fitted()
        X, y = self._samples_with_labels(X, y, reset=False)
        self._settle_prior()
        self.temperature_ = self._learner.calibrate(X, _coded(y, self._with(y)))
        return self

    def novelty(self, X: ArrayLike) -> NDArray[np.float64]:
        """The share of each sample outside the span of everything learned, from 0 to 1."""
        X = self._samples(X)
        novelty = self._learner.novelty(X)
        if novelty is None:
            raise TypeError(f"{self._method()} cannot measure novelty; loranpac and loranpac-soft can")
        return novelty

    def lifted(self, X: ArrayLike) -> NDArray[np.float32]:
        """The random features of samples, of shape (n_samples, width). The classifier is linear in them."""
        return self._learner.lift(self._samples(X))

    def _scores(self, X: ArrayLike) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Scores, and the classes of their columns: another thread may add classes in the meantime."""
        X = self._samples(X)
        self._settle_prior()
        classes = self.classes_
        return self._learner.scores(X, [_plain(label) for label in classes]), classes

    def _softmax(self, scores: NDArray[np.float32]) -> NDArray[np.float64]:
        temperature = getattr(self, "temperature_", _engine.UNCALIBRATED)
        values = scores.astype(np.float64)
        values = np.exp((values - values.max(axis=1, keepdims=True)) / temperature)
        return values / values.sum(axis=1, keepdims=True)

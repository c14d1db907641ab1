"""Facts about a model: training error, certificate, counts and spectrum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from loranpac._base import LearnerBase
from loranpac._labels import _plain


class Facts(LearnerBase):
    """The attributes of an estimator that describe what it has learned."""

    @property
    def certificate_(self) -> dict[str, Any]:
        """The paper's quantities: the cost of truncation, conditioning, gaps (see ``docs/theory.md``)."""
        certificate = self._summary()["certificate"]
        if certificate is None:
            raise AttributeError(f"{self._method()} has no certificate")
        return certificate

    @property
    def train_mse_(self) -> float:
        """The mean squared error on everything learned, computed without the samples.

        After a cut or a compression it is a lower bound. After edits of samples that could not be checked
        (``certificate_["assumed"]``) it holds if they were learned under their labels.
        """
        error = self._summary()["train_mse"]
        if error is None:
            raise AttributeError(f"{self._method()} has no training error")
        return error

    @property
    def leave_one_out_(self) -> float:
        """Leave-one-out accuracy on everything learned: infinite width, soft filter."""
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
    def width_(self) -> float:
        """The width of the lifted features, chosen or given; ``float("inf")`` if it is infinite."""
        self._check_fitted("width_")
        width = self._learner.width()
        return float("inf") if width is None else width

    @property
    def width_choice_(self) -> str:
        """Why ``width="auto"`` has chosen this width, in words."""
        self._check_fitted("width_choice_")
        words = self._learner.width_choice()
        if words is None:
            raise AttributeError("width_choice_: the width was given, and not chosen")
        return words

    @property
    def class_count_(self) -> NDArray[np.int64]:
        """Samples of each class of ``classes_``."""
        self._check_fitted("class_count_")
        counts = self._learner.counts()
        if counts is None:
            raise AttributeError(f"{self._method()} does not count the samples of classes")
        count_of = dict(zip(self._learner.labels(), counts))
        return np.array([count_of.get(_plain(label), 0) for label in self.classes_], dtype=np.int64)

    def spectrum(self) -> NDArray[np.float64]:
        """Eigenvalues of the Gram matrix of the lifted samples, in descending order."""
        self._check_fitted()
        values = self._learner.spectrum()
        if values is None:
            raise TypeError(f"{self._method()} does not keep the spectrum; loranpac and loranpac-soft do")
        return np.array(values)

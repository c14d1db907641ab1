"""Changes to what a model has learned: unlearn, relabel, forget, rename and merge."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, column_or_1d

from loranpac._base import LearnerBase
from loranpac._labels import _coded, _label_array, _plain, _plain_array, _targets, _union
from loranpac._weights import checked_weights

_AGAIN = "; again=True applies it once more, for samples that were learned several times"

Model = TypeVar("Model", bound="Editing")


class Editing(LearnerBase):
    """The methods of an estimator that change what it has learned."""

    def unlearn(
        self: Model, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None, again: bool = False
    ) -> Model:
        """Remove samples that were learned. The result equals a model that never learned them, up to rounding.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of texts or images
            Samples that were learned, as features or as inputs of the encoder.
        y : array-like of shape (n_samples,)
            The labels under which they were learned.
        sample_weight : array-like of shape (n_samples,), optional
            The weights with which they were learned.
        again : bool
            Apply the change even if the same change was applied before, for samples that were learned several times. By default
            the second call changes nothing and warns.

        Notes
        -----
        Samples that were never learned are refused where the features prove it. If the features prove nothing, and the samples
        are not those of one call of :meth:`partial_fit`, a warning is issued, and the training error is no longer exact.
        """
        self._check_fitted()
        X, y = self._samples_with_labels(X, y, reset=False)
        weights = checked_weights(sample_weight, len(X))
        before = self._learner.labels()
        unchecked = self._learner.unlearn(X, _coded(y, self._with(y)), again, weights)
        self._drop_classes(before)
        _warn_edited(unchecked, _AGAIN)
        return self

    def relabel(
        self: Model,
        X: ArrayLike,
        y_old: ArrayLike,
        y_new: Any,
        *,
        sample_weight: ArrayLike | None = None,
        again: bool = False,
    ) -> Model:
        """Move samples to other labels. The result equals a model that learned them under those, up to rounding.

        Parameters
        ----------
        X, y_old : array-like of shape (n_samples, n_features), array-like of shape (n_samples,)
            Samples that were learned, and the labels under which they were learned.
        y_new : label, or array-like of shape (n_samples,)
            Their new label, or one for each of them; any of them may be new.
        sample_weight : array-like of shape (n_samples,), optional
            The weights with which they were learned, and which they keep.
        again : bool
            As in :meth:`unlearn`.

        Notes
        -----
        Samples are checked as by :meth:`unlearn`.

        Examples
        --------
        >>> import numpy as np
        >>> from loranpac import LoRanPACClassifier
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
        weights = checked_weights(sample_weight, len(X))
        classes, before = self._with(y_new), set(self._learner.labels())
        names = self._with(y_old, y_new)
        unchecked = self._learner.relabel(X, _coded(y_old, names), _coded(y_new, names), again, weights)
        if unchecked is not None:
            known, declared = set(self._learner.labels()), {_plain(label) for label in self.classes_} - before
            self.classes_ = classes[[_plain(label) in known | declared for label in classes]]
            self._changed()
        _warn_edited(unchecked, _AGAIN)
        return self

    def forget(self: Model, label: Any) -> Model:
        """Remove a class from prediction. If it was removed before, nothing changes, and a warning is issued.

        The samples of the class leave the class sums, but their directions remain in the Gram matrix of the features.
        :meth:`unlearn` removes those as well, if you still have the samples. At infinite width the samples of the class are
        removed.
        """
        self._check_fitted()
        before = self._learner.labels()
        unchecked = self._learner.forget(_plain(label))
        self._drop_classes(before)
        _warn_edited(unchecked)
        return self

    def rename(self: Model, old: Any, new: Any) -> Model:
        """Rename a class. If it was renamed so before, nothing changes, and a warning is issued."""
        self._check_fitted()
        kept = self.classes_[[_plain(label) != _plain(old) for label in self.classes_]]
        classes = _union([kept, np.asarray(_label_array([_plain(new)]))], mixed=self._is_mixed())
        unchecked = self._learner.rename(_plain(old), _plain(new))
        if unchecked is not None:
            self.classes_ = classes
            self._changed()
        _warn_edited(unchecked)
        return self

    def merge(self: Model, other: Editing | Iterable[Editing], *, again: bool = False) -> Model:
        """Merge other models into this one. The result equals a model that learned all their samples, up to rounding.

        Parameters
        ----------
        other : estimator, or several
            Models with the same lift (kind, width, ``random_state``), settings and encoder. If this one has no encoder, it adopts
            theirs.
        again : bool
            Count samples that several of the models have learned several times. By default they are refused.
        """
        self._check_fitted()
        others = list(other) if isinstance(other, Iterable) else [other]
        for model in others:
            if not isinstance(model, Editing):
                raise TypeError(f"other: a fitted {type(self).__name__} is expected, not {type(model).__name__}")
            model._check_fitted()
        classes = self._with(*(model.classes_ for model in others))
        for model in (self, *others):
            model._settle_encoder(record=True)
            model._settle_prior()
        for warning in self._learner.merge([model._learner for model in others], again):
            warnings.warn(warning, stacklevel=2)
        self.classes_ = classes
        if self.encoder is None:
            self.encoder = next((own for model in others if (own := model._own_encoder()) is not None), None)
            self._settled_encoder = ((self.encoder, self.adapter), True)
        self._changed(calibrated=False)
        return self

    def _drop_classes(self, before: list[Any]) -> None:
        """Drop the classes that the engine has dropped."""
        lost = set(before) - set(self._learner.labels())
        self.classes_ = self.classes_[[_plain(label) not in lost for label in self.classes_]]
        self._changed()


def _warn_edited(unchecked: int | None, hint: str = "") -> None:
    """Warn of an edit that was applied before (None), or of samples that it could not check."""
    if unchecked is None:
        warnings.warn(f"already applied; nothing has changed{hint}", stacklevel=3)
    elif unchecked > 0:
        warnings.warn(
            f"could not check that {unchecked} of the samples had been learned under their labels: there are not fewer samples "
            "than directions, and they are not those of one call of partial_fit. The training error is no longer exact",
            stacklevel=3,
        )

"""The encoder of an estimator, which turns images and texts into features."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loranpac import _engine
from loranpac._encoder import Encoder
from loranpac._inputs import checked, is_raw, needs_encoder
from loranpac._models import Path
from loranpac._progress import encoding_progress


class Encoding:
    """The part of an estimator that encodes images and texts, and keeps to one encoder."""

    _learner: _engine.Learner
    n_features_in_: int
    n_jobs: int | None
    # Pickles of earlier versions lack these parameters.
    encoder: Encoder | Path | None = None
    adapter: Path | None = None
    verbose: int = 0

    def _own_encoder(self) -> Encoder | str | None:
        """The encoder, opened if it is given as a path or an address; a str if all that is given is a name."""
        given, adapter = self.encoder, self.adapter
        if adapter is not None and (not isinstance(adapter, (str, os.PathLike)) or not os.fspath(adapter)):
            raise ValueError(f"adapter: the path of a file or None is expected, not {adapter!r}")
        if given is None or isinstance(given, Encoder):
            if adapter is not None:
                raise ValueError(f"adapter: {'give an encoder with it' if given is None else 'give it to the Encoder instead'}")
            return given
        if not isinstance(given, (str, os.PathLike)) or not os.fspath(given):
            raise ValueError(f"encoder: an Encoder, a name, a path or None is expected, not {given!r}")
        name = os.fspath(given)
        opened = self.__dict__.get("_opened_encoder")
        if opened is None or opened[0] != (name, adapter):
            if isinstance(given, str) and not _engine.is_encoder(name):
                if adapter is not None:
                    raise ValueError(f"adapter: it needs an encoder, and encoder={name!r} is a name only; give its path")
                return name
            # Pickles contain it by digest, so that it is found again.
            opened = self._opened_encoder = ((name, adapter), Encoder(name, adapter=adapter, n_jobs=self.n_jobs))
        return opened[1]

    def _relocate(self, encoder: Encoder | Path | None, adapter: Path | None) -> None:
        """Take the encoder of a model, or its adapter, from another place. Another encoder is refused."""
        recorded = self.encoder
        if isinstance(recorded, Encoder) and not isinstance(encoder, Encoder) and (adapter or recorded.adapter):
            self.encoder = recorded._moved(encoder, adapter)
        else:
            # The estimator opens it.
            self.encoder, self.adapter = recorded if encoder is None else encoder, adapter
        self._settle_encoder(record=False)

    def _settle_encoder(self, record: bool) -> None:
        """Refuse an encoder that is not the model's, and record it if the model has none.

        The engine is asked once for each value of the parameter: it answers only when no thread is learning.
        """
        given, settled = (self.encoder, self.adapter), self.__dict__.get("_settled_encoder")
        if given == (None, None) or (settled is not None and settled[0] == given and settled[1] >= record):
            return
        identity = _identity(self._own_encoder())
        if record:
            self._learner.identify_encoder(*identity)
        else:
            self._learner.check_encoder(*identity)
        self._settled_encoder = (given, record)

    def _identified(self, learner: _engine.Learner) -> _engine.Learner:
        """A new learner, with the encoder recorded in it."""
        own = self._own_encoder()
        if own is not None:
            learner.identify_encoder(*_identity(own))
        return learner

    def _adopt(self, learner: _engine.Learner) -> None:
        """Keep a learner: a new one, in which the encoder is recorded, or the present one, which has learned more."""
        if learner is self.__dict__.get("_learner"):
            self._settle_encoder(record=True)
        else:
            self._learner, self._settled_encoder = learner, ((self.encoder, self.adapter), True)

    def _encoder_of(self, X: Any, fitted: bool) -> Encoder | None:
        """The encoder of samples that are images or texts; None for features."""
        if fitted:
            self._settle_encoder(record=False)
        if self.encoder is None:
            if needs_encoder(X):
                raise ValueError("X: images and texts need an encoder; give encoder=..., for example 'text-ngrams' or a path")
            return None
        if not is_raw(X):
            return None
        own = self._own_encoder()
        if not isinstance(own, Encoder):
            raise ValueError(f"X: images and texts need an encoder, and encoder={own!r} is a name only; give its path")
        checked(X, own.modality, "X")
        if fitted and own.dim != self.n_features_in_:
            # The wording is scikit-learn's for features.
            name = type(self).__name__
            raise ValueError(f"X: {own.name} computes {own.dim} features, but {name} is expecting {self.n_features_in_} features")
        return own

    def _encoded(self, encoder: Encoder, X: Any, learning: bool) -> NDArray[np.float32]:
        """Features of images or texts; with progress, if they are learned."""
        report = encoding_progress(self.verbose, encoder.name, len(X)) if learning else None
        return encoder._encode(X, "X", progress=report)


def as_list(X: Any) -> Any:
    """An iterator as a list, because it can be read only once; anything else unchanged."""
    return list(X) if isinstance(X, Iterator) else X


def _identity(encoder: Encoder | str | None) -> tuple[Any, ...]:
    """The name and a reference; the name alone, if nothing else is known."""
    return encoder._identity() if isinstance(encoder, Encoder) else (encoder, None)

"""What the tests share."""

import numpy as np
import pytest


class Blobs:
    """Samples around one centre per class."""

    def __init__(self, classes=8, features=12, seed=0):
        self.rng = np.random.default_rng(seed)
        self.centres = self.rng.normal(size=(classes, features))

    def __call__(self, labels, spread=0.4):
        labels = np.asarray(labels)
        x = self.centres[labels] + spread * self.rng.normal(size=(len(labels), self.centres.shape[1]))
        return x.astype(np.float32), labels


@pytest.fixture
def blobs():
    return Blobs()

"""Continual learning on frozen features, in closed form.

Random ReLU features lift the embeddings of a pre-trained encoder. A least-squares classifier on them is updated batch by
batch, with new classes at any time and without stored samples.

>>> import numpy as np
>>> from loranpac import LoRanPACClassifier
>>> rng = np.random.default_rng(0)
>>> centres = rng.normal(size=(4, 16))
>>> def samples(labels):
...     return centres[labels] + 0.3 * rng.normal(size=(len(labels), 16)), labels
>>> model = LoRanPACClassifier(width=500)
>>> model = model.partial_fit(*samples(np.repeat([0, 1], 20)))  # Monday
>>> model = model.partial_fit(*samples(np.repeat([2, 3], 20)))  # Tuesday: two new classes
>>> model.classes_
array([0, 1, 2, 3])
>>> float(model.score(*samples(np.repeat([0, 1, 2, 3], 10))))
1.0
"""

from loranpac._adapt import Adaptation, Epoch, adapt
from loranpac._encoder import Encoder
from loranpac._engine import VERSION as __version__
from loranpac._estimators import ContinualClassifier, LoRanPACClassifier, make, methods
from loranpac._models import drop_history, history, keep_versions, merge_models, rollback, verify

__all__ = [
    "Adaptation",
    "ContinualClassifier",
    "Encoder",
    "Epoch",
    "LoRanPACClassifier",
    "__version__",
    "adapt",
    "drop_history",
    "history",
    "keep_versions",
    "make",
    "merge_models",
    "methods",
    "rollback",
    "verify",
]

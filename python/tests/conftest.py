"""Fixtures for all tests."""

import os
import re

import numpy as np
import pytest

# scikit-learn skips its check of array API input without this. It must be set before SciPy is imported.
os.environ["SCIPY_ARRAY_API"] = "1"


def skipped(report):
    """Add a line TOOL<TAB>TEST<TAB>why to the file that LORANPAC_SKIPPED names, like the tests in Rust."""
    listed = os.environ.get("LORANPAC_SKIPPED")
    if listed and report.skipped and not hasattr(report, "wasxfail"):
        why = " ".join(report.longrepr[2].split()).removeprefix("Skipped: ")
        module = re.match("could not import '([^']+)'", why)
        with open(listed, "a", encoding="utf-8") as file:
            file.write(f"{module[1] if module else 'another machine'}\t{report.nodeid}\t{why}\n")


def pytest_runtest_logreport(report):
    skipped(report)


def pytest_collectreport(report):
    skipped(report)


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


@pytest.fixture
def model(blobs):
    """A model of width 400 that has learned the classes 2 and 4."""
    from loranpac import LoRanPACClassifier  # imports SciPy

    return LoRanPACClassifier(width=400).partial_fit(*blobs(np.repeat([4, 2], 15)))

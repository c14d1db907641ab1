"""Models written by version 0.1.0."""

import csv
import pathlib
import shutil

import numpy as np
import pytest

from loranpac import LoRanPACClassifier, merge_models

MODELS = pathlib.Path(__file__).parents[2] / "crates/loranpac-store/tests/models"
NAMES = sorted(path.stem for path in MODELS.glob("*.lrp"))


def samples(name):
    with open(MODELS / name, newline="") as file:
        rows = list(csv.reader(file))[1:]
    return np.array([row[:-1] for row in rows], np.float32), np.array([row[-1] for row in rows])


@pytest.fixture
def folder(tmp_path, request):
    return pathlib.Path(shutil.copytree(MODELS / f"{request.param}.lrp", tmp_path / "m.lrp"))


every_model = pytest.mark.parametrize("folder", NAMES, indirect=True)


def test_there_are_older_models():
    assert {"odd", "identity", "even", "hard", "infinite", "null"} <= set(NAMES)


@every_model
def test_it_predicts_what_it_has_learned(folder):
    model = LoRanPACClassifier.load(folder)
    x, y = samples("first.csv")
    scores = model.decision_function(x)
    assert np.isfinite(scores).all() and scores.shape == (len(x), len(model.classes_))
    assert np.isfinite(model.train_mse_) and model.class_count_.sum() == model.n_samples_seen_
    # Random labels, which a wide model fits.
    if model.width != 4:
        assert (model.predict(x) == y).mean() > 0.5


@every_model
def test_learning_goes_on_and_is_written(folder):
    model = LoRanPACClassifier.load(folder)
    count, (x, y) = model.n_samples_seen_, samples("first.csv")
    model.partial_fit(x + 1, y).save(folder)
    read = LoRanPACClassifier.load(folder)
    assert read.n_samples_seen_ == count + len(x)
    np.testing.assert_array_equal(read.decision_function(x), model.decision_function(x))


@every_model
def test_it_is_merged_with_a_new_one(folder, tmp_path):
    model = LoRanPACClassifier.load(folder)
    count, (x, y) = model.n_samples_seen_, samples("first.csv")
    other = LoRanPACClassifier(**model.get_params()).fit(x + 1, y).save(tmp_path / "new.lrp")
    merge_models([folder, tmp_path / "new.lrp"], tmp_path / "all.lrp")
    read, merged = LoRanPACClassifier.load(tmp_path / "all.lrp"), model.merge(other)
    assert read.n_samples_seen_ == merged.n_samples_seen_ == count + len(x)
    a, b = read.decision_function(x), merged.decision_function(x)
    assert np.isfinite(a).all() and np.abs(a - b).max() <= 1e-4 * np.abs(a).max()


@every_model
def test_it_is_edited(folder):
    model = LoRanPACClassifier.load(folder)
    first, *_, last = model.classes_
    model.rename(first, "other").forget(last).save(folder)
    read = LoRanPACClassifier.load(folder)
    assert "other" in read.classes_ and not {first, last} & set(read.classes_)
    with pytest.warns(UserWarning, match="already applied"):
        read.rename(first, "other")
    with pytest.warns(UserWarning, match="already applied"):
        read.forget(last)

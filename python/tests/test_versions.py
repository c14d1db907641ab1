"""Earlier versions of models on disk, and the name of their encoder."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import loranpac
from loranpac import LoRanPACClassifier

WIDTH = 200


@pytest.fixture
def path(blobs, tmp_path):
    """A model of two versions: classes 0 and 1, then class 2 as well."""
    model = LoRanPACClassifier(width=WIDTH).partial_fit(*blobs(np.repeat([0, 1], 10))).save(tmp_path / "m.lrp")
    model.partial_fit(*blobs(np.repeat([2], 10))).save(tmp_path / "m.lrp")
    return tmp_path / "m.lrp"


def classes(path):
    return LoRanPACClassifier.load(path).classes_.tolist()


def test_history_lists_the_latest_version_first(path):
    latest, first = loranpac.history(path)
    assert latest["version"] == first["version"] + 1
    assert (first["samples"], latest["samples"]) == (20, 30)
    assert (first["classes"], latest["classes"]) == ([0, 1], [0, 1, 2])
    assert latest["tasks"] == 2 and latest["software"] == loranpac.__version__ and latest["restored"] is None


def test_rollback_restores_the_version_before(path):
    _, first = loranpac.history(path)
    assert loranpac.rollback(path) == first["version"]
    assert classes(path) == [0, 1]
    assert loranpac.history(path)[0]["restored"] == first["version"]
    with pytest.warns(UserWarning, match="nothing has changed"):
        loranpac.rollback(path, first["version"])


def test_rollback_to_a_missing_version_changes_nothing(path):
    with pytest.raises(ValueError, match="version 77 is not kept; kept: "):
        loranpac.rollback(path, 77)
    for invalid in (-1, "first", 1.5, True):
        with pytest.raises(ValueError, match="version: a whole number"):
            loranpac.rollback(path, invalid)
    assert classes(path) == [0, 1, 2]


def test_as_many_versions_are_kept_as_were_asked_for(blobs, path):
    loranpac.keep_versions(path, 3)
    for label in (3, 4):
        LoRanPACClassifier.load(path).partial_fit(*blobs(np.repeat([label], 10))).save(path)
    assert len(loranpac.history(path)) == 4
    loranpac.drop_history(path)
    assert len(loranpac.history(path)) == 1 and classes(path) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="no earlier version is kept"):
        loranpac.rollback(path)
    with pytest.raises(ValueError, match="count: a whole number"):
        loranpac.keep_versions(path, -1)


def test_verify_finds_a_changed_byte(path):
    found = loranpac.verify(path)
    assert found["whole"] and found["problems"] == [] and found["files"] > 2
    largest = max((file for file in path.iterdir() if file.suffix != ".json"), key=os.path.getsize)
    data = bytearray(largest.read_bytes())
    data[-5] ^= 1
    os.chmod(largest, 0o600)
    largest.write_bytes(data)
    found = loranpac.verify(path)
    assert not found["whole"] and any(largest.name in problem for problem in found["problems"])


@pytest.mark.parametrize("function", ["verify", "history", "rollback", "drop_history"])
def test_a_folder_without_a_model_is_refused(function, tmp_path):
    with pytest.raises(ValueError, match="is not a model"):
        getattr(loranpac, function)(tmp_path / "none.lrp")


def shown(path):
    arguments = [sys.executable, "-m", "loranpac", "inspect", str(path), "--json"]
    return json.loads(subprocess.run(arguments, capture_output=True, check=True).stdout)


def test_the_encoder_is_saved_and_loaded(blobs, tmp_path):
    model = LoRanPACClassifier(width=WIDTH, encoder="all-MiniLM-L6-v2").fit(*blobs(np.repeat([0, 1], 10)))
    model.save(tmp_path / "m.lrp")
    assert shown(tmp_path / "m.lrp")["encoder"] == "all-MiniLM-L6-v2"
    assert LoRanPACClassifier.load(tmp_path / "m.lrp").encoder == "all-MiniLM-L6-v2"
    assert loranpac.history(tmp_path / "m.lrp")[0]["encoder"] == "all-MiniLM-L6-v2"


def test_a_model_without_an_encoder_is_given_one(path):
    model = LoRanPACClassifier.load(path)
    assert model.encoder is None
    model.set_params(encoder="a").save(path)
    assert shown(path)["encoder"] == "a"
    with pytest.raises(ValueError, match="another encoder: b, but the model was trained with a"):
        model.set_params(encoder="b").save(path)
    assert LoRanPACClassifier.load(path).encoder == "a"


def test_models_of_different_encoders_are_not_merged(blobs, tmp_path):
    a, b = (LoRanPACClassifier(width=WIDTH, encoder=name).fit(*blobs(np.repeat([0, 1], 10))) for name in "ab")
    with pytest.raises(ValueError, match="another encoder: b, but the model was trained with a"):
        a.merge(b)
    assert a.n_samples_seen_ == 20 and a.encoder == "a"
    paths = [model.save(tmp_path / f"{model.encoder}.lrp")._folder for model in (a, b)]
    with pytest.raises(ValueError, match="another encoder"):
        loranpac.merge_models(paths, tmp_path / "both.lrp")
    assert not (tmp_path / "both.lrp").exists()

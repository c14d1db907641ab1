"""Models on disk: the same folder for Python and the command line, in both directions."""

import copy
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from loranpac import LoRanPACClassifier, merge_models

WIDTH = 300


def command(*arguments, code=0):
    done = subprocess.run([sys.executable, "-m", "loranpac", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def npz(path, x, y):
    np.savez(path, x=x, y=y)
    return path


def scores_of(path, file):
    lines = command("predict", path, file, "--scores", "--to", "jsonl").splitlines()
    return np.array([json.loads(line)["scores"] for line in lines])


def test_the_command_line_goes_on_with_what_python_began(blobs, tmp_path):
    model = LoRanPACClassifier(width=WIDTH, filter="hard", truncate=0.1).partial_fit(*blobs(np.repeat([0, 1, 2], 15)))
    model.save(tmp_path / "m.lrp")
    command("verify", tmp_path / "m.lrp")
    x, y = blobs(np.arange(30) % 3)
    answers = scores_of(tmp_path / "m.lrp", npz(tmp_path / "test.npz", x, y))
    np.testing.assert_allclose(answers, model.decision_function(x), rtol=1e-5, atol=1e-6)
    more = blobs(np.repeat([3, 4], 15))
    command("learn", tmp_path / "m.lrp", npz(tmp_path / "more.npz", *more))
    again = LoRanPACClassifier.load(tmp_path / "m.lrp")
    assert list(again.classes_) == [0, 1, 2, 3, 4] and again.get_params() == {
        **model.get_params(),
        "gamma": again.gamma,
    }
    model.partial_fit(*more)
    x, _ = blobs(np.arange(40) % 5)
    a, b = model.decision_function(x), again.decision_function(x)
    assert np.abs(a - b).max() < 1e-4 * np.abs(a).max()
    # Both detect what the other has learned.
    with pytest.warns(UserWarning, match="learned before"):
        again.partial_fit(*more)
    assert "learned before" in command("learn", tmp_path / "m.lrp", tmp_path / "more.npz", code=1)


def test_python_goes_on_with_what_the_command_line_began(blobs, tmp_path):
    path, first, second = tmp_path / "m.lrp", blobs(np.repeat([0, 1, 2], 15)), blobs(np.repeat([2, 5], 15))
    command("init", path, "--dim", 12, "--width", WIDTH, "--ridge", 2)
    with pytest.raises(NotFittedError, match="not learned anything"):
        LoRanPACClassifier.load(path)
    command("learn", path, npz(tmp_path / "a.npz", *first))
    model = LoRanPACClassifier.load(path)
    assert model.ridge == 2 and model.filter == "soft" and model.n_features_in_ == 12
    model.partial_fit(*second).save(path)
    shown = json.loads(command("inspect", path, "--json"))
    assert shown["samples"] == 75
    whole = LoRanPACClassifier(width=WIDTH, ridge=2.0).partial_fit(*first).partial_fit(*second)
    x, y = blobs(np.tile([0, 1, 2, 5], 10))
    expected = whole.decision_function(x)
    found = scores_of(path, npz(tmp_path / "test.npz", x, y))
    # The command line's columns are in order of appearance, which is the same here.
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()


def test_saving_again_writes_what_is_new_and_keeps_the_version_before(blobs, tmp_path):
    path = tmp_path / "m.lrp"
    model = LoRanPACClassifier(width=4000).partial_fit(*blobs(np.repeat([0, 1, 2, 3], 60)))
    model.save(path)
    size = lambda: {f: os.path.getsize(path / f) for f in os.listdir(path)}  # noqa: E731
    before = size()
    model.partial_fit(*blobs(np.repeat([4], 3))).save(path)
    written = sum(bytes for file, bytes in size().items() if file not in before)
    # Three more directions and W, not the 240 existing ones.
    assert written < 0.3 * sum(before.values())
    command("verify", path)
    command("rollback", path)
    assert list(LoRanPACClassifier.load(path).classes_) == [0, 1, 2, 3]
    # Another process has changed it since.
    with pytest.raises(ValueError, match="changed by another process"):
        model.save(path)
    model.save(path, overwrite=True)
    assert list(LoRanPACClassifier.load(path).classes_) == [0, 1, 2, 3, 4]
    other = LoRanPACClassifier(width=50).fit(*blobs(np.repeat([0, 1], 5)))
    with pytest.raises(FileExistsError, match="overwrite=True"):
        other.save(path)
    other.save(path, overwrite=True)
    assert LoRanPACClassifier.load(path).width == 50
    command("verify", path)


def test_a_failed_save_leaves_the_model_as_it_was(blobs, tmp_path):
    path = tmp_path / "m.lrp"
    model = LoRanPACClassifier(width=WIDTH).fit(*blobs(np.repeat([0, 1], 10)))
    with pytest.raises(OSError, match="cannot write|No such file"):
        model.save(tmp_path / "absent" / "m.lrp")
    model.save(path)
    x, _ = blobs([0, 1, 1])
    np.testing.assert_array_equal(LoRanPACClassifier.load(path).decision_function(x), model.decision_function(x))


def test_damage_is_reported(blobs, tmp_path):
    path = tmp_path / "m.lrp"
    model = LoRanPACClassifier(width=WIDTH).fit(*blobs(np.repeat([0, 1], 10))).save(path)
    file = next(path / name for name in sorted(os.listdir(path)) if name.endswith("basis.safetensors"))
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        LoRanPACClassifier.load(path)
    # The intact model in memory replaces it.
    model.save(path, overwrite=True)
    assert list(LoRanPACClassifier.load(path).classes_) == [0, 1]


def test_a_copy_leaves_the_model_where_it_was(blobs, tmp_path):
    model = LoRanPACClassifier(width=WIDTH).fit(*blobs(np.repeat([0, 1], 10))).save(tmp_path / "m.lrp")
    model.partial_fit(*blobs(np.repeat([2], 10)))
    copied = copy.deepcopy(model)
    model.save(tmp_path / "m.lrp")
    x, _ = blobs(np.arange(3))
    for other in (copied, LoRanPACClassifier.load(tmp_path / "m.lrp")):
        np.testing.assert_array_equal(other.decision_function(x), model.decision_function(x))


def test_a_model_that_has_learned_nothing_is_taken_over(blobs, tmp_path):
    command("init", tmp_path / "m.lrp", "--dim", 12, "--width", WIDTH, "--keep", 5)
    model = LoRanPACClassifier(width=WIDTH).fit(*blobs(np.repeat([0, 1], 10)))
    model.save(tmp_path / "m.lrp", overwrite=True)
    x, _ = blobs([0, 1])
    np.testing.assert_array_equal(LoRanPACClassifier.load(tmp_path / "m.lrp").predict(x), model.predict(x))
    assert json.loads(command("inspect", tmp_path / "m.lrp", "--json"))["samples"] == 20


def test_numbers_and_texts_from_the_command_line(blobs, tmp_path):
    x, y = blobs(np.repeat([0, 1, 2], 12))
    lines = [",".join([*map(str, row), ["7", "other", "12"][label]]) for row, label in zip(x, y)]
    (tmp_path / "a.csv").write_text("\n".join([",".join([f"x{i}" for i in range(12)] + ["label"]), *lines]))
    command("init", tmp_path / "m.lrp", "--dim", 12, "--width", WIDTH)
    command("learn", tmp_path / "m.lrp", tmp_path / "a.csv")
    model = LoRanPACClassifier.load(tmp_path / "m.lrp")
    assert list(model.classes_) == [7, 12, "other"]
    assert list(model.predict(x[[0, 12, 24]])) == [7, "other", 12]
    model.partial_fit(*blobs(np.repeat([3], 5)))
    assert list(model.classes_) == [3, 7, 12, "other"]


def test_models_are_merged_by_path(blobs, tmp_path):
    shards = [blobs(np.repeat([i, i + 1], 10)) for i in range(3)]
    paths = [tmp_path / f"{i}.lrp" for i in range(3)]
    whole = LoRanPACClassifier(width=WIDTH)
    for (x, y), path in zip(shards, paths):
        LoRanPACClassifier(width=WIDTH).fit(x, y).save(path)
        whole.partial_fit(x, y)
    assert merge_models(paths, tmp_path / "all.lrp") == tmp_path / "all.lrp"
    merged = LoRanPACClassifier.load(tmp_path / "all.lrp")
    x, _ = blobs(np.arange(40) % 4)
    a, b = whole.decision_function(x), merged.decision_function(x)
    assert np.abs(a - b).max() < 1e-4 * np.abs(a).max()
    with pytest.raises(ValueError, match="exists already"):
        merge_models(paths, tmp_path / "all.lrp")
    with pytest.raises(ValueError, match="at least one"):
        merge_models([], tmp_path / "none.lrp")


def test_calibration_and_texts_survive(blobs, tmp_path):
    x, y = blobs(np.repeat([0, 1, 2], 15))
    names = np.array(["no", "yes", "perhaps"])[y]
    model = LoRanPACClassifier(width=WIDTH).fit(x, names).calibrate(*(x + 0.1, names))
    model.save(tmp_path / "m.lrp")
    again = LoRanPACClassifier.load(tmp_path / "m.lrp")
    assert again.temperature_ == model.temperature_
    np.testing.assert_array_equal(again.classes_, ["no", "perhaps", "yes"])
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))


def test_onnx_gives_the_same_scores(blobs, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    model = LoRanPACClassifier(width=WIDTH).fit(*blobs(np.repeat([0, 1, 2], 15)))
    model.to_onnx(tmp_path / "m.onnx")
    x, _ = blobs(np.arange(9) % 3)
    session = runtime.InferenceSession(tmp_path / "m.onnx")
    scores, index = session.run(["scores", "label_index"], {"x": x})
    np.testing.assert_allclose(scores, model.decision_function(x), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(model.classes_[index], model.predict(x))


def test_the_command_line_predicts_with_an_exported_file(blobs, tmp_path):
    model = LoRanPACClassifier(width=WIDTH).fit(*blobs(np.repeat([0, 1, 2], 15)))
    model.to_safetensors(tmp_path / "m.safetensors")
    x, y = blobs(np.arange(30) % 3)
    answers = scores_of(tmp_path / "m.safetensors", npz(tmp_path / "test.npz", x, y))
    np.testing.assert_allclose(answers, model.decision_function(x), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="ends with .safetensors"):
        model.to_safetensors(tmp_path / "m.bin")


def test_the_command_is_the_same_as_the_binary():
    assert command("--version").strip().startswith("loranpac ")
    assert "not a model" in command("predict", "no-such.lrp", "x.npz", code=1)
    command("nonsense", code=2)

"""Labels: different labels stay different, and control characters of labels and paths do not reach the terminal."""

import os
import pickle
import warnings

import numpy as np
import pytest

from loranpac import LoRanPACClassifier, _engine, bench, merge_models
from loranpac.features import save

WIDTH = 51
HOSTILE = "\x1b[2J\x07\x9b\u202e\n"


needs_such_names = pytest.mark.skipif(os.name == "nt", reason="there are no such names of files here")


def controls(text):
    return [character for character in text if not character.isprintable()]


def test_texts_that_look_like_a_number_are_texts(blobs, tmp_path):
    x, y = blobs(np.repeat([0, 1, 2, 3], 8))
    names = np.array(["007", "7", "+7", " 7"])[y]
    model = LoRanPACClassifier(width=WIDTH).fit(x, names).save(tmp_path / "m.lrp")
    for read in (model, LoRanPACClassifier.load(tmp_path / "m.lrp")):
        assert list(read.classes_) == [" 7", "+7", "007", "7"] and list(read.class_count_) == [8, 8, 8, 8]
        assert (read.predict(x) == names).mean() > 0.9


@pytest.mark.parametrize("labels", [[7, "7"], ["7", 7], ["007", 7], np.array([7, "7"], object), np.array(["7", 7], object)])
def test_a_number_is_not_a_text(blobs, labels):
    x, _ = blobs([0, 1])
    with pytest.raises(ValueError, match="texts and some are numbers"):
        LoRanPACClassifier(width=WIDTH).fit(x, labels)
    model = LoRanPACClassifier(width=WIDTH)
    with pytest.raises(ValueError, match="texts and some are numbers"):
        model.partial_fit(x, [7, 8]).partial_fit(x + 1, ["7", "8"])
    assert list(model.classes_) == [7, 8]
    with pytest.raises(ValueError, match="texts and some are numbers"):
        model.partial_fit(x, [7, 8], classes=labels)


def test_a_model_with_both_kinds_keeps_them_apart(blobs, tmp_path):
    x, y = blobs(np.repeat([0, 1], 8))
    options = {"method": "loranpac-soft", "dim": 12, "lift": "relu-random", "width": WIDTH, "seed": 0, "gamma": 1.0}
    options |= {"truncation": None, "schedule": "late", "max_rank": 100, "settings": [], "keep": 1}
    options |= {"samples": 16, "classes": 2, "keep_samples": False}
    learner = _engine.Learner(options, 0)
    learner.learn(x, (y, [7, "7"]))
    learner.save(tmp_path / "m.lrp", False)
    model = LoRanPACClassifier.load(tmp_path / "m.lrp")
    assert list(model.classes_) == [7, "7"]
    model.partial_fit(x + 0.01, [7] * 8 + ["7"] * 8)
    assert list(model.class_count_) == [16, 16]
    assert list(model.predict(x[[0, -1]])) == [7, "7"]


def test_a_nul_at_the_end_of_a_text_counts(blobs, tmp_path):
    x, y = blobs(np.repeat([0, 1, 2], 8))
    names = [["a", "a\0", "a\0b"][label] for label in y]
    model = LoRanPACClassifier(width=WIDTH).fit(x, names).save(tmp_path / "m.lrp")
    for read in (model, LoRanPACClassifier.load(tmp_path / "m.lrp"), pickle.loads(pickle.dumps(model))):
        assert list(read.classes_) == ["a", "a\0", "a\0b"] and list(read.class_count_) == [8, 8, 8]
        assert np.isfinite(read.decision_function(x)).all()
        assert read.score(x, np.array(names, dtype=object)) > 0.9
    model.rename("a\0b", "b\0").relabel(x[:3], names[:3], "c\0")
    assert list(model.classes_) == ["a", "a\0", "b\0", "c\0"] and list(model.class_count_) == [5, 8, 8, 3]
    assert np.isfinite(model.decision_function(x)).all()


def test_series_keep_a_nul_at_the_end_of_a_text(blobs):
    x, y = blobs(np.repeat([0, 1], 8))
    names = [["a", "a\0"][label] for label in y]
    for library in ("pandas", "polars"):
        series = pytest.importorskip(library).Series(names)
        assert list(LoRanPACClassifier(width=WIDTH).fit(x, series).classes_) == ["a", "a\0"]


@pytest.mark.parametrize("labels", [np.array([b"\xff", b"\xfe"]), [b"\xff", b"\xfe"], np.array([b"\xff", b"\xfe"], object)])
def test_bytes_are_no_labels(blobs, labels):
    model = LoRanPACClassifier(width=WIDTH)
    with pytest.raises((TypeError, ValueError), match="bytes|whole number or a text|Unknown label type"):
        model.fit(blobs([0, 1])[0], labels)
    assert not hasattr(model, "classes_")


def test_texts_that_are_not_unicode_are_refused(blobs):
    with pytest.raises(TypeError, match="whole number or a text"):
        LoRanPACClassifier(width=WIDTH).fit(blobs([0, 1])[0], ["\udcff", "\udcfe"])


@pytest.mark.parametrize("labels", [[7, "7"], ["a", "a\0"]])
def test_a_feature_file_does_not_join_labels(blobs, tmp_path, labels):
    x, y = blobs([0, 1])
    with pytest.raises(ValueError, match="same texts"):
        save(tmp_path / "f.npz", x, labels, x, labels)
    with pytest.raises(ValueError, match="same texts"):
        bench.run((x, labels, x, labels), "simplecil")
    assert not (tmp_path / "f.npz").exists()


@needs_such_names
def test_messages_show_control_characters_as_escapes(blobs, tmp_path):
    x, y = blobs(np.repeat([0, 1], 8))
    model = LoRanPACClassifier(width=WIDTH).fit(x, np.array(["a", "b"])[y])
    path = tmp_path / f"{HOSTILE}.lrp"
    model.save(path)
    other = LoRanPACClassifier(width=WIDTH).fit(x, np.array(["a", "b"])[y])
    (tmp_path / f"damaged{HOSTILE}.lrp").mkdir()
    for refused in (
        lambda: model.forget(HOSTILE),
        lambda: model.rename(HOSTILE, "c"),
        lambda: other.save(path),
        lambda: other.save(str(path) + "x"),
        lambda: LoRanPACClassifier.load(f"{path}/absent"),
        lambda: LoRanPACClassifier.load(tmp_path / f"damaged{HOSTILE}.lrp"),
        lambda: merge_models([path], path),
        lambda: merge_models([path, path], tmp_path / "n.lrp"),
        lambda: bench.run(str(path), "simplecil"),
        lambda: model.partial_fit(x, np.array([HOSTILE, "b"])[y], classes=["a", "b"]),
    ):
        with pytest.raises((ValueError, OSError)) as refusal:
            refused()
        assert not controls(str(refusal.value)), ascii(str(refusal.value))


@needs_such_names
def test_warnings_show_control_characters_as_escapes(tmp_path):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(400, 12)).astype(np.float32), np.arange(400) % 20
    paths = [tmp_path / f"{number}{HOSTILE}.lrp" for number in range(2)]
    LoRanPACClassifier(width=WIDTH).fit(x, y).save(paths[0])
    LoRanPACClassifier(width=WIDTH).fit(100 * x + 1000, y).save(paths[1])
    with pytest.warns(UserWarning, match="another encoder") as issued:
        merge_models(paths, tmp_path / "n.lrp")
    assert not any(controls(str(warning.message)) for warning in issued)


def test_ordinary_labels_are_shown_as_they_are(blobs):
    x, y = blobs(np.repeat([0, 1], 8))
    model = LoRanPACClassifier(width=WIDTH).fit(x, np.array(["größer", "日本"])[y])
    with warnings.catch_warnings(), pytest.raises(ValueError, match="there is no class größte"):
        warnings.simplefilter("error")
        model.forget("größte")

"""Features of encoders, and files of them."""

import subprocess
import sys

import numpy as np
import pytest

from loranpac import LoRanPACClassifier, bench, features


def test_features_are_computed_once(tmp_path):
    calls = []

    def encode(batch):
        calls.append(len(batch))
        return np.array([[len(text), 1.0] for text in batch])

    texts = ["a", "bb", "ccc", "dddd", "eeeee"]
    x = features.embed(encode, texts, batch_size=2, cache=tmp_path / "x.npz")
    assert calls == [2, 2, 1] and x.dtype == np.float32 and x[:, 0].tolist() == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(features.embed(encode, texts, cache=tmp_path / "x.npz"), x)
    assert len(calls) == 3
    assert len(features.embed(encode, texts[:2], cache=tmp_path / "x.npz")) == 2  # other texts
    assert len(calls) == 4
    features.embed(encode, texts, cache=tmp_path / "x.npz", key="another encoder")
    assert len(calls) == 5
    np.savez(tmp_path / "z.npz", a=x)
    with pytest.raises(ValueError, match="cache: .*was not written by embed"):
        features.embed(encode, texts, cache=tmp_path / "z.npz")
    with pytest.raises(ValueError, match="key: "):
        features.embed(encode, [1, 2], cache=tmp_path / "y.npz")
    with pytest.raises(ValueError, match="encode: one row per item"):
        features.embed(lambda batch: np.zeros(3), texts)
    with pytest.raises(ValueError, match="items: there are none"):
        features.embed(encode, [])


def test_experiments_accept_a_feature_file(blobs, tmp_path):
    train, test = blobs(np.arange(160) % 8), blobs(np.arange(80) % 8)
    path = features.save(tmp_path / "f.npz", *train, *test, dtype=np.float16)
    assert bench.run(path, "simplecil", inc=4).runs[0]["dataset"]["train"] == 160
    names = np.array(list("abcdefgh"), dtype=object)
    path = features.save(tmp_path / "t.npz", train[0], names[train[1]], test[0], names[test[1]])
    assert bench.run(path, "simplecil", inc=4).runs[0]["dataset"]["classes"] == 8
    with pytest.raises(ValueError, match="x_train: "):
        features.save(tmp_path / "g.npz", train[0], train[1][:5], *test)


def encode(batch):
    return np.array([[len(text), text.count("a"), 1.0] for text in batch])


TEXTS = ["a", "bb", "ccc", "banana", "eeeee"]


def learned(path, model, file):
    """The classes of a model after the command line has taught it a file."""
    LoRanPACClassifier(width=50).fit(np.eye(3, dtype=np.float32), ["one", "two", "three"]).save(model)
    done = subprocess.run([sys.executable, "-m", "loranpac", "learn", model, file], capture_output=True, text=True, cwd=path)
    assert done.returncode == 0, done.stderr
    model = LoRanPACClassifier.load(model)
    return dict(zip(model.classes_.tolist(), model.class_count_.tolist()))


def test_embedded_features_with_labels_are_learned_by_the_command_line(tmp_path):
    labels = ["short", "short", "short", "long", "long"]
    features.embed(encode, TEXTS, cache=tmp_path / "x.npz", labels=labels)
    assert learned(tmp_path, tmp_path / "m.lrp", tmp_path / "x.npz") == {"long": 2, "one": 1, "short": 3, "three": 1, "two": 1}


def test_saved_features_with_labels_are_learned_by_the_command_line(tmp_path):
    features.save(tmp_path / "x.npz", encode(TEXTS), ["a", "b", "a", "b", "a"])
    assert learned(tmp_path, tmp_path / "m.lrp", tmp_path / "x.npz") == {"a": 3, "b": 2, "one": 1, "three": 1, "two": 1}
    with pytest.raises(ValueError, match="x_test, y_test: both or neither"):
        features.save(tmp_path / "y.npz", encode(TEXTS), [0, 1, 0, 1, 0], encode(TEXTS))


def test_labels_of_a_cache_change_without_encoding_again(tmp_path):
    cache, calls = tmp_path / "x.npz", []

    def counted(batch):
        calls.append(len(batch))
        return encode(batch)

    for labels in (None, [0, 1, 0, 1, 0], [1, 1, 0, 1, 0], None):
        x = features.embed(counted, TEXTS, cache=cache, labels=labels)
        np.testing.assert_array_equal(x, encode(TEXTS))
    assert calls == [5]
    assert np.load(cache)["y"].tolist() == [1, 1, 0, 1, 0]


def test_labels_are_checked_before_anything_is_encoded(tmp_path):
    def never(_):
        pytest.fail("the encoder was called")

    with pytest.raises(ValueError, match=r"labels: one label per item is expected, \(5,\), not \(2,\)"):
        features.embed(never, TEXTS, cache=tmp_path / "x.npz", labels=["a", "b"])
    with pytest.raises(ValueError, match="labels: they are written into the cache"):
        features.embed(never, TEXTS, labels=["a"] * 5)
    assert not (tmp_path / "x.npz").exists()

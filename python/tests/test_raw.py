"""Estimators with an encoder: they learn and classify texts and images."""

import json
import pickle
import subprocess
import sys
import threading

import numpy as np
import pandas
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import loranpac
from loranpac import Encoder, LoRanPACClassifier, make

WIDTH = 300
WORDS = {
    "parcel": ["parcel", "late", "courier", "delivery"],
    "music": ["song", "play", "album", "volume"],
    "alarm": ["wake", "alarm", "clock", "snooze"],
}


def sentences(intents, count=12, seed=0):
    """Texts and their labels."""
    random = np.random.default_rng(seed)
    pairs = [(" ".join(random.choice(WORDS[intent], 3)), intent) for _ in range(count) for intent in intents]
    texts, labels = zip(*pairs)
    return list(texts), list(labels)


def pictures(count=6):
    """Red and blue images of different sizes, and their labels."""
    random = np.random.default_rng(0)
    images = []
    for number in range(2 * count):
        pixels = random.integers(0, 40, size=(16 + number, 24, 3), dtype=np.uint8)
        pixels[..., 0 if number % 2 else 2] += 180
        images.append(pixels)
    return images, ["red" if number % 2 else "blue" for number in range(2 * count)]


@pytest.fixture
def texts():
    return LoRanPACClassifier(width=WIDTH, encoder="text-ngrams").fit(*sentences(["parcel", "music"]))


def command(*arguments):
    arguments = [sys.executable, "-m", "loranpac", *map(str, arguments)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def succeeds(*arguments):
    """The output of a command that succeeds."""
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("encoder", ["text-ngrams", Encoder("text-ngrams", n_jobs=1)], ids=["name", "object"])
def test_texts_are_learned_as_their_features_are(encoder):
    encode = Encoder("text-ngrams").encode
    raw = LoRanPACClassifier(width=WIDTH, encoder=encoder)
    features = LoRanPACClassifier(width=WIDTH)
    for intents in (["parcel", "music"], ["alarm"]):
        x, y = sentences(intents)
        raw.partial_fit(x, y)
        features.partial_fit(encode(x), y)
    assert raw.n_features_in_ == 2048 and list(raw.classes_) == ["alarm", "music", "parcel"]
    x, y = sentences(WORDS, seed=1)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function", "novelty", "lifted"):
        expected = getattr(features, method)(encode(x))
        for given in (x, np.array(x), pandas.Series(x), encode(x)):
            np.testing.assert_array_equal(getattr(raw, method)(given), expected)
    assert raw.score(x, y) == features.score(encode(x), y) == 1.0

    assert raw.calibrate(x, y).temperature_ == features.calibrate(encode(x), y).temperature_
    late, alarm = sentences(["alarm"])[0], ["alarm"] * 12
    raw.relabel(late[:2], alarm[:2], "music")
    features.relabel(encode(late[:2]), alarm[:2], "music")
    raw.unlearn(late[2:], alarm[2:])
    features.unlearn(encode(late[2:]), alarm[2:])
    assert list(raw.class_count_) == list(features.class_count_) == [14, 12]
    np.testing.assert_array_equal(raw.decision_function(x), features.decision_function(encode(x)))


@pytest.mark.parametrize("method", ["ranpac", "simplecil", "loranpac"])
def test_every_method_takes_images(method):
    images, labels = pictures()
    encoder = Encoder("image-basic")
    raw = make(method, encoder=encoder, **({} if method == "simplecil" else {"width": WIDTH}))
    features = clone(raw).set_params(encoder=None).fit(encoder.encode(images), labels)
    raw.fit([Image.fromarray(image) for image in images], labels)
    np.testing.assert_array_equal(raw.decision_function(images), features.decision_function(encoder.encode(images)))
    assert raw.score(images, labels) == 1.0


def test_images_are_read_from_files(tmp_path):
    images, labels = pictures()
    paths = [tmp_path / f"{number}.png" for number in range(len(images))]
    for path, image in zip(paths, images):
        Image.fromarray(image).save(path)
    model = LoRanPACClassifier(width=WIDTH, encoder="image-basic").fit(paths, labels)
    assert model.score([str(path) for path in paths], labels) == 1.0
    assert model.score([path.read_bytes() for path in paths], labels) == 1.0
    with pytest.raises(FileNotFoundError, match=r"X\[1\] \(.*absent.png\): cannot be read"):
        model.predict([paths[0], tmp_path / "absent.png"])


@pytest.mark.parametrize(
    "x, error, message",
    [
        ("one text", TypeError, "X: a list of texts is expected, not one str; put it into a list"),
        ([], ValueError, "Found array with 0 sample"),
        (["a", None], ValueError, r"X\[1\] is missing"),
        ([None, None], ValueError, r"X\[0\] is missing"),
        (["a", 3], TypeError, r"X\[1\]: text-ngrams reads texts, not int"),
        ([b"a", b"b"], TypeError, r"X\[0\]: text-ngrams reads texts, not bytes"),
        (np.full((2, 2048), np.nan, np.float32), ValueError, "NaN"),
        (np.zeros((2, 3), np.float32), ValueError, "X has 3 features, but LoRanPACClassifier is expecting 2048"),
        (np.zeros((2, 4, 4, 3), np.uint8), TypeError, r"X\[0\]: text-ngrams reads texts, not ndarray"),
        (np.array([["a"], ["b"]]), ValueError, "could not convert|dtype"),
    ],
)
def test_wrong_inputs_are_refused_and_change_nothing(texts, x, error, message):
    before = texts.decision_function(["parcel"])
    for call in (texts.predict, lambda x: texts.partial_fit(x, ["parcel", "music"][: len(x)]), texts.novelty):
        with pytest.raises(error, match=message):
            call(x)
    assert texts.n_samples_seen_ == 24
    np.testing.assert_array_equal(texts.decision_function(["parcel"]), before)


def test_labels_are_checked_before_anything_is_encoded(monkeypatch):
    monkeypatch.setattr(Encoder, "_encode", lambda *_, **__: pytest.fail("texts were encoded"))
    model = LoRanPACClassifier(width=WIDTH, encoder="text-ngrams")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(["a", "b"], ["x"])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(["a", "b"], [1.0, np.nan])
    with pytest.raises(NotFittedError):
        model.predict(["a"])


def test_without_an_encoder_texts_are_refused_with_advice(blobs):
    for encoder, message in [(None, "give encoder=..., "), ("all-MiniLM-L6-v2", "'all-MiniLM-L6-v2' is a name only")]:
        model = LoRanPACClassifier(width=WIDTH, encoder=encoder)
        with pytest.raises(ValueError, match=f"X: images and texts need an encoder.*{message}"):
            model.fit(["a", "b"], [0, 1])
        model.fit(*blobs([0, 1]))
        with pytest.raises(ValueError, match=message):
            model.predict(["a"])
    with pytest.raises(ValueError, match="there is no encoder absent/encoder"):
        LoRanPACClassifier(encoder="absent/encoder").fit(*blobs([0, 1]))


def test_a_model_of_features_with_another_number_of_them_does_not_encode(blobs):
    model = LoRanPACClassifier(width=WIDTH).fit(*blobs([0, 1])).set_params(encoder="text-ngrams")
    with pytest.raises(ValueError, match="X: text-ngrams computes 2048 features, but LoRanPACClassifier is expecting 12"):
        model.predict(["a"])


def test_another_encoder_is_refused(texts, tmp_path):
    x, y = sentences(["alarm"])
    features = Encoder("text-ngrams").encode(x)
    other = "another encoder: image-basic .*but the model was trained with text-ngrams"
    for encoder in ("image-basic", Encoder("image-basic")):
        texts.set_params(encoder=encoder)
        for call in (
            lambda: texts.predict(features),
            lambda: texts.predict(x),
            lambda: texts.partial_fit(features, y),
            lambda: texts.unlearn(features, y),
            lambda: texts.calibrate(features, y),
            lambda: texts.save(tmp_path / "m.lrp"),
            lambda: texts.to_onnx(tmp_path / "m.onnx"),
            lambda: texts.merge(LoRanPACClassifier(width=WIDTH, encoder="text-ngrams").fit(x, y)),
        ):
            with pytest.raises(ValueError, match=other):
                call()
    assert texts.n_samples_seen_ == 24 and not (tmp_path / "m.lrp").exists()
    texts.set_params(encoder="text-ngrams").partial_fit(x, y)
    # fit starts over.
    images, labels = pictures()
    assert texts.set_params(encoder="image-basic").fit(images, labels).predict(images[:1]) == ["blue"]
    with pytest.raises(ValueError, match="another encoder"):
        make("simplecil", encoder="text-ngrams").fit(x, y).set_params(encoder="other").predict(features)


def test_merging_keeps_to_one_encoder(texts):
    x, y = sentences(["alarm"])
    with pytest.raises(ValueError, match="another encoder"):
        texts.merge(LoRanPACClassifier(width=WIDTH, encoder="another").fit(Encoder("text-ngrams").encode(x), y))
    alarms = LoRanPACClassifier(width=WIDTH, encoder="text-ngrams").fit(x, y)
    assert texts.merge(alarms).predict(["snooze alarm"]) == ["alarm"]
    plain = LoRanPACClassifier(width=WIDTH).fit(Encoder("text-ngrams").encode(x[:6]), y[:6])
    plain.merge(LoRanPACClassifier(width=WIDTH, encoder="text-ngrams").fit(*sentences(["music"])))
    assert plain.encoder == Encoder("text-ngrams") and plain.predict(["play a song"]) == ["music"]


def test_a_saved_model_finds_its_encoder(texts, tmp_path):
    path = tmp_path / "m.lrp"
    texts.save(path)
    x, y = sentences(WORDS, seed=2)
    again = LoRanPACClassifier.load(path)
    assert repr(again.encoder) == "Encoder('text-ngrams')" and again.encoder == Encoder("text-ngrams")
    np.testing.assert_array_equal(again.decision_function(x), texts.decision_function(x))
    again.partial_fit(x, y).save(path)
    assert LoRanPACClassifier.load(path, encoder="text-ngrams").score(x, y) == 1.0
    with pytest.raises(ValueError, match="another encoder: image-basic"):
        LoRanPACClassifier.load(path, encoder="image-basic")
    assert clone(again).encoder is again.encoder
    assert clone(again).fit(x, y).predict(x[:1]) == y[:1]


def test_the_command_line_reads_what_python_has_saved_and_the_other_way_round(texts, tmp_path):
    path, table = tmp_path / "m.lrp", tmp_path / "new.csv"
    texts.save(path)
    table.write_text("text,label\nwake me up and snooze,alarm\nalarm clock,alarm\n")
    succeeds("learn", path, table, "--no-cache")
    model, new = LoRanPACClassifier.load(path), ["snooze the alarm", "the parcel is late"]
    assert model.predict(new).tolist() == ["alarm", "parcel"]
    table.write_text("\n".join(["text", *new]))
    answers = [json.loads(line) for line in succeeds("predict", path, table, "--no-cache", "--to", "jsonl").splitlines()]
    assert [answer["label"] for answer in answers] == ["alarm", "parcel"]
    refused = command("predict", path, table, "--encoder", "image-basic", "--no-cache")
    assert refused.returncode != 0 and "another encoder" in refused.stderr

    images, labels = pictures()
    for number, (image, label) in enumerate(zip(images, labels)):
        (tmp_path / "photos" / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "photos" / label / f"{number}.png")
    succeeds("init", tmp_path / "i.lrp", "--encoder", "image-basic", "--width", WIDTH)
    succeeds("learn", tmp_path / "i.lrp", tmp_path / "photos", "--no-cache")
    model = LoRanPACClassifier.load(tmp_path / "i.lrp")
    assert model.encoder == Encoder("image-basic") and model.score(images, labels) == 1.0


def test_a_server_in_a_model_is_not_contacted(texts):
    address = "http://127.0.0.1:9/v1/embeddings?model=m"
    texts.encoder = Encoder._recorded("m", Encoder("text-ngrams").digest, address, "m.lrp", {})
    with pytest.raises(ValueError, match="only if you give that address yourself"):
        texts.predict(["a"])
    # Features need no encoder.
    assert texts.predict(Encoder("text-ngrams").encode(["play a song"])) == ["music"]


def test_an_encoder_that_is_missing_is_needed_for_raw_inputs_only(texts, tmp_path):
    texts.save(tmp_path / "m.lrp")
    model = LoRanPACClassifier.load(tmp_path / "m.lrp")
    model.encoder = Encoder._recorded("text-ngrams", texts._own_encoder().digest, str(tmp_path / "gone"), tmp_path, {})
    model = pickle.loads(pickle.dumps(model))
    assert model.predict(texts._own_encoder().encode(["late parcel"])) == ["parcel"]
    with pytest.raises(FileNotFoundError, match="is not found .*LORANPAC_ENCODERS"):
        model.predict(["late parcel"])


def test_pickles_clones_and_parameters_keep_the_encoder(texts):
    x, _ = sentences(WORDS)
    for encoder in ("text-ngrams", Encoder("text-ngrams")):
        texts.set_params(encoder=encoder)
        assert texts.get_params()["encoder"] is encoder
        again = pickle.loads(pickle.dumps(texts))
        assert again.encoder == encoder and again.get_params() == texts.get_params()
        np.testing.assert_array_equal(again.decision_function(x), texts.decision_function(x))
        assert clone(texts).encoder == encoder and not hasattr(clone(texts), "classes_")
    assert repr(texts) == "LoRanPACClassifier(encoder=Encoder('text-ngrams'), width=300)"


def test_scikit_learn_searches_over_texts():
    x, y = sentences(WORDS)
    model = LoRanPACClassifier(width=WIDTH, encoder=Encoder("text-ngrams"), n_jobs=1)
    assert cross_val_score(model, x, y, cv=3).mean() > 0.9
    found = GridSearchCV(model, {"width": [50, WIDTH]}, cv=2, n_jobs=2).fit(x, y)
    assert found.best_score_ > 0.9 and found.predict(["play a song"]) == ["music"]


def test_threads_predict_texts_while_one_learns(texts):
    x, _ = sentences(WORDS)
    failures = []

    def predict():
        for _ in range(10):
            try:
                assert set(texts.predict(x)) <= set(WORDS)
            except BaseException as failure:
                failures.append(failure)

    workers = [threading.Thread(target=predict) for _ in range(3)]
    for worker in workers:
        worker.start()
    for seed in range(5):
        texts.partial_fit(*sentences(["alarm"], seed=seed + 10))
    for worker in workers:
        worker.join()
    assert not failures and texts.n_samples_seen_ == 84


def test_progress_of_encoding_is_printed(capfd):
    LoRanPACClassifier(width=WIDTH, encoder="text-ngrams", verbose=1).fit(*sentences(WORDS))
    printed = capfd.readouterr().err
    assert "[text-ngrams] 100%  36 of 36 samples" in printed and "[loranpac-soft] 100%" in printed


def test_dask_learns_texts(tmp_path):
    dask = pytest.importorskip("dask")
    from loranpac.dask import fit

    shards = [dask.delayed(sentences)([intent]) for intent in WORDS]
    estimator = LoRanPACClassifier(width=WIDTH, encoder="text-ngrams")
    model = fit(shards, tmp_path / "all.lrp", estimator)
    x, y = sentences(WORDS, seed=3)
    assert model.score(x, y) == 1.0
    bag = pytest.importorskip("dask.bag").from_sequence(list(zip(*sentences(WORDS))), npartitions=2)
    assert fit(bag, tmp_path / "bag.lrp", estimator).score(x, y) == 1.0
    assert loranpac.history(tmp_path / "bag.lrp")[0]["encoder"] == "text-ngrams"

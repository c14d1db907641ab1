"""Adaptation: modules are trained inside an encoder, and belong to it from then on."""

import copy
import itertools
import json
import pickle
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from PIL import Image
from small_encoders import bert, vit
from sklearn.base import clone

import loranpac
from loranpac import Encoder, LoRanPACClassifier, adapt, make

FEW = {"epochs": 3, "batch": 4, "held_out": 4, "rate": 0.1}
MODULES = ["adapter", "lora", "vpt-deep", "vpt-shallow", "ssf"]


def pictures(count=12):
    """Images of two colours, and their labels."""
    random = np.random.default_rng(0)
    images = random.integers(0, 60, size=(count, 20, 24, 3), dtype=np.uint8)
    images[::2, ..., 0] += 120
    images[1::2, ..., 2] += 120
    return list(images), ["red", "blue"] * (count // 2)


def sentences(count=16):
    """Texts of two intents, and their labels."""
    words = {"parcel": ["parcel", "late"], "music": ["song", "play"]}
    pairs = [(" ".join([words[intent][n % 2], words[intent][0], "wake"][: 2 + n % 2]), intent) for n in range(count // 2) for intent in words]
    texts, labels = zip(*pairs)
    return list(texts), list(labels)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the encoders vit and bert, and the adapter a.safetensors of vit."""
    folder = tmp_path_factory.mktemp("adapt")
    vit(folder / "vit")
    bert(folder / "bert")
    adapt(folder / "vit", *pictures(), out=folder / "a.safetensors", **FEW)
    return folder


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "loranpac", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("module", MODULES)
def test_python_and_the_command_line_write_the_same_file(place, tmp_path, module):
    images, labels = pictures()
    files = []
    for number, (image, label) in enumerate(zip(images, labels)):
        file = tmp_path / f"{number}.png"
        Image.fromarray(image).save(file)
        files.append(file)
    (tmp_path / "list.csv").write_text("path,label\n" + "".join(f"{file},{label}\n" for file, label in zip(files, labels)))
    flags = [word for name, value in FEW.items() for word in (f"--{name.replace('_', '-')}", value)]
    words = ["adapt", place / "vit", tmp_path / "list.csv", "-o", tmp_path / "c.safetensors", "--module", module, "--json", *flags]
    found = json.loads(command(*words))
    forms = [files, [str(file) for file in files], [file.read_bytes() for file in files], [Image.open(file) for file in files]]
    for number, given in enumerate(forms):
        outcome = adapt(place / "vit", given, labels, out=tmp_path / f"{number}.safetensors", module=module, n_jobs=1 + number % 2, **FEW)
        expected = tmp_path / "c.safetensors"
        # The samples are identified by the contents of files, which pixels do not have; the training is the same.
        assert (tmp_path / f"{number}.safetensors").read_bytes() == expected.read_bytes()
        assert outcome.parameters == found["parameters"] and outcome.helps == found["helps"] and outcome.written
        assert [epoch.loss for epoch in outcome.epochs] == [epoch["loss"] for epoch in found["epochs"]]
        assert (outcome.frozen, outcome.adapted) == (found["outcome"]["frozen"], found["outcome"]["adapted"])
        assert (outcome.classes, outcome.trained, outcome.held_out, outcome.halved) == (2, 10, 2, 0)
        assert 1 <= outcome.best <= len(outcome.epochs) <= 3
    assert not list(tmp_path.glob(".*"))


def test_texts_are_adapted_and_change_their_features(place, tmp_path):
    texts, labels = sentences()
    numbers = [len(label) for label in labels]
    for given in (labels, np.array(labels), numbers):
        outcome = adapt(Encoder(place / "bert"), iter(texts), given, out=tmp_path / "t.safetensors", **FEW)
    assert outcome.classes == 2 and outcome.path == str(tmp_path / "t.safetensors")
    frozen, adapted = Encoder(place / "bert"), Encoder(place / "bert", adapter=outcome.path)
    both = Encoder(place / "bert", adapter=tmp_path / "t.safetensors", concat=True)
    assert len({encoder.digest for encoder in (frozen, adapted, both)}) == 3
    assert (frozen.dim, adapted.dim, both.dim) == (8, 8, 16)
    assert not np.array_equal(frozen.encode(texts), adapted.encode(texts))
    np.testing.assert_array_equal(both.encode(texts), np.hstack([frozen.encode(texts), adapted.encode(texts)]))
    assert adapted.adapter == outcome.path and frozen.adapter is None and (adapted.concat, both.concat) == (False, True)
    assert repr(both) == f"Encoder({str(place / 'bert')!r}, adapter={outcome.path!r}, concat=True)"


def test_only_if_better_and_no_held_out_samples(place, tmp_path):
    images, labels = pictures()
    # A rate at which nothing changes.
    outcome = adapt(place / "vit", images, labels, out=tmp_path / "a.safetensors", only_if_better=True, **{**FEW, "rate": 1e-12})
    assert (outcome.written, outcome.helps) == (False, False) and not list(tmp_path.iterdir())
    outcome = adapt(place / "vit", images, labels, out=tmp_path / "a.safetensors", **{**FEW, "held_out": 0})
    assert (outcome.frozen, outcome.adapted, outcome.helps, outcome.best, outcome.held_out) == (None, None, None, 3, 0)
    assert outcome.written and [epoch.accuracy for epoch in outcome.epochs] == [None] * 3


def test_an_interrupted_training_resumes_with_the_same_file(place, tmp_path, capfd):
    images, labels = pictures()
    settings = {**FEW, "epochs": 8, "patience": 0}
    adapt(place / "vit", images, labels, out=tmp_path / "whole.safetensors", **settings)
    out = tmp_path / "a.safetensors"
    interrupted = 0
    for _ in itertools.count():
        # The interrupt arrives after the first epoch of this call has been printed.
        done = threading.Event()
        write = sys.stderr.write

        def watch(text, write=write, done=done):
            if "epoch" in text and "loss" in text and not done.is_set():
                done.set()
                signal.raise_signal(signal.SIGINT)
            return write(text)

        sys.stderr.write = watch
        try:
            adapt(place / "vit", images, labels, out=out, verbose=1, **settings)
            break
        except KeyboardInterrupt as interrupt:
            interrupted += 1
            if out.exists():
                assert "interrupted after training had ended" in str(interrupt)
                break
            assert "of 8 epochs; the same call resumes there" in str(interrupt)
            assert (tmp_path / ".a.safetensors.checkpoint").exists() and not out.exists()
            assert not (tmp_path / ".a.safetensors.partial").exists()
        finally:
            sys.stderr.write = write
    assert interrupted >= 2
    assert out.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert "[adapt] resuming after epoch" in capfd.readouterr().err
    assert not list(tmp_path.glob(".*"))


def test_progress_is_printed(place, tmp_path, capfd):
    adapt(place / "vit", *pictures(), out=tmp_path / "a.safetensors", **FEW)
    assert capfd.readouterr().err == ""
    adapt(place / "vit", *pictures(), out=tmp_path / "a.safetensors", verbose=1, **FEW)
    printed = capfd.readouterr().err
    assert "[adapt] 10 samples of 2 classes to train on, 2 held out" in printed and "MiB of memory" in printed
    assert "[adapt] epoch 1/3  loss " in printed and "held out" in printed and "left" in printed and "step 1/3" not in printed
    adapt(place / "vit", *pictures(), out=tmp_path / "a.safetensors", verbose=2, **FEW)
    assert "[adapt] epoch 1, step 1/3  loss " in capfd.readouterr().err


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"encoder": "text-ngrams"}, ValueError, "text-ngrams cannot be adapted: only transformers"),
        ({"encoder": "absent/"}, ValueError, "there is no encoder absent/"),
        ({"encoder": 3}, TypeError, "encoder: an Encoder or a path is expected"),
        ({"out": "a.npz"}, ValueError, "out: the name of an adapter must end with .safetensors, not 'a.npz'"),
        ({"out": "absent/a.safetensors"}, FileNotFoundError, "its folder does not exist"),
        ({"out": 3}, TypeError, "out: a path is expected"),
        ({"module": "adaptor"}, ValueError, "module: one of adapter, lora, vpt-deep, vpt-shallow, ssf is expected, not adaptor"),
        ({"module": None}, ValueError, "module: a str is expected"),
        ({"module": "ssf", "size": 4}, ValueError, "size: it has no effect with the module ssf"),
        ({"size": 5000}, ValueError, "size: adapter of size 5000 does not fit"),
        ({"size": 0}, ValueError, "size: a whole number of at least 1"),
        ({"epochs": 0}, ValueError, "epochs: a whole number of at least 1"),
        ({"epochs": 10**6}, ValueError, "epochs: 1000000 is not between 1 and 100000"),
        ({"rate": -1}, ValueError, "rate: -1 is not a positive number"),
        ({"rate": float("nan")}, ValueError, "rate: NaN is not a positive number"),
        ({"rate": "high"}, ValueError, "rate: a number is expected"),
        ({"batch": 2.5}, ValueError, "batch: a whole number"),
        ({"seed": -1}, ValueError, "seed: "),
        ({"held_out": 1}, ValueError, "held_out: 1 leaves no sample to train on"),
        ({"optimiser": "lion"}, ValueError, "optimiser: 'sgd' or 'adam' is expected, not 'lion'"),
        ({"head": "none"}, ValueError, "head: 'cosine' or 'linear' is expected"),
        ({"classes": 1}, ValueError, "needs samples of two classes or more, and there are 6 samples of 1 class"),
        ({"y": ["a"] * 12}, ValueError, "there are 12 samples of 1 class"),
        ({"y": ["a", "b"]}, ValueError, r"y: a label for each of 12 inputs is expected, not 2"),
        ({"y": [1.5] * 12}, (ValueError, TypeError), "y: |label"),
        ({"X": "one.png"}, TypeError, "X: a list of images is expected, not one str"),
        ({"X": [], "y": []}, ValueError, "0 samples of 0 classes"),
        ({"X": [b"hello"] * 12}, ValueError, r"X\[0\]: not an image"),
        ({"X": ["absent.png"] * 12}, FileNotFoundError, r"X\[0\] \(absent.png\): cannot be read"),
        ({"X": [None] * 12}, ValueError, r"X\[0\] is missing"),
        ({"verbose": "yes"}, ValueError, "verbose: "),
        ({"n_jobs": 0}, ValueError, "n_jobs: "),
        ({"preprocess": "magic"}, ValueError, "magic"),
        ({"rate": 1e38, "module": "ssf"}, ValueError, "is not finite, even at a rate of .*; lower rate"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_is_written(place, tmp_path, monkeypatch, change, error, message):
    monkeypatch.chdir(tmp_path)
    images, labels = pictures()
    given = {"encoder": place / "vit", "X": images, "y": labels, "out": "a.safetensors", **FEW, **change}
    with pytest.raises(error, match=message):
        adapt(given.pop("encoder"), given.pop("X"), given.pop("y"), **given)
    assert not list(tmp_path.iterdir())


def test_what_is_adapted_already_and_what_cannot_be_decoded(place, tmp_path):
    images, labels = pictures()
    with pytest.raises(ValueError, match="encoder: it has an adapter already"):
        adapt(Encoder(place / "vit", adapter=place / "a.safetensors"), images, labels, out=tmp_path / "b.safetensors")
    with pytest.raises(ValueError, match="preprocess: give it to the Encoder"):
        adapt(Encoder(place / "vit"), images, labels, out=tmp_path / "b.safetensors", preprocess="unit")
    images[3] = b"\x89PNG"
    with pytest.raises(ValueError, match=r"X\[3\]"):
        adapt(place / "vit", images, labels, out=tmp_path / "b.safetensors", **FEW)
    with pytest.warns(UserWarning, match=r"skipped: X\[3\]"):
        outcome = adapt(place / "vit", images, labels, out=tmp_path / "b.safetensors", skip_bad=True, **FEW)
    assert outcome.trained + outcome.held_out == 11


def test_a_file_that_is_being_trained_is_refused(place, tmp_path):
    images, labels = pictures()
    problems = []

    def second():
        if not problems:
            with pytest.raises(OSError, match="being written by another process") as problem:
                adapt(place / "vit", images, labels, out=tmp_path / "a.safetensors", **FEW)
            problems.append(problem)

    # While the first call reports, the second one begins.
    write = sys.stderr.write
    sys.stderr.write = lambda text: (second(), write(text))[1]
    try:
        adapt(place / "vit", images, labels, out=tmp_path / "a.safetensors", verbose=1, **FEW)
    finally:
        sys.stderr.write = write
    assert problems and [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


def test_an_adapter_of_another_encoder_is_refused(place, tmp_path):
    adapter = place / "a.safetensors"
    with pytest.raises(ValueError, match="a.safetensors: it belongs to the encoder vit_test with the digest .*, not to vit_test with "):
        Encoder(vit(tmp_path / "other", seed=1), adapter=adapter)
    with pytest.raises(ValueError, match="another preprocessing is another encoder"):
        Encoder(place / "vit", adapter=adapter, preprocess="unit")
    with pytest.raises(ValueError, match="text-ngrams cannot be adapted"):
        Encoder("text-ngrams", adapter=adapter)
    with pytest.raises(ValueError, match="it is no adapter"):
        Encoder(place / "vit", adapter=place / "vit" / "model.safetensors")
    with pytest.raises(FileNotFoundError, match="absent.safetensors"):
        Encoder(place / "vit", adapter="absent.safetensors")
    damaged = bytearray(adapter.read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "d.safetensors").write_bytes(damaged)
    with pytest.raises(ValueError, match="the file is damaged"):
        Encoder(place / "vit", adapter=tmp_path / "d.safetensors")
    for arguments, error, message in [
        ({"adapter": 3}, TypeError, "adapter: the path of a file"),
        ({"concat": True}, ValueError, "concat: .*need adapter="),
        ({"adapter": adapter, "concat": "yes"}, TypeError, "concat: a bool"),
    ]:
        with pytest.raises(error, match=message):
            Encoder(place / "vit", **arguments)


def test_copies_and_pickles_keep_the_adapter(place, tmp_path):
    images, _ = pictures()
    encoder = Encoder(place / "vit", adapter=place / "a.safetensors", concat=True)
    again = pickle.loads(pickle.dumps(encoder))
    assert again == encoder and (again.adapter, again.concat, again.dim) == (encoder.adapter, True, 16)
    assert copy.deepcopy(encoder) is encoder and clone(encoder) is encoder
    np.testing.assert_array_equal(again.encode(images), encoder.encode(images))
    # A pickle from before adapters.
    old = Encoder._recorded("vit", Encoder(place / "vit").digest, str(place / "vit"), None, {"preprocess": None, "timeout": 60.0})
    assert old.adapter is None and old.encode(images).shape == (12, 8)


def test_a_model_records_its_adapter_and_finds_it_again(place, tmp_path, monkeypatch):
    images, labels = pictures()
    shutil.copytree(place / "vit", tmp_path / "encoders" / "vit")
    shutil.copy(place / "a.safetensors", tmp_path / "encoders" / "a.safetensors")
    encoder, adapter = tmp_path / "encoders" / "vit", tmp_path / "encoders" / "a.safetensors"
    model = LoRanPACClassifier(width=100, encoder=encoder, adapter=adapter).fit(images, labels)
    assert model.score(images, labels) == 1.0
    by_object = LoRanPACClassifier(width=100, encoder=Encoder(encoder, adapter=adapter, concat=True)).fit(images, labels)
    assert by_object.n_features_in_ == 16
    for fitted, concat in ((model, False), (by_object, True)):
        path = tmp_path / f"{concat}.lrp"
        fitted.save(path)
        again = LoRanPACClassifier.load(path)
        assert (again.encoder.adapter, again.encoder.concat, again.adapter) == (str(adapter), concat, None)
        np.testing.assert_array_equal(again.decision_function(images), fitted.decision_function(images))
        pickled = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(pickled.decision_function(images), fitted.decision_function(images))
        again.partial_fit(images[:6], labels[:6]).save(path)
    # Elsewhere: beside the model, in a folder of the environment, or given.
    path = tmp_path / "True.lrp"
    (tmp_path / "encoders").rename(tmp_path / "moved")
    with pytest.raises(FileNotFoundError, match="is not found"):
        LoRanPACClassifier.load(path).predict(images)
    again = LoRanPACClassifier.load(path, encoder=tmp_path / "moved" / "vit", adapter=tmp_path / "moved" / "a.safetensors")
    assert again.score(images, labels) == 1.0 and again.encoder.concat
    monkeypatch.setenv("LORANPAC_ENCODERS", str(tmp_path / "moved"))
    assert LoRanPACClassifier.load(path).score(images, labels) == 1.0
    assert LoRanPACClassifier.load(path, encoder=tmp_path / "moved" / "vit").score(images, labels) == 1.0
    assert LoRanPACClassifier.load(path, adapter=tmp_path / "moved" / "a.safetensors").score(images, labels) == 1.0
    with pytest.raises(FileNotFoundError, match="adapter: 'absent.safetensors': no such file"):
        LoRanPACClassifier.load(path, adapter="absent.safetensors")
    adapt(place / "vit", images, labels, out=tmp_path / "other.safetensors", **{**FEW, "seed": 1})
    with pytest.raises((ValueError, FileNotFoundError), match="digest"):
        LoRanPACClassifier.load(path, adapter=tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="image-basic cannot be adapted"):
        LoRanPACClassifier.load(path, encoder="image-basic")
    with pytest.raises(ValueError, match="another encoder"):
        LoRanPACClassifier.load(path, encoder=Encoder("image-basic"))


def test_the_command_line_finds_the_adapter_of_a_model_from_python(place, tmp_path):
    images, labels = pictures()
    path, photos = tmp_path / "m.lrp", tmp_path / "photos"
    for number, (image, label) in enumerate(zip(images, labels)):
        (photos / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(photos / label / f"{number}.png")
    LoRanPACClassifier(width=100, encoder=place / "vit", adapter=place / "a.safetensors").fit(images, labels).save(path)
    command("learn", path, photos, "--no-cache")
    assert "adapted by" in command("inspect", path)
    assert LoRanPACClassifier.load(path).n_samples_seen_ == 24


@pytest.mark.parametrize("concat", [False, True])
def test_merged_models_keep_the_encoder_and_the_adapter(place, tmp_path, concat):
    images, labels = pictures()
    encoder = {"encoder": Encoder(place / "vit", adapter=place / "a.safetensors", concat=concat)}
    if not concat:
        encoder = {"encoder": str(place / "vit"), "adapter": str(place / "a.safetensors")}
    halves = [(images[:6], labels[:6]), (images[6:], labels[6:])]
    whole = LoRanPACClassifier(width=100, **encoder).fit(images, labels)

    def check(model):
        own = model._own_encoder()
        assert (own.adapter, own.concat, own.location) == (str(place / "a.safetensors"), concat, str(place / "vit"))
        assert model.n_samples_seen_ == 12
        np.testing.assert_allclose(model.decision_function(images), whole.decision_function(images), atol=1e-4)

    def part(number, **given):
        return LoRanPACClassifier(width=100, **(given or encoder)).fit(*halves[number])

    # In memory, and a copy of it on disk.
    merged = part(0).merge(part(1))
    check(merged)
    merged.save(tmp_path / "a.lrp")
    check(LoRanPACClassifier.load(tmp_path / "a.lrp"))
    # By path, in both orders, and with the command line.
    paths = [tmp_path / "0.lrp", tmp_path / "1.lrp"]
    for number, path in enumerate(paths):
        part(number).save(path)
    check(LoRanPACClassifier.load(loranpac.merge_models(paths, tmp_path / "b.lrp")))
    check(LoRanPACClassifier.load(loranpac.merge_models(paths[::-1], tmp_path / "c.lrp")))
    command("merge", *paths, "-o", tmp_path / "d.lrp")
    check(LoRanPACClassifier.load(tmp_path / "d.lrp"))
    assert "adapted by" in command("inspect", tmp_path / "d.lrp")
    # Loaded models, one after the other.
    check(LoRanPACClassifier.load(paths[0]).merge(LoRanPACClassifier.load(paths[1])))
    # A model that learned features adopts encoder and adapter, and keeps to them.
    features = whole._own_encoder().encode(halves[0][0])
    adopted = LoRanPACClassifier(width=100).fit(features, halves[0][1]).merge(part(1))
    check(adopted)
    assert adopted.encoder is not None and adopted._settled_encoder == ((adopted.encoder, None), True)
    adopted.save(tmp_path / "e.lrp")
    check(LoRanPACClassifier.load(tmp_path / "e.lrp"))
    # The same encoder without the adapter is another one, and side by side there are twice as many features.
    with pytest.raises(ValueError, match="different lifts" if concat else "another encoder|trained with"):
        part(0).merge(LoRanPACClassifier(width=100, encoder=place / "vit").fit(*halves[1]))


def test_estimators_keep_to_their_adapter(place):
    images, labels = pictures()
    for model in (LoRanPACClassifier(width=100), make("simplecil")):
        model.set_params(encoder=str(place / "vit"), adapter=str(place / "a.safetensors"))
        assert clone(model).get_params() == model.get_params() and "adapter='" in repr(model)
        model.fit(images, labels)
        for change, message in [
            ({"adapter": None}, "another encoder: vit"),
            ({"encoder": "image-basic", "adapter": None}, "another encoder"),
            ({"encoder": None}, "adapter: give an encoder with it"),
            ({"encoder": Encoder(place / "vit")}, "adapter: give it to the Encoder instead"),
            ({"encoder": "a name"}, "adapter: it needs an encoder, and encoder='a name' is a name only"),
            ({"adapter": 3}, "adapter: the path of a file"),
        ]:
            with pytest.raises(ValueError, match=message):
                model.set_params(**change).predict(images)
            model.set_params(encoder=str(place / "vit"), adapter=str(place / "a.safetensors"))
        assert model.predict(images).tolist() == labels


def test_the_names_are_exported():
    assert {"adapt", "Adaptation", "Epoch"} <= set(loranpac.__all__)

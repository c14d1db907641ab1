"""Encoders: texts and images in, features out."""

import copy
import io
import pathlib
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas
import pytest
from PIL import Image
from sklearn.base import clone

from loranpac import Encoder
from loranpac.features import embed

TEXTS = ["where is my parcel", "the parcel is late", "play a song", "play the next song", ""]


@pytest.fixture(scope="module")
def ngrams():
    return Encoder("text-ngrams", cache=False)


@pytest.fixture(scope="module")
def basic():
    return Encoder("image-basic", cache=False)


@pytest.fixture
def picture():
    return np.random.default_rng(0).integers(0, 256, size=(20, 30, 3), dtype=np.uint8)


def png(pixels, **options):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png", **options)
    return file.getvalue()


def test_an_encoder_describes_itself(ngrams, basic):
    assert (ngrams.name, ngrams.modality, ngrams.dim, ngrams.layers) == ("text-ngrams", "text", 2048, 1)
    assert (basic.name, basic.modality, basic.dim, basic.location) == ("image-basic", "image", 2320, "image-basic")
    assert len(ngrams.digest) == 64 and ngrams.digest != basic.digest
    assert repr(Encoder("text-ngrams")) == "Encoder('text-ngrams')"
    assert repr(Encoder("text-ngrams", n_jobs=2, cache="c")) == "Encoder('text-ngrams', cache='c', n_jobs=2)"


@pytest.mark.parametrize("give", [list, tuple, np.array, pandas.Series, iter, lambda texts: np.array(texts, dtype=object)])
def test_texts_in_any_container_have_the_same_features(ngrams, give):
    features = ngrams.encode(give(TEXTS))
    assert features.shape == (5, 2048) and features.dtype == np.float32 and features.flags.c_contiguous
    np.testing.assert_array_equal(features, ngrams.encode(TEXTS))
    np.testing.assert_array_equal(features[:1], ngrams.encode(TEXTS[:1]))


def test_an_image_has_the_same_features_in_every_form(basic, picture, tmp_path):
    file = tmp_path / "a.png"
    file.write_bytes(png(picture))
    forms = [str(file), file, png(picture), bytearray(png(picture)), picture, np.asfortranarray(picture), Image.open(file)]
    features = basic.encode(forms)
    assert features.shape == (len(forms), 2320)
    np.testing.assert_array_equal(features, np.repeat(features[:1], len(forms), axis=0))
    np.testing.assert_array_equal(basic.encode(np.stack([picture, picture])), features[:2])
    assert not np.array_equal(basic.encode([picture[:, ::-1]])[0], features[0])


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1", "LA"])
def test_images_of_pil_are_converted_as_pil_does(basic, picture, mode):
    image = Image.fromarray(picture).convert(mode)
    np.testing.assert_array_equal(basic.encode([image]), basic.encode([np.asarray(image.convert("RGB"))]))


def test_images_of_pil_and_files_are_turned_upright(basic, picture):
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    turned = png(picture, exif=exif)
    expected = basic.encode([np.rot90(picture, -1)])
    np.testing.assert_array_equal(basic.encode([turned]), expected)
    np.testing.assert_array_equal(basic.encode([Image.open(io.BytesIO(turned))]), expected)


def test_pil_is_not_imported_unless_an_image_is_its_object():
    program = (
        "import sys, numpy; from loranpac import Encoder;"
        "Encoder('image-basic').encode([numpy.zeros((8, 8, 3), numpy.uint8)]);"
        "assert 'PIL' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_layers_are_an_axis(ngrams):
    features = ngrams.encode(TEXTS, layers=[0])
    assert features.shape == (5, 1, 2048)
    np.testing.assert_array_equal(features[:, 0], ngrams.encode(TEXTS))
    for layers in ([1], [-1], ["last"], "all", [True], [], [0, 0], 0):
        with pytest.raises(ValueError, match="layers: a list of different numbers from 0 to 0 is expected"):
            ngrams.encode(TEXTS, layers=layers)


def test_no_inputs_have_no_features(ngrams, basic):
    assert ngrams.encode([]).shape == (0, 2048)
    assert basic.encode(iter(())).shape == (0, 2320)
    assert ngrams.encode([], layers=[0]).shape == (0, 1, 2048)


@pytest.mark.parametrize(
    "inputs, error, message",
    [
        ("one text", TypeError, "inputs: a list of texts is expected, not one str; put it into a list"),
        (None, TypeError, "inputs: a list of texts is expected, not NoneType"),
        (3, TypeError, "inputs: a list of texts is expected, not int"),
        ({"a": 1}, TypeError, "not dict"),
        ({"a", "b"}, TypeError, "not set"),
        (["a", None], ValueError, r"inputs\[1\] is missing \(None\); remove it, or fill it in"),
        (["a", float("nan")], ValueError, r"inputs\[1\] is missing \(nan\)"),
        (pandas.Series(["a", pandas.NA]), ValueError, r"inputs\[1\] is missing"),
        (["a", 7], TypeError, r"inputs\[1\]: text-ngrams reads texts, not int"),
        ([b"a"], TypeError, r"inputs\[0\]: text-ngrams reads texts, not bytes; decode it"),
        ([pathlib.Path("a.txt")], TypeError, "read the file"),
        (["a", "\ud800"], ValueError, r"inputs\[1\]: the text is not valid Unicode"),
        (np.array([["a"], ["b"]]), ValueError, r"not a table of shape \(2, 1\); give one column of it"),
        (pandas.DataFrame({"text": ["a"]}), ValueError, r"not a table of shape \(1, 1\)"),
        (np.zeros((2, 3)), ValueError, "not a table"),
    ],
)
def test_wrong_texts_are_refused_with_their_place(ngrams, inputs, error, message):
    with pytest.raises(error, match=message):
        ngrams.encode(inputs)


@pytest.mark.parametrize(
    "inputs, error, message",
    [
        (b"\x89PNG", TypeError, "inputs: a list of images is expected, not one bytes"),
        ([b""], ValueError, r"inputs\[0\]: the file is empty"),
        ([b"hello"], ValueError, r"inputs\[0\]: not an image; JPEG, PNG"),
        (["absent.png"], FileNotFoundError, r"inputs\[0\] \(absent.png\): cannot be read: "),
        (["."], OSError, r"inputs\[0\] \(.\): cannot be read: .*folder"),
        ([np.zeros((4, 4), np.uint8)], ValueError, r"inputs\[0\]: an array of pixels is uint8 .* not uint8 \(4, 4\)"),
        ([np.full((4, 4, 3), np.nan)], ValueError, r"not float64 \(4, 4, 3\)"),
        ([np.zeros((3, 4, 4), np.uint8)], ValueError, r"not uint8 \(3, 4, 4\)"),
        ([np.zeros((0, 4, 3), np.uint8)], ValueError, r"inputs\[0\]: the image has no pixels \(4 x 0\)"),
        ([3.5], TypeError, r"inputs\[0\]: image-basic reads images \(paths, bytes, .*, not float"),
        (np.array([b"abc"]), TypeError, "NumPy drops zeros at the end of bytes"),
        ([None], ValueError, r"inputs\[0\] is missing"),
    ],
)
def test_wrong_images_are_refused_with_their_place(basic, inputs, error, message):
    with pytest.raises(error, match=message):
        basic.encode(inputs)


def test_a_truncated_image_is_named(basic, picture, tmp_path):
    (tmp_path / "whole.png").write_bytes(png(picture))
    (tmp_path / "half.png").write_bytes(png(picture)[:500])
    with pytest.raises(ValueError, match=r"inputs\[1\] \(.*half.png\): the image"):
        basic.encode([tmp_path / "whole.png", tmp_path / "half.png"])


def test_an_exception_of_a_generator_is_raised_unchanged(ngrams):
    def texts():
        yield "a"
        raise LookupError("the end of the world")

    with pytest.raises(LookupError, match="the end of the world"):
        ngrams.encode(texts())


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"name": "text-magic"}, ValueError, "there is no encoder text-magic: give a folder"),
        ({"name": "absent/"}, ValueError, "there is no encoder absent/"),
        ({"name": "absent.onnx"}, OSError, "absent.onnx"),
        ({"name": 3}, TypeError, "name: the name, the path or the address"),
        ({"name": ""}, TypeError, "name: "),
        ({"name": "text-ngrams", "preprocess": "unit"}, ValueError, "leave out `?preprocess"),
        ({"name": "text-ngrams", "preprocess": 3}, TypeError, "preprocess: "),
        ({"name": "text-ngrams", "timeout": 0}, ValueError, "timeout: a number of seconds above 0"),
        ({"name": "text-ngrams", "timeout": float("nan")}, ValueError, "timeout: "),
        ({"name": "text-ngrams", "timeout": float("inf")}, ValueError, "timeout: "),
        ({"name": "text-ngrams", "cache": True}, TypeError, "cache: a folder, False or None"),
        ({"name": "text-ngrams", "n_jobs": 0}, ValueError, "n_jobs: "),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        Encoder(arguments.pop("name"), **arguments)


def test_copies_clones_and_pickles_are_equal(ngrams, basic):
    assert copy.copy(ngrams) is ngrams and copy.deepcopy(ngrams) is ngrams and clone(ngrams) is ngrams
    again = pickle.loads(pickle.dumps(ngrams))
    assert again == ngrams and again is not ngrams and hash(again) == hash(ngrams)
    assert again != basic and again != "text-ngrams"
    np.testing.assert_array_equal(again.encode(TEXTS), ngrams.encode(TEXTS))
    assert len(pickle.dumps(ngrams)) < 1000


def test_a_pickle_of_an_encoder_that_has_changed_is_refused():
    changed = Encoder._recorded("text-ngrams", "0" * 64, "text-ngrams", None, {})
    changed = pickle.loads(pickle.dumps(changed))
    assert changed.digest == "0" * 64 and changed.name == "text-ngrams"
    with pytest.raises(FileNotFoundError, match=r"text-ngrams with the digest 000000000000... is not found \(tried: "):
        changed.encode(TEXTS)


def test_features_are_kept_in_a_cache(tmp_path, monkeypatch):
    cached = Encoder("text-ngrams", cache=tmp_path / "given")
    features = cached.encode(TEXTS)
    (file,) = (tmp_path / "given").iterdir()
    size = file.stat().st_size
    assert size > features.nbytes
    np.testing.assert_array_equal(cached.encode(TEXTS[::-1]), features[::-1])
    assert file.stat().st_size == size
    # What was kept is what is returned.
    data = np.fromfile(file, dtype=np.uint8)
    del cached
    np.testing.assert_array_equal(Encoder("text-ngrams", cache=tmp_path / "given").encode(TEXTS), features)
    assert np.array_equal(np.fromfile(file, dtype=np.uint8), data)

    monkeypatch.setenv("LORANPAC_CACHE", str(tmp_path / "environment"))
    Encoder("text-ngrams", cache=False).encode(TEXTS)
    assert not (tmp_path / "environment").exists()
    Encoder("text-ngrams").encode(TEXTS)
    assert (tmp_path / "environment" / file.name).read_bytes() == file.read_bytes()


def test_a_cache_that_cannot_be_opened_is_an_error_of_the_system(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot use the cache"):
        Encoder("text-ngrams", cache=tmp_path / "file").encode(TEXTS)


def test_several_threads_encode_at_a_time(ngrams, tmp_path):
    texts = [f"text number {number}" for number in range(600)]
    expected = ngrams.encode(texts)
    cached, found = Encoder("text-ngrams", cache=tmp_path), {}

    def work(number):
        encoder = cached if number % 2 else pickle.loads(pickle.dumps(ngrams))
        found[number] = encoder.encode(texts)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 6 and all(np.array_equal(features, expected) for features in found.values())
    np.testing.assert_array_equal(Encoder("text-ngrams", n_jobs=1).encode(texts), expected)


def test_an_interrupt_ends_encoding_after_a_batch(ngrams):
    def texts():
        for number in range(10_000):
            if number == 300:
                signal.raise_signal(signal.SIGINT)
            yield f"text {number}"

    with pytest.raises(KeyboardInterrupt, match="interrupted after 256 inputs were encoded"):
        ngrams.encode(texts())
    assert ngrams.encode(["text"]).shape == (1, 2048)


def test_embed_takes_the_encoder_as_a_callable(ngrams, tmp_path):
    features = embed(ngrams.encode, TEXTS, batch_size=2, cache=tmp_path / "x.npz", key=ngrams.digest)
    np.testing.assert_array_equal(features, ngrams.encode(TEXTS))

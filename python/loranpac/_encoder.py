"""Encoders of images and texts."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loranpac import _engine
from loranpac._inputs import checked, items
from loranpac._models import Path, threads

#: Options of an encoder that are not given.
_DEFAULTS: dict[str, Any] = {
    "preprocess": None,
    "adapter": None,
    "concat": False,
    "timeout": 60.0,
    "cache": None,
    "n_jobs": None,
}


class Encoder:
    """An encoder of images or texts, which runs on the CPU: the encoders of ``loranpac embed``.

    Parameters
    ----------
    name : str or path
        ``"text-ngrams"`` or ``"image-basic"``, which are built in; a folder with ``model.safetensors`` and ``config.json``
        (ViT, DeiT, DINOv2, CLIP; MiniLM, BGE, E5 and other BERT-like encoders); a ``.safetensors`` or ``.onnx`` file of an
        image encoder; or the address of an embedding server, ``http://HOST/v1/embeddings?model=NAME``.
    preprocess : str, optional
        Preprocessing of images: ``"unit"``, ``"half"``, ``"imagenet"`` or ``"clip"``, or settings such as
        ``"resize=256,crop=224,filter=bicubic"``. By default the encoder's own.
    adapter : path, optional
        A file of modules that :func:`adapt` or ``loranpac adapt`` has trained in this encoder. An adapter of another encoder, or
        of another preprocessing, is refused.
    concat : bool
        With an adapter: features before and after adaptation, side by side.
    timeout : float
        Time limit of a request to a server, in seconds.
    cache : path, False or None
        A folder in which features are kept, so that equal inputs are not encoded again. None: the folder in the environment
        variable ``LORANPAC_CACHE``, if it is set; False: no cache. The folder is shared with the command line.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    name : str
        A short name.
    modality : str
        What it reads, ``"image"`` or ``"text"``.
    dim, layers : int
        Features of an input; layers whose features :meth:`encode` can return.
    digest : str
        SHA-256 of weights, architecture, preprocessing and adapter, in hexadecimal. Encoders with the same digest are equal.
    location : str
        The absolute path, the address, or the name of a built-in encoder.
    preprocess : str or None
        As given.
    adapter : str or None
        The absolute path of the adapter.
    concat : bool
        As given.

    Notes
    -----
    Encoders do not change, and several threads may use one. Pickles and copies refer to the encoder, and to its adapter, by
    location and digest, and do not contain weights. An unpickled encoder is opened when it is first used; it looks in the folders of the
    environment variable ``LORANPAC_ENCODERS`` as well, and refuses weights with another digest.

    Examples
    --------
    >>> from loranpac import Encoder
    >>> encoder = Encoder("text-ngrams")
    >>> encoder.modality, encoder.dim
    ('text', 2048)
    >>> encoder.encode(["good morning", "good evening"]).shape
    (2, 2048)
    """

    def __init__(
        self,
        name: Path,
        *,
        preprocess: str | None = None,
        adapter: Path | None = None,
        concat: bool = False,
        timeout: float = 60,
        cache: Path | bool | None = None,
        n_jobs: int | None = None,
    ):
        if not isinstance(name, (str, os.PathLike)) or not os.fspath(name):
            raise TypeError(f"name: the name, the path or the address of an encoder is expected, not {name!r}")
        if preprocess is not None and not isinstance(preprocess, str):
            raise TypeError(f"preprocess: a str or None is expected, not {preprocess!r}")
        if adapter is not None and (not isinstance(adapter, (str, os.PathLike)) or not os.fspath(adapter)):
            raise TypeError(f"adapter: the path of a file or None is expected, not {adapter!r}")
        if not isinstance(concat, (bool, np.bool_)):
            raise TypeError(f"concat: a bool is expected, not {concat!r}")
        if concat and adapter is None:
            raise ValueError("concat: features before and after adaptation need adapter=...")
        if not isinstance(timeout, Real) or isinstance(timeout, bool) or not timeout > 0:
            raise ValueError(f"timeout: a number of seconds above 0 is expected, not {timeout!r}")
        if cache is True or not (cache is None or cache is False or isinstance(cache, (str, os.PathLike))):
            raise TypeError(f"cache: a folder, False or None is expected, not {cache!r}")
        given = os.fspath(name)
        options = {
            "preprocess": preprocess,
            "adapter": None if adapter is None else os.path.abspath(adapter),
            "concat": bool(concat),
            "timeout": float(timeout),
            "cache": cache,
            "n_jobs": n_jobs,
        }
        opened = _engine.Encoder.open(given, options, threads(n_jobs))
        location = os.path.abspath(given) if os.path.exists(given) else given
        self._set(opened.name, opened.digest, location, None, options)
        self._opened = opened

    @classmethod
    def _recorded(cls, name: str, digest: str, location: str, model: Path | None, options: dict[str, Any]) -> Encoder:
        """An encoder that is opened when it is used. ``model`` is the path of the model that has recorded it."""
        encoder = cls.__new__(cls)
        encoder._set(name, digest, location, None if model is None else os.path.abspath(model), options)
        return encoder

    def _moved(self, location: Path | None, adapter: Path | None) -> Encoder:
        """The encoder of a model in another place, or with its adapter in another place."""
        options = dict(self._options)
        if adapter is not None:
            options["adapter"] = os.path.abspath(adapter)
            if not os.path.isfile(adapter):
                raise FileNotFoundError(f"adapter: {os.fspath(adapter)!r}: no such file")
        elif options["adapter"] is not None:
            found = _engine.find_adapter(options["adapter"], self._model or self._location)
            options["adapter"] = os.path.abspath(found)
        if location is not None:
            return Encoder(location, **options)
        encoder = Encoder._recorded(self._name, self._digest, self._location, self._model, options)
        encoder._open()
        return encoder

    def _set(self, name: str, digest: str, location: str, model: str | None, options: dict[str, Any]) -> None:
        self._name, self._digest, self._location, self._model = name, digest, location, model
        # Pickles of earlier versions lack some of the options.
        self._options = {**_DEFAULTS, **options}
        self._opened: _engine.Encoder | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self._name

    @property
    def modality(self) -> str:
        return self._open().modality

    @property
    def dim(self) -> int:
        return self._open().dim

    @property
    def layers(self) -> int:
        return self._open().layers

    @property
    def digest(self) -> str:
        return self._digest

    @property
    def location(self) -> str:
        return self._location

    @property
    def preprocess(self) -> str | None:
        return self._options["preprocess"]

    @property
    def adapter(self) -> str | None:
        return self._options["adapter"]

    @property
    def concat(self) -> bool:
        return self._options["concat"]

    def encode(self, inputs: Iterable[Any], *, layers: Sequence[int] | None = None) -> NDArray[np.float32]:
        """Features of texts or images.

        Parameters
        ----------
        inputs : iterable
            Texts; or images, each a path, the ``bytes`` of a file, an image of PIL, or a uint8 array of shape (height, width, 3).
            Images are turned upright. Lists, arrays, columns of tables and generators can be given.
        layers : sequence of int, optional
            Layers, counted from 0. By default the last, the encoder's output.

        Returns
        -------
        ndarray of shape (n_inputs, dim), or with ``layers`` (n_inputs, n_layers, dim), float32

        Examples
        --------
        >>> import numpy as np
        >>> from loranpac import Encoder
        >>> red, blue = np.zeros((2, 32, 32, 3), dtype=np.uint8)
        >>> red[..., 0] = blue[..., 2] = 255
        >>> Encoder("image-basic").encode([red, blue]).shape
        (2, 2320)
        """
        return self._encode(inputs, "inputs", layers)

    def _encode(
        self,
        inputs: Any,
        what: str,
        layers: Sequence[int] | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> NDArray[np.float32]:
        """Features of inputs, which are called ``what`` in messages."""
        opened = self._open()
        chosen = None if layers is None else self._layers(layers)
        inputs = checked(inputs, opened.modality, what)
        length = len(inputs) if hasattr(inputs, "__len__") else None
        source = items(inputs, opened.modality, self._name, what)
        cache, workers = self._cache(), threads(self._options["n_jobs"])
        rows = opened.encode(source, length, what, chosen, cache, workers, progress)
        return rows if chosen is None else rows.reshape(len(rows), len(chosen), opened.dim)

    def _layers(self, layers: Sequence[int]) -> list[int]:
        count = self._open().layers
        chosen = list(layers) if isinstance(layers, Iterable) else []
        valid = [isinstance(layer, Integral) and not isinstance(layer, bool) and 0 <= layer < count for layer in chosen]
        if not chosen or not all(valid) or len(set(chosen)) < len(chosen):
            raise ValueError(f"layers: a list of different numbers from 0 to {count - 1} is expected, not {layers!r}")
        return [int(layer) for layer in chosen]

    def _cache(self) -> str | None:
        cache = self._options["cache"]
        if cache is None:
            cache = os.environ.get("LORANPAC_CACHE") or False
        return None if cache is False else os.path.abspath(cache)

    def _open(self) -> _engine.Encoder:
        """The encoder, opened if it has only been recorded so far."""
        with self._lock:
            if self._opened is None:
                self._opened = self._find()
            return self._opened

    def _find(self) -> _engine.Encoder:
        workers = threads(self._options["n_jobs"])
        # The address in a model from elsewhere is not contacted, but that in a pickle is.
        if self._model is None and "://" in self._location:
            opened = _engine.Encoder.open(self._location, self._options, workers)
            if opened.digest != self._digest:
                raise ValueError(f"the encoder {self._location} has changed: its digest is {opened.digest[:12]}...")
            return opened
        # Beside no model is the folder of the encoder itself.
        model = self._model or self._location
        return _engine.Encoder.find(self._location, self._digest, model, self._options, workers)

    def _identity(self) -> tuple[str, dict[str, Any]]:
        """What a model records of it: its name, and a reference."""
        options = {name: self._options[name] for name in ("preprocess", "adapter", "concat")}
        return self._name, {"digest": self._digest, "location": self._location, **options}

    def __repr__(self) -> str:
        changed = "".join(f", {name}={value!r}" for name, value in self._options.items() if value != _DEFAULTS[name])
        return f"Encoder({self._location!r}{changed})"

    def __eq__(self, other: object) -> bool:
        return self._digest == other._digest if isinstance(other, Encoder) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._name, self._digest, self._location, self._model, self._options)

    def __copy__(self) -> Encoder:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Encoder:
        return self

    def __sklearn_clone__(self) -> Encoder:
        return self


def _restored(*recorded: Any) -> Encoder:
    """The encoder of a pickle."""
    return Encoder._recorded(*recorded)

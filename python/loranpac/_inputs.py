"""Raw inputs: texts, and images as paths, files, pixels or objects of PIL."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loranpac._labels import _plain_array


def is_raw(X: Any) -> bool:
    """Whether samples are for an encoder, rather than features: texts, images, and whatever is neither."""
    if _dimensions(X) > 2:
        return True
    if not _is_list(X):
        return _is_single(X)
    first = _first(X)
    return first is None or _is_single(first) or _dimensions(first) > 1


def needs_encoder(X: Any) -> bool:
    """Whether samples are certainly texts or images."""
    return _is_single(X) or (_is_list(X) and _is_single(_first(X)))


def items(inputs: Any, modality: str, encoder: str, what: str) -> Iterator[Any]:
    """The inputs as the engine takes them: texts, or paths as texts, bytes and arrays of pixels."""
    one = _text if modality == "text" else _image
    for place, item in enumerate(inputs):
        if is_missing(item):
            raise ValueError(f"{what}[{place}] is missing ({item!r}); remove it, or fill it in")
        yield one(item, f"{what}[{place}]", encoder)


def checked(inputs: Any, modality: str, what: str) -> Any:
    """Inputs that can be iterated; one input, tables, mappings and sets are refused."""
    inputs = _plain_array(inputs)
    plural = f"a list of {modality}s"
    if _is_single(inputs):
        raise TypeError(f"{what}: {plural} is expected, not one {type(inputs).__name__}; put it into a list")
    if isinstance(inputs, (Mapping, Set)) or not isinstance(inputs, Iterable):
        raise TypeError(f"{what}: {plural} is expected, not {type(inputs).__name__}")
    if isinstance(inputs, np.ndarray) and inputs.dtype.kind == "S":
        raise TypeError(f"{what}: NumPy drops zeros at the end of bytes; give a list of bytes, or an array of objects")
    pixels = isinstance(inputs, np.ndarray) and inputs.dtype != object and inputs.ndim > 2
    if _dimensions(inputs) > 1 and not pixels:
        raise ValueError(f"{what}: {plural} is expected, not a table of shape {tuple(inputs.shape)}; give one column of it")
    return inputs


def is_missing(item: Any) -> bool:
    """Whether an item is None, NaN, or the missing value of pandas."""
    return item is None or (isinstance(item, float) and item != item) or type(item).__name__ in ("NAType", "NaTType")


def _text(item: Any, name: str, encoder: str) -> str:
    if isinstance(item, str):
        return item
    advice = ""
    if isinstance(item, (bytes, bytearray)):
        advice = "; decode it"
    elif isinstance(item, os.PathLike):
        advice = "; read the file"
    raise TypeError(f"{name}: {encoder} reads texts, not {type(item).__name__}{advice}")


def _image(item: Any, name: str, encoder: str) -> Any:
    if isinstance(item, (str, os.PathLike)):
        return os.fsdecode(item)
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item)
    if _is_pil(item):
        return _pixels_of(item)
    pixels = _plain_array(item)
    if not isinstance(pixels, np.ndarray):
        raise TypeError(
            f"{name}: {encoder} reads images (paths, bytes, objects of PIL, arrays of uint8), not {type(item).__name__}"
        )
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        found = f"{pixels.dtype} {pixels.shape}"
        raise ValueError(f"{name}: an array of pixels is uint8 with the shape (height, width, 3), not {found}")
    return np.ascontiguousarray(pixels)


def _pixels_of(image: Any) -> NDArray[np.uint8]:
    """The pixels of an image of PIL, upright, in red, green and blue."""
    try:
        from PIL import ImageOps
    except ImportError:
        pass  # An object that only looks like one of PIL has no orientation.
    else:
        if isinstance(image, ImageOps.Image.Image):
            image = ImageOps.exif_transpose(image)
    return np.ascontiguousarray(np.asarray(image.convert("RGB"), dtype=np.uint8))


def _is_pil(item: Any) -> bool:
    return all(hasattr(item, name) for name in ("mode", "size", "convert", "getbands"))


def _is_single(item: Any) -> bool:
    """Whether something is one text or one image."""
    return isinstance(item, (str, bytes, bytearray, memoryview, os.PathLike)) or _is_pil(item)


def _is_list(values: Any) -> bool:
    """Whether something is a list, an array of one dimension, or a column of a table."""
    if isinstance(values, (str, bytes, bytearray, Mapping, Set)) or not isinstance(values, Iterable):
        return False
    return hasattr(values, "__len__") and _dimensions(values) == 1


def _first(values: Any) -> Any:
    """The first item that is not missing, or None."""
    return next((item for item in values if not is_missing(item)), None)


def _dimensions(values: Any) -> int:
    """Dimensions of an array or a table; 1 for everything else."""
    shape = getattr(values, "shape", None)
    return len(shape) if isinstance(shape, tuple) else 1

"""Print small JPEG files and the pixels that PIL (libjpeg-turbo) decodes from them, as JSON.

    pip install numpy pillow
    python bench/reference/jpeg.py > crates/loranpac-encode/tests/golden/jpeg.json
"""

import base64
import io
import json

import numpy as np
from PIL import Image, features

random = np.random.default_rng(0)


def picture(width, height):
    """Waves and a little noise, so that all coefficients occur."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [127 + 90 * np.sin(x / (2 + c) + c) + 60 * np.cos(y / (3 - c) + x / 9) for c in range(3)]
    noise = random.normal(0, 12, (height, width, 3))
    return Image.fromarray(np.clip(np.stack(waves, 2) + noise, 0, 255).astype(np.uint8))


def case(name, width, height, mode="RGB", **options):
    file = io.BytesIO()
    picture(width, height).convert(mode).save(file, "JPEG", **options)
    pixels = np.asarray(Image.open(file).convert("RGB"))
    encode = lambda data: base64.b16encode(data).decode().lower()
    return {"name": name, "width": width, "height": height, "file": encode(file.getvalue()), "pixels": encode(pixels.tobytes())}


cases = [
    case("4:2:0", 19, 21, quality=80),
    case("4:2:2", 19, 9, quality=80, subsampling=1),
    case("4:4:4", 17, 9, quality=95, subsampling=0),
    case("4:2:0, two pixels wide", 2, 5, quality=80),
    case("4:2:0, three pixels", 3, 1, quality=80),
    case("progressive 4:2:0", 35, 18, quality=70, progressive=True),
    case("progressive 4:4:4", 17, 9, quality=95, subsampling=0, progressive=True),
    case("progressive grey", 9, 11, mode="L", quality=90, progressive=True),
    case("grey", 9, 11, mode="L", quality=50),
    case("restarts", 40, 18, quality=80, restart_marker_blocks=1),
    case("progressive with restarts", 40, 18, quality=80, progressive=True, restart_marker_blocks=2),
    case("CMYK", 9, 11, mode="CMYK", quality=90),
    case("best codes", 19, 21, quality=30, optimize=True),
]
print(json.dumps({"made with": f"libjpeg-turbo {features.version('libjpeg_turbo')}", "cases": cases}, separators=(",", ":")))

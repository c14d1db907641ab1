"""Print sizes and pixels of small images that PIL has resized and torchvision has cropped, as JSON.

    pip install numpy pillow torch torchvision
    python bench/reference/resize.py > crates/loranpac-encode/tests/golden/resize.json
"""

import json

import numpy as np
from PIL import Image, __version__
from torchvision import transforms

FILTERS = {"nearest": "NEAREST", "box": "BOX", "bilinear": "BILINEAR", "hamming": "HAMMING", "bicubic": "BICUBIC", "lanczos": "LANCZOS"}


def picture(width, height):
    x, y, c = np.meshgrid(np.arange(width), np.arange(height), np.arange(3), indexing="ij")
    return Image.fromarray(np.transpose((x * 37 + y * 59 + c * 101 + x * y * 7) % 256, (1, 0, 2)).astype(np.uint8))


def case(width, height, resize, crop, name):
    mode = transforms.InterpolationMode[FILTERS[name]]
    steps = transforms.Compose([transforms.Resize(resize, mode), transforms.CenterCrop(crop)])
    pixels = np.asarray(steps(picture(width, height)))
    text = resize if isinstance(resize, int) else f"{resize[0]}x{resize[1]}"
    settings = f"resize={text},crop={crop[0]}x{crop[1]},filter={name}"
    return {"width": width, "height": height, "settings": settings, "pixels": pixels.flatten().tolist()}


cases = []
for name in FILTERS:
    for width, height, resize, crop in [
        (23, 17, (5, 6), (5, 6)),  # smaller
        (5, 4, (9, 8), (9, 8)),  # larger
        (31, 7, (7, 6), (7, 6)),  # one side only
        (40, 23, 8, (5, 5)),  # the shorter side, then the middle
        (13, 40, 5, (4, 4)),
        (9, 30, 4, (7, 6)),  # padded
        (6, 11, (5, 8), (5, 8)),  # rows first
        (16, 16, (20, 12), (8, 8)),  # between two pixels
    ]:
        cases.append(case(width, height, resize, crop, name))
print(json.dumps({"made with": f"PIL {__version__}", "cases": cases}, separators=(",", ":")))

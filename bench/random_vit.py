"""A vision transformer with random weights in timm's format, to measure what encoding costs.

    python bench/random_vit.py base FOLDER        # or small, tiny; needs nothing but Python
    loranpac embed FOLDER IMAGES -o out.npz --preprocess unit --no-cache --threads 1

Its features mean nothing; the time per image is that of real weights.
"""

import array
import json
import math
import os
import random
import struct
import sys

SIZES = {"tiny": (192, 12, 3), "small": (384, 12, 6), "base": (768, 12, 12)}
PATCH, SIDE = 16, 224


def shapes(d, blocks):
    """Names and shapes of the tensors, in the order of the file."""
    yield "cls_token", (1, 1, d)
    yield "pos_embed", (1, (SIDE // PATCH) ** 2 + 1, d)
    yield "patch_embed.proj.weight", (d, 3, PATCH, PATCH)
    yield "patch_embed.proj.bias", (d,)
    for block in range(blocks):
        for name, shape in [
            ("norm1.weight", (d,)),
            ("norm1.bias", (d,)),
            ("attn.qkv.weight", (3 * d, d)),
            ("attn.qkv.bias", (3 * d,)),
            ("attn.proj.weight", (d, d)),
            ("attn.proj.bias", (d,)),
            ("norm2.weight", (d,)),
            ("norm2.bias", (d,)),
            ("mlp.fc1.weight", (4 * d, d)),
            ("mlp.fc1.bias", (4 * d,)),
            ("mlp.fc2.weight", (d, 4 * d)),
            ("mlp.fc2.bias", (d,)),
        ]:
            yield f"blocks.{block}.{name}", shape
    yield "norm.weight", (d,)
    yield "norm.bias", (d,)


def main():
    size, folder = sys.argv[1:]
    d, blocks, heads = SIZES[size]
    os.makedirs(folder, exist_ok=True)
    header, end = {}, 0
    for name, shape in shapes(d, blocks):
        start, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    generator = random.Random(0)
    # One block of numbers is used again and again: drawing 86 million takes minutes.
    numbers = array.array("f", (generator.gauss(0, 0.02) for _ in range(1 << 20)))
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes(d, blocks):
            count = math.prod(shape)
            ones = name.endswith(("norm1.weight", "norm2.weight")) or name == "norm.weight"
            data = array.array("f", [1.0]) * count if ones else (numbers * (count // len(numbers) + 1))[:count]
            file.write(data.tobytes())
    config = {"architecture": f"vit_{size}_patch{PATCH}_{SIDE}", "global_pool": "token", "model_args": {"num_heads": heads}}
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)


if __name__ == "__main__":
    main()

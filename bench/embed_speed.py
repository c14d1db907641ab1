"""Images per second of `loranpac embed` beside a PyTorch DataLoader with PIL and timm, interleaved in one run.

    pip install torch torchvision timm
    cargo build --release
    python bench/embed_speed.py IMAGES.tar [--model vit_small_patch16_224] [--rounds 2] [--most 600]

Both read the same JPEG files, resize and crop alike, and write nothing but features. Ours is timed as a whole command (start, weights,
archive, decoding, features, file) without its cache; PyTorch from the first batch on, without imports and the making of the model, with the
best of several numbers of workers, eager and compiled.
"""

import argparse
import itertools
import json
import os
import subprocess
import tarfile
import tempfile
import time

import numpy as np
import torch
import timm
from safetensors.torch import save_file
from torchvision import transforms
from torchvision.datasets.folder import pil_loader


class Images(torch.utils.data.Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.transform = transforms.Compose(
            [
                transforms.Resize(248, interpolation=transforms.InterpolationMode.BICUBIC),
                transforms.CenterCrop(224),
                transforms.ToTensor(),
                transforms.Normalize([0.5] * 3, [0.5] * 3),
            ]
        )

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return self.transform(pil_loader(self.paths[i]))


def pytorch(model, paths, workers, batch=32):
    loader = torch.utils.data.DataLoader(Images(paths), batch_size=batch, num_workers=workers)
    start = time.perf_counter()
    with torch.inference_mode():
        features = np.concatenate([model(batch).numpy() for batch in loader])
    return time.perf_counter() - start, features


def ours(binary, encoder, archive, out, threads):
    start = time.perf_counter()
    environment = os.environ | {"RAYON_NUM_THREADS": str(threads)}
    command = [binary, "embed", encoder, archive, "-o", out, "--no-cache", "--preprocess", "half", "--quiet"]
    subprocess.run(command, check=True, env=environment)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("images")
    parser.add_argument("--binary", default="target/release/loranpac")
    parser.add_argument("--model", default="vit_small_patch16_224")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--most", type=int, default=600, help="images; 0: all")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = timm.create_model(args.model, num_classes=0).eval()
    with tempfile.TemporaryDirectory() as folder:
        encoder = os.path.join(folder, "encoder")
        os.makedirs(encoder)
        save_file(model.state_dict(), os.path.join(encoder, "model.safetensors"))
        with open(os.path.join(encoder, "config.json"), "w") as file:
            json.dump({"architecture": args.model, "global_pool": "token"}, file)
        # Evenly spaced files of the archive, in its order, as an archive of their own and as files.
        archive = os.path.join(folder, "images.tar")
        with tarfile.open(args.images) as source:
            members = [member for member in source if member.isfile()]
            step = max(1, len(members) // args.most) if args.most else 1
            members = members[::step]
            source.extractall(folder, members=members, filter="data")
        with tarfile.open(archive, "w") as target:
            for member in members:
                target.add(os.path.join(folder, member.name), member.name)
        paths = [os.path.join(folder, member.name) for member in members]
        models = {"eager": model}
        try:
            compiled = torch.compile(model, dynamic=False)
            with torch.inference_mode():
                compiled(torch.zeros(32, 3, 224, 224))
            models["compiled"] = compiled
            # A last batch of another size is not compiled again.
            paths = paths[: len(paths) // 32 * 32]
        except Exception as error:
            print(f"torch.compile does not work here: {type(error).__name__}")
        best, settings = {}, list(itertools.product(models, [0, 1, 2]))
        out = os.path.join(folder, "features.npz")
        for _ in range(args.rounds):
            seconds = ours(args.binary, encoder, archive, out, args.threads) / len(members)
            best["ours"] = min(best.get("ours", seconds), seconds)
            for kind, workers in settings:
                seconds, features = pytorch(models[kind], paths, workers)
                name = f"PyTorch, {kind}, {workers} workers"
                best[name] = min(best.get(name, seconds), seconds / len(paths))
            # Only the fastest of PyTorch's settings is worth another round.
            ranked = sorted((best[f"PyTorch, {kind}, {workers} workers"], kind, workers) for kind, workers in settings)
            settings = [(kind, workers) for _, kind, workers in ranked[:2]]
        with np.load(out) as file:
            found = {str(name): row for split in ("train", "test") for name, row in zip(file[f"name_{split}"], file[f"x_{split}"])}
        by_end = {name.split("/")[-1]: row for name, row in found.items()}
        rows = np.stack([by_end[os.path.basename(path)] for path in paths])
        difference = np.abs(rows - features).max() / np.abs(features).max()
        fastest = min(seconds for name, seconds in best.items() if name != "ours")
        print(f"{args.model}, {len(members)} images (largest difference {difference:.1e} of the largest feature)")
        for name, seconds in best.items():
            print(f"  {name:32} {1 / seconds:7.2f} images/s")
        print(f"ours: {fastest / best['ours']:.2f} times the images per second of PyTorch's best")


if __name__ == "__main__":
    main()

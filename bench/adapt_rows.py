"""Every method that adapts the encoder, from images to a table, on a ViT-Ti with random weights.

    python bench/adapt_rows.py RAW WORK [--sets cub40,cifar100] [--epochs 2] [--train 6] [--test 4] [--rows adam:adapter,l2p:]

RAW has cub40-images.tar and cifar100-images.tar. WORK takes a few images of each class, the encoder, and the cache of features. Adapters are removed
before each row, so that its time includes its training. The weights are random: the table shows that all rows run and what they cost. Its
accuracies mean nothing. A stream has five tasks, and each training --epochs epochs.
"""

import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile

# Method, module, and further options. Rows of methods that the program does not have are left out with a note.
ROWS = [
    ("adam", "adapter", []),
    ("adam", "vpt-deep", []),
    ("adam", "vpt-shallow", []),
    ("adam", "ssf", []),
    ("ease", "adapter", []),
    ("l2p", "", []),
    ("dualprompt", "", []),
    ("codaprompt", "", []),
    ("simplecil", "adapter", []),
    ("ranpac", "adapter", ["--width", "2000"]),
    ("loranpac", "adapter", ["--width", "2000"]),
    ("loranpac-soft", "adapter", ["--width", "2000"]),
    ("loranpac-soft", "adapter", ["--width", "infinite"]),
]

PROMPTS = ["l2p", "dualprompt", "codaprompt"]


def small_set(archive, folder, train, test):
    """The first images of each class of an archive NAME/{train,test}/CLASS/FILE, as a folder."""
    if folder.exists():
        return
    made, counts = folder.with_name(folder.name + ".partial"), collections.Counter()
    shutil.rmtree(made, ignore_errors=True)
    with tarfile.open(archive) as tar:
        for member in sorted((m for m in tar.getmembers() if m.isfile()), key=lambda m: m.name):
            split, label, name = pathlib.PurePosixPath(member.name).parts[-3:]
            counts[split, label] += 1
            if counts[split, label] <= {"train": train, "test": test}[split]:
                place = made / split / label / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(tar.extractfile(member).read())
    made.rename(folder)


def random_vit(folder):
    """A ViT-Ti with random weights."""
    if not folder.exists():
        script = pathlib.Path(__file__).parent / "random_vit.py"
        subprocess.run([sys.executable, script, "tiny", folder], check=True)


def run(args, data, encoder, cache, method, module, more):
    """One run of the program, as JSON."""
    classes = len(list((data / "train").iterdir()))
    command = [args.binary, "run", "--data", data, "--encoder", encoder, "--preprocess", "unit", "--cache", cache]
    command += ["--method", method, "--inc", str(classes // 5), "--eval", "final", "--threads", str(args.threads), "--quiet", "--json", "-", *more]
    if module:
        command += ["--adapt", module, "--adapt-epochs", str(args.epochs)]
    if method in PROMPTS:
        command += ["--set", f"epochs={args.epochs}"]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["runs"]


def known_methods(binary):
    text = subprocess.run([binary, "run", "--help"], check=True, capture_output=True, text=True).stdout
    return {word for line in text.splitlines() for word in line.split()[:1]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("raw", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--binary", default="target/release/loranpac")
    parser.add_argument("--sets", default="cub40,cifar100")
    parser.add_argument("--rows", default="", help="METHOD:MODULE, separated by commas; all by default")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--train", type=int, default=6, help="training images of each class")
    parser.add_argument("--test", type=int, default=4, help="test images of each class")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    encoder, cache = args.work / "vit_tiny", args.work / "cache"
    random_vit(encoder)
    known, wanted = known_methods(args.binary), [row for row in args.rows.split(",") if row]
    rows = [row for row in ROWS if not wanted or f"{row[0]}:{row[1]}" in wanted]
    for method in {row[0] for row in rows} - known:
        print(f"{method} is left out: the program does not have it", file=sys.stderr)
    sets = args.sets.split(",")
    for name in sets:
        small_set(args.raw / f"{name}-images.tar", args.work / f"{name}-{args.train}-{args.test}", args.train, args.test)
    print("| method | module | " + " | ".join(f"{name} % | adapt s | learn s" for name in sets) + " |")
    print("|---|---|" + "---:|" * (3 * len(sets)))
    for method, module, more in (row for row in rows if row[0] in known):
        cells = []
        for name in sets:
            data = args.work / f"{name}-{args.train}-{args.test}"
            # Features before adaptation come from the cache.
            run(args, data, encoder, cache, "simplecil", "", [])
            shutil.rmtree(cache / "adapters", ignore_errors=True)
            (found,) = run(args, data, encoder, cache, method, module, more)
            learn = sum(task["learn_seconds"] + (task["weights_seconds"] or 0) for task in found["tasks"])
            cells += [f"{found['final_accuracy_samples']:.1f}", f"{found.get('adapt_seconds') or 0:.0f}", f"{learn:.1f}"]
        title = method + (", infinite width" if "infinite" in more else "")
        print(f"| {title} | {module or '-'} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

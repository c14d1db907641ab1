"""Do tests notice mistakes? One mistake at a time is made in a clone of the last commit, and the tests must fail, or exceed
the time limit.

    python bench/mutants.py                # the theory: one line per mistake; takes ten minutes on two cores
    python bench/mutants.py sequences      # defects of version 0.1.0, put back: do random sequences of operations find them?
    python bench/mutants.py --check        # only checks that every mistake applies to the sources as they are

Ends with an error if a mistake was missed, does not compile, or does not apply: each of its texts must stand exactly once in
its file. Needs cargo, and git but for --check. Compiles in CARGO_TARGET_DIR, or in target/.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent.parent

# (file under crates/loranpac/src, what stands there, the mistake)
THEORY = [
    ("certificate/mod.rs", "let before = past.lost + past.dropped;", "let before = 0.9 * past.lost + past.dropped;"),
    ("certificate/mod.rs", "latest.largest.max(facts.cut)", "latest.largest.min(facts.cut)"),
    ("certificate/mod.rs", "accumulative_error: before + largest_cut", "accumulative_error: before"),
    ("certificate/mod.rs", "spectrum.smallest_kept / past.largest)", "spectrum.smallest_kept / past.lost)"),
    ("certificate/mod.rs", "if ledger.semidefinite { past.lost }", "if ledger.semidefinite { 0.0 }"),
    ("certificate/mod.rs", "if latest.directions > 0 {", "if latest.directions > 9999 {"),
    ("certificate/mod.rs", "(spectrum.sum + latest.sum) / spectrum.largest", "spectrum.sum / spectrum.largest"),
    ("certificate/mod.rs", ".copied().max().unwrap_or(0)", ".copied().min().unwrap_or(0)"),
    ("certificate/mod.rs", "past.lost / spectrum.smallest_kept", "past.lost / spectrum.largest"),
    ("certificate/mod.rs", "&& ledger.semidefinite", ""),
    ("certificate/bounds.rs", "+ self.before * ratio * ratio", ""),
    ("certificate/bounds.rs", "self.samples - self.kept + self.cuts", "self.samples + self.cuts"),
    ("certificate/bounds.rs", "+ 2.0 * self.inverse_gamma) * self.directions", "+ self.inverse_gamma) * self.directions"),
    ("certificate/bounds.rs", "* (1.0 + (self.cuts * self.inverse_gamma).powi(2))", ""),
    ("certificate/bounds.rs", "covariance_gap * directions / self.smallest_kept", "covariance_gap * directions"),
    ("certificate/bounds.rs", ".min(self.cuts as f64 * self.kept as f64)", ""),
    ("certificate/bounds.rs", "(1.0 - SQRT_2.recip()) * gap", "1.0 * gap"),
    ("certificate/bounds.rs", "SQRT_2 * terms.before / gap", "0.01 * terms.before / gap"),
    ("certificate/bounds.rs", "space + terms.cuts * terms.inverse_gamma", "space"),
    ("certificate/bounds.rs", "(4.0 * truth.powi(2) * terms.bias()", "(2.0 * truth.powi(2) * terms.bias()"),
    ("certificate/bounds.rs", "test_variance(given.covariance_gap) + variance)", "test_variance(given.covariance_gap))"),
    ("statistics/mod.rs", "self.lost += cut.largest;", "self.lost += cut.smallest;"),
    ("statistics/mod.rs", "self.largest = self.largest.max(cut.largest);", "self.largest = cut.largest;"),
    ("statistics/mod.rs", "self.removed += cut.directions;", "self.removed += 1;"),
    ("statistics/mod.rs", "self.losses.capped += cut.directions;", ""),
    ("statistics/mod.rs", "left * (2.0 * norm + left)", "0.0 * left * norm"),
    ("filter/mod.rs", "let lost = stats.losses().lost;", "let lost = 0.5 * stats.losses().lost;"),
    ("spectrum.rs", "sum_from_kept: sum(&mu[k - 1..])", "sum_from_kept: sum(&mu[k..])"),
]


# What it is called, and changes of files under crates/: (file, what stands there, the mistake).
SEQUENCES = [
    (
        "1: tensors are not aligned, and such files are refused",
        [
            ("loranpac-store/src/segment.rs", "    tensors.sort_by_key(|tensor| std::cmp::Reverse(tensor.size));\n", "    tensors.rotate_left(0);\n"),
            ("loranpac-store/src/segment.rs", "count: rows * columns, copied: true });", "count: rows * columns, copied: true }).and_then(|_| Err(self.damaged(format!(\"tensor {name} is not aligned\"))));"),
            ("loranpac-store/src/commit.rs", "    load::check(&Files::open(draft.folder, &draft.manifest)?, &draft.manifest)?;\n", ""),
        ],
    ),
    (
        "2: samples without a residual make a loss that is not a number, and manifests are not read back",
        [
            ("loranpac/src/orthonormalise.rs", "(largest.sqrt() <= drop).then(", "(largest.sqrt() < 0.0 * drop).then("),
            ("loranpac-store/src/manifest/file.rs", "            Err(error) => Err(refused(error.to_string())),\n", "            Err(_) => Ok(bytes),\n"),
        ],
    ),
    ("2: the same, but manifests are read back", [("loranpac/src/orthonormalise.rs", "(largest.sqrt() <= drop).then(", "(largest.sqrt() < 0.0 * drop).then(")]),
    (
        "3: edits are applied twice",
        [("loranpac-store/src/edit.rs", "        self.edits.iter().find(same)\n", "        self.edits.iter().find(same).filter(|_| false)\n")],
    ),
    (
        "3: samples that cannot be checked leave exactness",
        [("loranpac/src/certificate/mod.rs", "            assumed: past.assumed,\n", "            assumed: 0 * past.assumed,\n")],
    ),
    (
        "5: a merged model is built in its place",
        [("loranpac-store/src/folder.rs", "let folder = hidden(place, \"partial\").ok_or_else(", "let folder = hidden(place, \"partial\").map(|_| place.to_owned()).ok_or_else(")],
    ),
    (
        "a killed rollback leaves a version beyond those to keep",
        [("loranpac-store/src/history.rs", "                let _ = commit::collect(&*disk, folder, &manifest);\n", "")],
    ),
]


class Suite(NamedTuple):
    """Tests, and mistakes that they should notice."""

    package: str
    test: str
    environment: dict[str, str]
    mistakes: list[tuple[str, list[tuple[str, str, str]]]]


SUITES = {
    "theory": Suite(
        "loranpac",
        "theory",
        {},
        [(f"{name} | {right} -> {wrong or '(nothing)'}", [(f"loranpac/src/{name}", right, wrong)]) for name, right, wrong in THEORY],
    ),
    "sequences": Suite("loranpac-cli", "sequences", {"LORANPAC_SEQUENCES": "1000", "RUST_BACKTRACE": "0"}, SEQUENCES),
}


def unmatched(root: pathlib.Path, suite: Suite) -> list[str]:
    """Describes every mistake that cannot be made."""
    found = []
    for _, changes in suite.mistakes:
        for name, right, wrong in changes:
            path = root / "crates" / name
            if not path.is_file():
                found.append(f"{name} does not exist: {right!r}")
            elif (times := path.read_text(encoding="utf-8").count(right)) != 1:
                found.append(f"{name} has {right!r} {times} times, not once")
            elif right == wrong:
                found.append(f"{name}: {right!r} is replaced by itself")
    return found


def compiled(root: pathlib.Path, target: pathlib.Path, suite: Suite) -> pathlib.Path | None:
    """The program with the tests, or None if it does not compile."""
    command = ["cargo", "test", "--quiet", "-p", suite.package, "--test", suite.test, "--no-run", "--message-format", "json"]
    result = subprocess.run(
        command, cwd=root, env={**os.environ, "CARGO_TARGET_DIR": str(target)}, stdout=subprocess.PIPE, text=True
    )
    if result.returncode != 0:
        return None
    messages = map(json.loads, result.stdout.splitlines())
    tests = {m["executable"] for m in messages if m.get("executable") and m["target"]["kind"] == ["test"]}
    (program,) = tests
    return pathlib.Path(program)


def fails(program: pathlib.Path, root: pathlib.Path, suite: Suite, limit: float) -> str | None:
    """How the tests notice a mistake; None if they pass."""
    try:
        result = subprocess.run(
            [program, "--quiet"],
            cwd=root / "crates" / suite.package,
            env={**os.environ, **suite.environment},
            capture_output=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return f"after {limit:.0f} seconds"
    return None if result.returncode == 0 else "by a failed test"


def run(suite: Suite, limit: float) -> None:
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE / "target")).resolve()
    # Always the same folder, so that a second run finds everything compiled.
    root = target / "mutants"
    shutil.rmtree(root, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", str(HERE), str(root)], check=True)
    demand_match(root, suite)
    program = compiled(root, target, suite)
    if program is None or fails(program, root, suite, limit):
        sys.exit("the tests fail without a mistake")
    missed, broken = [], []
    for line, changes in suite.mistakes:
        texts = {name: (root / "crates" / name).read_text(encoding="utf-8") for name, _, _ in changes}
        for name, right, wrong in changes:
            path = root / "crates" / name
            path.write_text(path.read_text(encoding="utf-8").replace(right, wrong), encoding="utf-8")
        program = compiled(root, target, suite)
        how = program and fails(program, root, suite, limit)
        for name, text in texts.items():
            (root / "crates" / name).write_text(text, encoding="utf-8")
        if program is None:
            broken.append(line)
        elif how is None:
            missed.append(line)
        print("BROKEN " if program is None else "noticed" if how else "MISSED ", line, f"({how})" if how else "", flush=True)
    shutil.rmtree(root)
    noticed = len(suite.mistakes) - len(missed) - len(broken)
    print(f"{noticed} of {len(suite.mistakes)} mistakes noticed")
    told = [f"missed: {line}" for line in missed] + [f"does not compile, mend {__file__}: {line}" for line in broken]
    if told:
        sys.exit("\n".join(told))


def demand_match(root: pathlib.Path, suite: Suite) -> None:
    if found := unmatched(root, suite):
        sys.exit("\n".join([f"{len(found)} changes do not apply:", *found]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Do tests notice mistakes?")
    parser.add_argument("suite", nargs="?", choices=list(SUITES), default="theory", help="the tests")
    parser.add_argument("--check", action="store_true", help="only check that every mistake of every suite applies")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="for the tests with one mistake")
    arguments = parser.parse_args()
    for suite in SUITES.values():
        demand_match(HERE, suite)
    if arguments.check:
        print(f"all {sum(len(suite.mistakes) for suite in SUITES.values())} mistakes apply")
    else:
        run(SUITES[arguments.suite], arguments.limit)


if __name__ == "__main__":
    main()

"""Do the tests of the theory notice mistakes? One mistake at a time is made in a copy of the project, and
`cargo test -p loranpac --test theory` must fail.

    python bench/mutants.py

Prints one line per mistake, and ends with an error if one was not noticed. Needs git and cargo; takes a few minutes.
"""

import pathlib
import subprocess
import sys
import tempfile

# (file under crates/loranpac/src, what stands there, the mistake)
MISTAKES = [
    ("certificate/mod.rs", "let before = past.lost + past.dropped;", "let before = 0.9 * past.lost + past.dropped;"),
    ("certificate/mod.rs", "latest.largest.max(facts.cut)", "latest.largest.min(facts.cut)"),
    ("certificate/mod.rs", "accumulative_error: before + largest_cut", "accumulative_error: before"),
    ("certificate/mod.rs", "spectrum.smallest_kept / past.largest)", "spectrum.smallest_kept / past.lost)"),
    ("certificate/mod.rs", "- largest_cut - past.lost - 2.0", "- largest_cut - 2.0"),
    ("certificate/mod.rs", "if latest.directions > 0 {", "if latest.directions > 9999 {"),
    ("certificate/mod.rs", "(spectrum.sum + latest.sum) / spectrum.largest", "spectrum.sum / spectrum.largest"),
    ("certificate/mod.rs", ".copied().max().unwrap_or(0)", ".copied().min().unwrap_or(0)"),
    ("certificate/mod.rs", "past.lost / spectrum.smallest_kept", "past.lost / spectrum.largest"),
    ("certificate/mod.rs", "&& !stats.keeps_null_directions()", ""),
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
    ("filter.rs", "let lost = stats.losses().lost;", "let lost = 0.5 * stats.losses().lost;"),
    ("filter.rs", "sum_from_kept: sum(&mu[k - 1..])", "sum_from_kept: sum(&mu[k..])"),
]


def noticed(root: pathlib.Path) -> bool:
    command = ["cargo", "test", "--quiet", "-p", "loranpac", "--test", "theory"]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if "could not compile" in result.stderr:
        sys.exit(result.stderr)
    return result.returncode != 0


def main() -> None:
    here = pathlib.Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "loranpac"
        subprocess.run(["git", "clone", "--quiet", str(here), str(root)], check=True)
        if noticed(root):
            sys.exit("the tests fail without a mistake")
        missed = 0
        for name, right, wrong in MISTAKES:
            path = root / "crates/loranpac/src" / name
            text = path.read_text()
            if text.count(right) != 1:
                sys.exit(f"{name} has {right!r} {text.count(right)} times, not once")
            path.write_text(text.replace(right, wrong))
            seen = noticed(root)
            path.write_text(text)
            missed += not seen
            print("noticed" if seen else "MISSED ", name, "|", right, "->", wrong or "(nothing)", flush=True)
        print(f"{len(MISTAKES) - missed} of {len(MISTAKES)} mistakes noticed")
        sys.exit(missed > 0)


if __name__ == "__main__":
    main()

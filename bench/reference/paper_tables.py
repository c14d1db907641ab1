"""The paper's tables as data (crates/loranpac-bench/paper/tables), read from the paper's LaTeX source.

    python bench/reference/paper_tables.py PAPER.tex OUT_DIR

Every CSV file has one line per printed number, in the columns of `Cell`; a column that does not apply is empty.
Numbers stay as printed ("54.0", "36.6"), except in the table of hyperparameters, where 25% is 0.25 and 10^5 is 100000.
Averages over data sets are left out: they can be computed. A table of another shape than expected is an error.
"""

import csv
import re
import sys
from collections import namedtuple
from pathlib import Path

COLUMNS = "data backbone method setting base inc width metric value spread".split()
Cell = namedtuple("Cell", COLUMNS, defaults=[""] * len(COLUMNS))
DATA = "cifar100 imagenet-r imagenet-a cub200 objectnet omnibenchmark vtab stanfordcars".split()
DATA += "core50 cddb-hard domainnet".split()
OURS = {"LoRanPAC": "loranpac", "RanPAC": "ranpac", "SimpleCIL": "simplecil"}
OURS |= {r"LC (\bX_1:T)": "lc-x", r"LC (\bH_1:T)": "lc-h"}
THEIRS = {"L2P", "DualPrompt", "CodaPrompt", "ADAM", "EASE"}
ADAPTATION = {"": "", r"^\dagger": "adaptation=ranpac", "^*": "adaptation=ease"}
WIDTH = {"ranpac": "10000", "loranpac": "100000", "lc-h": "100000"}  # unless the row says E=...
TITLES = {"Final Accuracy": "final", "Total Accuracy": "total"}
LIFT = {
    r"\bX_t": ("lift=identity", ""),
    r"\relu(\bX_t)": ("lift=relu", ""),
    r"\bP\bX_t": ("lift=random", "100000"),
    r"\bH_t": ("lift=relu-random", "100000"),
}
VIT = "vit_base_patch16_224"


def expect(got, want, what):
    if got != want:
        raise ValueError(f"{what}: expected {want!r}, found {got!r}")


def table_rows(tex, mark):
    """The rows of the one table that contains `mark`, each a list of plain cells."""
    tables = [t for t in re.findall(r"\\begin\{table\}.*?\\end\{table\}", tex, re.S) if mark in t]
    expect(len(tables), 1, f"tables with {mark}")
    body = tables[0].split(r"\toprule")[1].split(r"\bottomrule")[0]
    rows = [[plain(cell) for cell in row.split("&")] for row in body.split(r"\\")]
    return [row for row in rows if row != [""]]


def plain(cell):
    """A cell without layout: \\textbf{70.12$_{\\pm0.39}$} is 70.12_\\pm0.39."""
    cell = re.sub(r"\\(midrule|cmidrule\(lr\)\{.*?\}|rowcolor(\[gray\])?\{.*?\})", "", cell)
    cell = re.sub(r"\\(multicolumn\{\d+\}\{.\}|textcolor\{.*?\}|textbf|textit|texttt)", "", cell)
    return " ".join(re.sub(r"[{}$]", "", cell).split())


def grid(rows):
    """(title, label, [(column, text)]) per row below the header, without averages; a title is a row of one cell."""
    columns, title = rows[0], ""
    for row in rows[1:]:
        if len(row) == 1:
            title = row[0]
            continue
        expect(len(row), len(columns), f"cells in row {row[0]}")
        yield title, row[0], [(c, text) for c, text in zip(columns[1:], row[1:]) if c != "Avg."]


def data_set(text):
    name = text.removesuffix(r"^\dagger").lower()
    name = {"cub": "cub200", "cub-200": "cub200"}.get(name, name)
    if name not in DATA:
        raise ValueError(f"unknown data set {text!r}")
    return name


def method(label):
    """The fields that a row's label sets: LoRanPAC^\\dagger, LoRanPAC (E=10K), LC (\\bX_1:T)."""
    name, mark, thousands = re.fullmatch(r"(.*?)(\^\\dagger|\^\*)?(?: \(E=(\d+)K\))?", label).groups("")
    if name not in OURS and name not in THEIRS:
        raise ValueError(f"unknown method {label!r}")
    name = OURS.get(name, name)
    width = thousands + "000" if thousands else WIDTH.get(name, "")
    return {"method": name, "setting": ADAPTATION[mark], "width": width}


def number(text):
    """The fields of a printed number: 88.18 or 88.19_\\pm0.05."""
    match = re.fullmatch(r"(?P<value>\d+(?:\.\d+)?)(?:_\\pm(?P<spread>\d+(?:\.\d+)?))?", text)
    if not match:
        raise ValueError(f"not a number: {text!r}")
    return match.groupdict("")


def class_incremental(rows, backbone=VIT):
    """Two parts of four data sets; every method has three increments per data set, a joint classifier one number."""
    for label, *cells in rows:
        if label.startswith("(Part"):
            averages = cells.count("Avg.")  # no column of them in the table with spreads
        cells = cells[: len(cells) - averages]
        if label.startswith("(Part"):
            heads = [re.fullmatch(r"(\S+) \(B-(\d+)\)", head).groups() for head in cells]
            expect(len(heads), 4, f"data sets of {label}")
            continue
        if label == "":
            expect(cells, ["Inc-5", "Inc-10", "Inc-20"] * 4, "increments")
            continue
        fields = dict(method(label), backbone=backbone, metric="final")
        if label.startswith("LC"):
            places = [{"data": data_set(d)} for d, _ in heads]
        else:
            places = [{"data": data_set(d), "base": b, "inc": i} for d, b in heads for i in ("5", "10", "20")]
        expect(len(cells), len(places), f"numbers of {label}")
        for place, text in zip(places, cells):
            yield Cell(**place, **fields, **number(text))


def by_data_set(rows, metric="", base="", inc=""):
    """One column per data set. Without a metric, the titles in the table say which."""
    for title, label, cells in grid(rows):
        fields = {"metric": metric or TITLES[title], "base": base, "inc": inc, **method(label)}
        for column, text in cells:
            yield Cell(data=data_set(column), backbone=VIT, **fields, **number(text))


def learning_rates(rows):
    (_, *methods), rates = rows[:2]
    expect(rates[1:], ["0.001", "0.005", "0.01", "0.02", "0.03", "Max"] * 2, "learning rates")
    for title, label, cells in grid(rows[1:]):
        backbone = re.search(r"\((vit.*)\):", title).group(1).replace(r"\_", "_")
        for i, (rate, text) in enumerate(cells):
            fields = dict(method(methods[i // 6]), setting="rate=" + rate.replace("Max", "best"))
            yield Cell(data=data_set(label), backbone=backbone, metric="final", **fields, **number(text))


def ablation(rows):
    names = {r"\refeq:1layer-min-norm": "min-norm", r"\refeq:LoRanPAC": "loranpac"}
    for title, label, cells in grid(rows):
        name = names[title.removeprefix("Final Accuracy of ")]
        setting, width = LIFT[label.removesuffix(" (default)")]
        for column, text in ((c, t) for c, t in cells if t != "N.A."):
            data, base, inc = re.fullmatch(r"(\S+) \(B-(\d+), Inc-(\d+)\)", column).groups()
            place = {"data": data_set(data), "backbone": VIT, "base": base, "inc": inc}
            yield Cell(**place, method=name, setting=setting, width=width, metric="final", **number(text))


def hyperparameters(rows):
    for _, label, cells in grid(rows):
        *others, rank = (text for _, text in cells)
        expect(others, [r"25\%", "10^5"], f"hyperparameters of {label}")
        fields = {"data": data_set(label), "backbone": VIT, **method("LoRanPAC")}
        for metric, text in (("truncate", "0.25"), ("width", "100000"), ("max-rank", rank)):
            yield Cell(**fields, metric=metric, **number(text))


# File, what only its table contains, the number of its cells, and how it is read.
TABLES = [
    ("cil-vit", r"\label{tab:CIL-ViT}", 280, class_incremental),
    ("cil-vit-inc1", r"\label{tab:CIL-ViT-inc1}", 32, lambda rows: by_data_set(rows, base="0", inc="1")),
    ("cil-vit-in21k", r"\label{tab:CIL-ViT-in21k}", 136, lambda rows: class_incremental(rows, VIT + "_in21k")),
    ("cil-vit-multiple", r"\label{tab:CIL-ViT-multiple}", 264, class_incremental),
    ("cil-vit-widths", r"\label{tab:CIL-ViT-E=10000}", 96, class_incremental),
    ("running-times", "Running times (in minutes)", 16, lambda rows: by_data_set(rows, "minutes", inc="5")),
    ("dil-vit", r"\label{tab:DIL-ViT}", 6, lambda rows: by_data_set(rows, "final")),
    ("lc-rates", r"\label{tab:LC}", 192, learning_rates),
    ("ablation-rfm", r"\label{tab:ablation-RFM}", 30, ablation),
    ("hyperparameters", r"\label{tab:hyperparameters}", 24, hyperparameters),
]


def main(paper, out):
    tex = re.sub(r"(?<!\\)%.*", "", Path(paper).read_text(encoding="utf-8"))  # without comments
    for name, mark, count, read in TABLES:
        cells = list(read(table_rows(tex, mark)))
        expect(len(cells), count, f"cells of {name}")
        expect(len({cell[:-2] for cell in cells}), count, f"distinct cells of {name}")
        with open(Path(out) / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *cells])
        print(f"{name}: {count}")


if __name__ == "__main__":
    main(*sys.argv[1:])

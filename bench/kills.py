"""What does a kill leave? Every command is killed (SIGKILL) at every system call with which it changes files.

    python bench/kills.py target/release/loranpac               # prints a Markdown table; takes minutes on two cores
    python bench/kills.py target/release/loranpac --command merge --form infinite

After each kill every model must be as before the command or as after it (`inspect`, `predict --scores`) and must verify;
the same command again must succeed, give what an undisturbed run gives, and leave no file that such a run does not leave.
Ends with an error if that fails anywhere. Needs Linux and strace.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile

FORMS = {
    "width 17": ["--width", "17"],
    "width 16": ["--width", "16"],
    "capped": ["--width", "800", "--max-rank", "5"],
    "infinite": ["--width", "infinite"],
    "infinite, capped": ["--width", "infinite", "--max-rank", "5"],
}
COMMANDS = {
    "init": ["init", "new.lrp", "--dim", "3"],
    "learn": ["learn", "m.lrp", "third.csv", "--skip"],
    "merge": ["merge", "m.lrp", "other.lrp", "-o", "new.lrp"],
    "forget": ["forget", "m.lrp", "z"],
    "rename": ["rename", "m.lrp", "x", "u"],
    "relabel": ["relabel", "m.lrp", "some.csv", "--to", "x"],
    "unlearn": ["unlearn", "m.lrp", "some.csv"],
    "calibrate": ["calibrate", "m.lrp", "test.csv"],
    "export .safetensors": ["export", "m.lrp", "out.safetensors"],
    "export .onnx": ["export", "m.lrp", "out.onnx"],
    "predict -o": ["predict", "m.lrp", "test.csv", "-o", "out.csv"],
    "rollback --to": ["rollback", "m.lrp", "--to", "1"],
}
# Calls that change files; a question mark allows for systems that do not have a call.
CHANGING = """write pwrite64 writev pwritev pwritev2 rename renameat renameat2 unlink unlinkat mkdir mkdirat rmdir fsync
fdatasync link linkat symlink symlinkat ftruncate truncate fallocate copy_file_range sendfile""".split()
OPENING = "open openat creat".split()
TRACED = ",".join("?" + name for name in [*CHANGING, *OPENING, "exit_group"])
# A basis is compressed when it exceeds its cap by a chunk, which is 384 samples: with so many, every task leads to that.
MANY, FEW = 450, 8
# How often a kill is tried if the process made other calls than before.
ATTEMPTS = 10
OUTPUTS = ["out.safetensors", "out.onnx", "out.csv"]
FAULTS = ["damaged", "lost", "blocked", "different", "files left"]


@dataclasses.dataclass(frozen=True)
class Call:
    """A traced call: its thread, its name, the file that it opens, if it does, and the how many-th such call it is."""

    thread: int
    name: str
    opens: str
    number: int
    changes: bool


def calls(log: pathlib.Path, folder: pathlib.Path) -> list[Call]:
    """The calls in a log. Paths are relative to the folder."""
    threads: dict[str, int] = {}
    numbers: collections.Counter[tuple[str, str, str]] = collections.Counter()
    found = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if match := re.match(r"(\d+) +(\w+)\((.*)", line):
            process, name, rest = match.groups()
            path = re.search('"([^"]*)"(.*)', rest) if name in OPENING else None
            opens = path[1].removeprefix(f"{folder}/") if path else ""
            numbers[process, name, opens] += 1
            thread = threads.setdefault(process, len(threads))
            # The first three files are the terminal.
            changes = "O_CREAT" in path[2] if path else name in CHANGING and not re.match("[012],", rest)
            found.append(Call(thread, name, opens, numbers[process, name, opens], changes))
    return found


def kill_points(trace: list[Call]) -> list[tuple[int, Call]]:
    """How many changes come before each kill, and the call at which it happens; the last is the end of the program."""
    points, done, seen = [], 0, set()
    for call in trace:
        key = call.name, call.opens, call.number
        if call.changes or call.name == "exit_group":
            # strace counts the calls of each thread for itself, and kills at the first that gets there.
            if key in seen:
                sys.exit(f"another thread makes such a call before: {call}")
            points.append((done, call))
            done += call.changes
        if call.name == "exit_group":
            # A thread that is ended by it can appear to make the same call.
            break
        seen.add(key)
    return points


def samples(path: pathlib.Path, rows: int, classes: str, seed: int) -> None:
    numbers = random.Random(seed)
    lines = ["label,a,b,c"]
    for i in range(rows):
        label = classes[i % len(classes)]
        lines.append(label + "," + ",".join(f"{numbers.gauss(ord(label) % 3, 1):.4f}" for _ in range(3)))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(program: pathlib.Path, folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def prepare(program: pathlib.Path, folder: pathlib.Path, form: str) -> None:
    """Two models and files of samples."""
    rows = MANY if "capped" in form else FEW
    for seed, (name, count, classes) in enumerate(
        [("first", rows, "xy"), ("second", rows, "yz"), ("third", rows, "zw"), ("fourth", rows, "xv"), ("test", 12, "xyz")]
    ):
        samples(folder / f"{name}.csv", count, classes, seed)
    lines = (folder / "second.csv").read_text(encoding="utf-8").splitlines()
    # Of the last samples, since a capped model of infinite width keeps few of the first.
    (folder / "some.csv").write_text("\n".join(lines[:1] + lines[-2:]) + "\n", encoding="utf-8")
    for model, files in [("m.lrp", ["first.csv", "second.csv"]), ("other.lrp", ["fourth.csv"])]:
        for arguments in [
            ["init", model, "--dim", "3", "--keep", "3", *FORMS[form]],
            *(["learn", model, file, "--threads", "1"] for file in files),
        ]:
            result = run(program, folder, *arguments)
            if result.returncode != 0:
                sys.exit(f"{form}: {' '.join(arguments)}: {result.stderr}")
    for name in OUTPUTS:
        (folder / name).write_text("an earlier file\n", encoding="utf-8")


def files(folder: pathlib.Path) -> dict[str, str]:
    """Every file with its digest, and every folder."""
    paths = sorted(path for path in folder.rglob("*") if path.name != "LOCK")
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in paths
    }


class Observer:
    """What can be seen of a folder. The same files are looked at once."""

    def __init__(self, program: pathlib.Path):
        self.program = program
        self.seen: dict[str, tuple[str, bool]] = {}

    def look(self, folder: pathlib.Path, found: dict[str, str]) -> tuple[str, bool]:
        """The models and the files that commands write; and whether all models verify."""
        key = json.dumps(found)
        if key not in self.seen:
            state: dict[str, object] = {name: found.get(name) for name in OUTPUTS}
            whole = True
            for model in sorted(folder.glob("[!.]*.lrp")):
                arguments = [["inspect", model.name, "--json"], ["predict", model.name, "test.csv", "--scores", "--threads", "1"]]
                verified, inspected, predicted = (
                    run(self.program, folder, *command) for command in [["verify", model.name], *arguments]
                )
                whole &= verified.returncode == 0 and inspected.returncode == 0
                facts = json.loads(inspected.stdout) if inspected.returncode == 0 else {}
                # A command that is repeated may make another version of the same.
                for volatile in ["version", "kept_versions"]:
                    facts.pop(volatile, None)
                state[model.name] = [facts, predicted.returncode, predicted.stdout]
            self.seen[key] = json.dumps(state), whole
        return self.seen[key]


def try_command(program: pathlib.Path, base: pathlib.Path, command: list[str], folders: queue.Queue, pool) -> collections.Counter | str:
    """Kills one command everywhere. The text says why it cannot be done."""
    if "--threads" in run(program, base, command[0], "--help").stdout:
        command = [*command, "--threads", "1"]
    observer = Observer(program)
    arguments = [str(program), *command]

    def traced(folder: pathlib.Path, *options: str) -> tuple[int, list[Call]]:
        log = folder.with_suffix(".log")
        strace = ["strace", "-f", "-qq", "-e", f"trace={TRACED}", *options, "-o", str(log)]
        result = subprocess.run([*strace, *arguments], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return result.returncode, calls(log, folder)

    def restore(folder: pathlib.Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(base, folder)

    def look_at_copy(folder: pathlib.Path) -> tuple[str, bool]:
        copy = folder.with_suffix(".copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        return observer.look(copy, files(copy))

    folder = folders.get()
    restore(folder)
    before, _ = look_at_copy(folder)
    code, trace = traced(folder)
    if code != 0:
        folders.put(folder)
        return "refused"
    after, whole = look_at_copy(folder)
    if not whole:
        folders.put(folder)
        return "damaged without a kill"
    expected = set(files(folder))
    run(program, folder, *command)
    # A version that a repeated command adds has files of its own.
    expected |= set(files(folder))
    folders.put(folder)

    def kill(point: tuple[int, Call]) -> collections.Counter:
        done, call = point
        folder = folders.get()
        try:
            # Every thread opens many files: the path tells which open is meant.
            path = ["-P", call.opens, "-P", str(folder / call.opens)] if call.opens else []
            for _ in range(ATTEMPTS):
                restore(folder)
                _, trace = traced(folder, *path, "-e", f"inject={call.name}:signal=KILL:when={call.number}")
                # The killed call is in the log, but did not happen. With a path, there is little else.
                last = trace[-1] if trace else None
                same = last and (last.name, last.opens, last.number) == (call.name, call.opens, call.number)
                same = same and (path or sum(other.changes for other in trace[:-1]) == done)
                # Threads of the pool make calls of their own at times, which shifts the count.
                if same or path:
                    break
            if not same and path:
                # The name of the file has a part that changes from run to run. The call before it was tried.
                return collections.Counter({"skipped": 1})
            if not same:
                sys.exit(f"{command}: the calls are not the same every time: {last} instead of {call}")
            state, whole = look_at_copy(folder)
            faults = collections.Counter({"points": 1})
            faults["damaged"] = not whole
            faults["lost"] = whole and state not in (before, after)
            if run(program, folder, *command).returncode != 0:
                faults["blocked"] = 1
                return faults
            faults["different"] = look_at_copy(folder)[0] != after
            left = set(files(folder)) - expected
            faults["files left"] = bool(left)
            if any(faults[fault] for fault in FAULTS):
                print(f"  at {call}: {dict(faults)} {sorted(left)}", file=sys.stderr)
            return faults
        finally:
            folders.put(folder)

    return sum(pool.map(kill, kill_points(trace)), collections.Counter())


def main() -> None:
    parser = argparse.ArgumentParser(description="Kills every command at every system call that changes files.")
    parser.add_argument("program", type=pathlib.Path, help="the loranpac to try")
    parser.add_argument("--command", choices=COMMANDS, action="append", help="only this command; may be repeated")
    parser.add_argument("--form", choices=FORMS, action="append", help="only this form of model; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="kills at the same time")
    given = parser.parse_args()
    program = given.program.resolve()
    if shutil.which("strace") is None:
        sys.exit("strace is not installed")
    forms, commands = given.form or list(FORMS), given.command or list(COMMANDS)
    results: dict[tuple[str, str], collections.Counter | str] = {}
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        root = pathlib.Path(temporary)
        folders: queue.Queue[pathlib.Path] = queue.Queue()
        for job in range(given.jobs):
            folders.put(root / f"job{job}")
        for form in forms:
            base = root / "base"
            shutil.rmtree(base, ignore_errors=True)
            base.mkdir()
            prepare(program, base, form)
            for name in commands:
                command = COMMANDS[name] + (FORMS[form] if name == "init" else [])
                results[name, form] = try_command(program, base, command, folders, pool)
                print(name, form, results[name, form], file=sys.stderr, flush=True)
    print("| kill points of | " + " | ".join(forms + FAULTS) + " |")
    print("|---" * (1 + len(forms) + len(FAULTS)) + "|")
    total: collections.Counter = collections.Counter()
    for name in commands:
        counts = [results[name, form] for form in forms]
        summed = sum((count for count in counts if not isinstance(count, str)), collections.Counter())
        total += summed
        cells = [count if isinstance(count, str) else str(count["points"]) for count in counts]
        print(f"| `{name}` | " + " | ".join(cells + [str(summed[fault]) for fault in FAULTS]) + " |")
    told = f"{total['points']} kills: " + ", ".join(f"{total[fault]} {fault}" for fault in FAULTS)
    print(f"\n{told}")
    if total["skipped"]:
        print(f"{total['skipped']} creations of files with random names could not be found again")
    if any(total[fault] for fault in FAULTS) or "damaged without a kill" in results.values():
        sys.exit(1)


if __name__ == "__main__":
    main()

"""Progress of long tasks, on standard error."""

from __future__ import annotations

import sys
import time
from numbers import Integral
from typing import Any, Callable

#: Takes the number of samples learned so far, and whether a group of chunks is complete.
Progress = Callable[[int, bool], None]


def progress(verbose: Any, method: str, samples: int) -> Progress | None:
    """A function that prints progress: a line per group of chunks (1) or per chunk (2 and more). None prints nothing."""
    if not isinstance(verbose, Integral) or verbose < 0:
        raise ValueError(f"verbose: 0, 1 or 2 is expected, not {verbose!r}")
    if verbose == 0:
        return None
    start = time.monotonic()

    def report(done: int, group: bool) -> None:
        if not group and verbose < 2:
            return
        seconds = time.monotonic() - start
        left = f"about {_duration(seconds * (samples - done) / done)} left" if done < samples else f"in {_duration(seconds)}"
        line = f"[{method}] {100 * done // samples:3}%  {done} of {samples} samples, {left}"
        try:
            print(line, file=sys.stderr, flush=True)
        except (OSError, ValueError):
            pass  # Output that cannot be written must not end the task.

    return report


def encoding_progress(verbose: Any, encoder: str, inputs: int) -> Callable[[int], None] | None:
    """The same for inputs that are encoded: a line per tenth of them (1), or per batch (2 and more)."""
    report = progress(verbose, encoder, inputs)
    if report is None:
        return None
    tenths = 0

    def after_batch(done: int) -> None:
        nonlocal tenths
        before, tenths = tenths, 10 * done // inputs
        report(done, tenths > before)

    return after_batch


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"

"""Progress of long tasks on standard error."""

import re
import sys

import numpy as np
import pytest

from loranpac import LoRanPACClassifier, make

LINE = re.compile(r"\[loranpac-soft\] +(\d+)%  (\d+) of 10000 samples, (about .* left|in .* s)")


def lines(capsys):
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_line_per_group_of_chunks_shows_the_share_and_the_time_left(blobs, capsys, method):
    getattr(LoRanPACClassifier(width=50, verbose=1), method)(*blobs(np.arange(10_000) % 8))
    found = [LINE.fullmatch(line) for line in lines(capsys)]
    assert [int(match[2]) for match in found] == [4096, 8192, 10_000]
    assert [int(match[1]) for match in found] == [40, 81, 100]
    assert [match[3].startswith("about ") for match in found] == [True, True, False]


def test_a_line_per_chunk_with_more(blobs, capsys):
    LoRanPACClassifier(width=50, verbose=2).fit(*blobs(np.arange(10_000) % 8))
    found = [LINE.fullmatch(line) for line in lines(capsys)]
    assert len(found) > 3 and found[-1][1] == "100"


def test_nothing_is_printed_by_default(blobs, capsys):
    LoRanPACClassifier(width=50).fit(*blobs(np.arange(5000) % 8))
    assert lines(capsys) == []


def test_other_methods_print_progress(blobs, capsys):
    make("ranpac", width=50, verbose=1).fit(*blobs(np.arange(80) % 8))
    (line,) = lines(capsys)
    assert line.startswith("[ranpac] 100%  80 of 80 samples, in ")


def test_progress_does_not_change_the_model(blobs):
    x, y = blobs(np.arange(5000) % 8)
    quiet, verbose = (LoRanPACClassifier(width=50, verbose=level).fit(x, y) for level in (0, 2))
    np.testing.assert_array_equal(quiet.decision_function(x[:50]), verbose.decision_function(x[:50]))


def test_output_that_cannot_be_written_does_not_end_the_task(blobs, monkeypatch):
    class Closed:
        def write(self, _):
            raise BrokenPipeError

        def flush(self):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    assert LoRanPACClassifier(width=50, verbose=1).fit(*blobs(np.arange(80) % 8)).n_samples_seen_ == 80

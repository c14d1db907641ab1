"""Work that does not fit into memory raises MemoryError before anything is learned, and never aborts the interpreter."""

import subprocess
import sys

import numpy as np
import pytest

from loranpac import LoRanPACClassifier, make

X = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
y = np.arange(60) % 3


@pytest.mark.parametrize("width", [10**12, 10**15])
def test_a_width_that_does_not_fit_is_a_memory_error_with_both_sizes(width):
    with pytest.raises(MemoryError, match=rf"width={width}: .* needs about .*: reduce width"):
        LoRanPACClassifier(width=width).fit(X, y)


def test_a_method_that_does_not_fit_is_a_memory_error():
    # A matrix of 4,000,000 x 4,000,000 numbers.
    with pytest.raises(MemoryError, match="learning 60 samples with width=4000000 needs about .*: reduce width or max_rank"):
        make("ranpac", width=4_000_000).fit(X, y)


def test_a_model_that_was_refused_samples_is_as_it_was():
    model = LoRanPACClassifier(width=50).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(MemoryError):
        model.set_params(width=10**12).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_samples_are_unlearned_and_relabelled_in_parts():
    # All of them at once would be 2,000,000 rows of 20,000 numbers.
    x, labels = np.ones((2_000_000, 2), np.float32), np.zeros(2_000_000, int)
    model = LoRanPACClassifier(width=20_000).fit(x[:4], [0, 1, 2, 3])
    for edit in (lambda: model.unlearn(x, labels), lambda: model.relabel(x, labels, 1)):
        with pytest.raises(ValueError, match="learned|samples"):
            edit()


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_a_limit_on_the_address_space_is_a_memory_error():
    program = """
import numpy as np, resource
from loranpac import LoRanPACClassifier
X, y = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32), np.arange(500) % 3
LoRanPACClassifier(width=50, n_jobs=1).fit(X, y)
used = int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmSize"))) * 1024
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
for width in (300_000, 3_000_000):
    try:
        LoRanPACClassifier(width=width, n_jobs=1).fit(X, y)
        print("learned")
    except MemoryError as error:
        print("refused", error)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("refused") == 2, result.stdout

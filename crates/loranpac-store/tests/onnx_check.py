"""Runs exported models in onnxruntime and compares them with the engine's scores.

The argument is a folder with cases.json, made by onnx.rs: one entry per model, with the samples and the scores that
the engine gives as raw little-endian float32 beside it. Errors are measured per sample, as a part of the sample's
largest score.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

folder = pathlib.Path(sys.argv[1])


def check(case):
    path = folder / case["model"]
    onnx.checker.check_model(str(path), full_check=True)

    # What is stored in half precision is cast; nothing else is.
    graph = onnx.load(str(path), load_external_data=False).graph
    halves = [tensor.name for tensor in graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT16]
    casts = [node.input[0] for node in graph.node if node.op_type == "Cast"]
    assert sorted(halves) == sorted(casts) and bool(halves) == case["half"], (halves, casts)

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    assert (given.name, given.type, given.shape) == ("x", "tensor(float)", ["batch", case["dim"]]), given
    expected_outputs = ["scores", "label_index"] + ["probabilities"] * case["probabilities"]
    assert [output.name for output in session.get_outputs()] == expected_outputs

    texts = session.get_modelmeta().custom_metadata_map
    assert json.loads(texts["labels"]) == case["labels"], texts["labels"]
    assert json.loads(texts["lift"]) == case["lift"], texts["lift"]
    assert json.loads(texts["temperature"]) == case["temperature"]
    assert texts["format"] == "loranpac-onnx" and texts["loranpac_version"] == case["version"]

    x = np.fromfile(folder / case["samples"], "<f4").reshape(-1, case["dim"])
    expected = np.fromfile(folder / case["scores"], "<f4").reshape(len(x), -1)
    scores, index, *rest = session.run(None, {"x": x})
    assert (scores.dtype, index.dtype) == (np.float32, np.int64)
    assert scores.shape == expected.shape and index.shape == (len(x),)
    largest = np.abs(expected).max(axis=1)
    error = np.abs(scores - expected).max(axis=1)
    # A sample whose scores are all zero must stay so.
    error = np.divide(error, largest, out=np.where(error > 0, np.inf, 0.0), where=largest > 0)
    assert error.max() <= case["tolerance"], f"{case['model']}: {error.max():.1e} of the largest score"

    # The winner is the engine's wherever its lead is larger than what rounding can change.
    best = np.sort(expected, axis=1)
    sure = best[:, -1] - best[:, -2] >= 2 * case["tolerance"] * largest
    assert (index == expected.argmax(axis=1))[sure].all()
    assert sure.mean() > 0.9

    for probabilities in rest:
        logits = (scores / case["temperature"]).astype(np.float64)
        exact = np.exp(logits - logits.max(axis=1, keepdims=True))
        exact /= exact.sum(axis=1, keepdims=True)
        assert np.abs(probabilities.sum(axis=1) - 1).max() < 1e-5
        assert np.abs(probabilities - exact).max() < 1e-4
        assert probabilities.shape == scores.shape

    # The number of samples is free.
    for n in (1, 3):
        (some,) = session.run(["scores"], {"x": x[:n]})
        assert np.allclose(some, scores[:n], rtol=1e-4, atol=1e-4 * float(largest[:n].max()))
    print(f"{case['model']}: {error.max():.1e} of the largest score (at most {case['tolerance']:.0e})")


for case in json.loads((folder / "cases.json").read_text(encoding="utf-8")):
    check(case)
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)

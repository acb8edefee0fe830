"""Puts models into files, which is how the program takes them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ._options import argument


def model_path(model: Any, folder: Path, example_inputs: Any = None) -> str:
    """Return the path of a model, written into folder where it is not a file yet."""
    if example_inputs is not None and not is_torch(model):
        raise TypeError("example_inputs is for a torch.nn.Module; leave it out")
    if isinstance(model, (str, os.PathLike)):
        return argument(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _write(folder, bytes(model))
    if hasattr(model, "SerializeToString"):
        return _write(folder, model.SerializeToString())
    if is_torch(model):
        return _export(model, example_inputs, folder / "model.onnx")
    raise TypeError(
        f"a model is a path, bytes, an onnx.ModelProto or a torch.nn.Module, not {type(model).__name__}: "
        "convert a Keras model with tf.lite.TFLiteConverter and give the bytes"
    )


def _write(folder: Path, data: bytes) -> str:
    ending = ".onnx"
    if data[4:8] == b"TFL3":
        ending = ".tflite"
    elif data[:4] == b"PK\x03\x04":
        ending = ".mltk.zip"
    path = folder / ("model" + ending)
    path.write_bytes(data)
    return str(path)


def is_torch(model: Any) -> bool:
    """Report whether a model is a torch.nn.Module, without loading torch."""
    return any(c.__module__ == "torch.nn.modules.module" and c.__name__ == "Module" for c in type(model).__mro__)


def _export(model: Any, example_inputs: Any, path: Path) -> str:
    if example_inputs is None:
        raise TypeError("a torch.nn.Module needs example_inputs: a tensor, or a tuple of them")
    import torch

    inputs = example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
    trained = model.training
    model.eval()
    try:
        try:
            torch.onnx.export(model, inputs, str(path))
        except ImportError:  # the newer exporter needs further packages
            torch.onnx.export(model, inputs, str(path), dynamo=False)
    finally:
        model.train(trained)
    return str(path)

"""The functions of the package: one for each command."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from . import _notebook
from ._errors import Interrupted, OpmeterError, UsageError
from ._models import model_path
from ._options import argument, flags
from ._profile import PathLike, Profile, Study, opened, parse, remarked
from ._program import Output, run

_JOURNAL = ".opmeter-journal"


def profile(model: Any, *, example_inputs: Any = None, **options: Any) -> Profile:
    """Measure a model on this computer; on=TARGET estimates or measures elsewhere.

    A model is a path, the bytes of a .onnx or .tflite file, an onnx.ModelProto, or a
    torch.nn.Module with example_inputs. Keyword arguments are the flags of opmeter profile, such
    as threads=2, engine="onnxruntime", shape={"image": (1, 3, 224, 224)}, time=5.
    """
    _single("on", options.get("on"))
    engine = options.get("engine")
    if not isinstance(engine, str) or "," in engine:
        _single("engine", engine.split(",") if isinstance(engine, str) else engine)
    with tempfile.TemporaryDirectory() as d:
        folder = Path(d)
        args = flags("profile", options, folder)
        return _measure(["profile", model_path(model, folder, example_inputs), *args], folder)


def estimate(model: Any, on: str, **options: Any) -> Profile:
    """Estimate a model for a target, such as stm32h743; opmeter targets lists them."""
    if on is None:
        raise TypeError("on is the name of a target, such as stm32h743, not None")
    _single("on", on)
    if on == "host" or os.fspath(on).startswith("device:"):
        raise TypeError(f"on={on!r} measures: use profile() or device()")
    return profile(model, on=on, **options)


def device(model: Any, port: str, **options: Any) -> Profile:
    """Measure a model on a board. port is /dev/ttyACM0, COM3, tcp:HOST:PORT or the like."""
    if port is None:
        raise TypeError("port is that of a board, such as /dev/ttyACM0, not None")
    _single("port", port)
    return profile(model, on=f"device:{os.fspath(port)}", **options)


def summary(model: Any, *, example_inputs: Any = None, **options: Any) -> Profile:
    """Count operations, parameters and memory of a model without running it."""
    with tempfile.TemporaryDirectory() as d:
        folder = Path(d)
        args = flags("summary", options, folder)
        path = model_path(model, folder, example_inputs)
        output = _run(["summary", path, *args, "--format=json"])
    return Profile(parse(output.text))


def import_record(path: PathLike, *, model: Any = None, example_inputs: Any = None, **options: Any) -> Profile:
    """Read a profile or trace of another tool; model adds shapes, work and weights."""
    if model is None and example_inputs is not None:
        raise TypeError("example_inputs is for model, which is missing")
    with tempfile.TemporaryDirectory() as d:
        folder = Path(d)
        args = flags("import", options, folder, taken=("model", "commands", "compat", "list"))
        if model is not None:
            args.append(f"--model={model_path(model, folder, example_inputs)}")
        output = _run(["import", argument(path), *args, "--format=json"])
    return remarked(Profile(parse(output.text)), 3)


def compress(model: Any, *, example_inputs: Any = None, **options: Any) -> Study:
    """Find which layers to prune or quantise; the study file keeps all results.

    Keyword arguments are the flags of opmeter compress, such as data="x.npy", max_drop="1%".
    """
    study = os.fspath(options.pop("study", None) or _study(model))
    with tempfile.TemporaryDirectory() as d:
        folder = Path(d)
        args = flags("compress", options, folder)
        path = model_path(model, folder, example_inputs)
        output = _run(["compress", path, *args, f"--study={study}", "--format=json"])
    return Study(parse(output.text), study)


def _study(model: Any) -> str:
    if not isinstance(model, (str, os.PathLike)):
        return "model.study"
    name = os.path.basename(os.fspath(model))
    for ending in (".mltk.zip", os.path.splitext(name)[1]):
        if ending and name.endswith(ending):
            return name[: -len(ending)] + ".study"
    return name + ".study"


def _single(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, (str, os.PathLike)):
        if isinstance(value, (Sequence, Mapping, set)):
            raise TypeError(f"{name} is one value: call profile() for each and compare() the results")
        raise TypeError(f"{name} is a text, not {type(value).__name__}")


def _run(args: Sequence[str]) -> Output:
    with _notebook.progress() as show:
        output = run(args, show)
    output.warn()
    return output


def _measure(args: Sequence[str], folder: Path) -> Profile:
    """Run a measurement. What it kept before it failed or was stopped is in the exception."""
    file = folder / "profile.opmeter"
    try:
        _run([*args, f"--output={file}", "--open=false"])
    except Interrupted as e:
        kept = _kept(file)
        if kept is not None and any(x.latency is not None for x in (kept, *kept.layers)):
            e.result = kept
        raise
    except OpmeterError as e:
        e.result = _kept(file)
        raise
    if not file.exists():
        raise UsageError("a folder gives several profiles: call the function for each model", 2)
    return opened(file)


def _kept(file: Path) -> Optional[Profile]:
    for path in (file, *sorted(file.parent.glob("*" + _JOURNAL))):
        try:
            if path.exists():
                return opened(path)
        except OpmeterError:
            continue
    return None

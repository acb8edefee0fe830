"""profile_model of Silicon Labs' MLTK: from opmeter.compat.mltk import profile_model.

The figures are those of opmeter in the MLTK's layout; docs/reference/mltk-formats.md has the rules.
"""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, Optional, Union

from .._models import model_path
from .._profile import Profile, load
from .._program import run

_BAUD = 115200


class ProfilingLayerResult(defaultdict[str, Any]):
    """Figures of a layer by key; 0 for those that it has not."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(int, values)
        self.setdefault("error_msg", None)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def index(self) -> int:
        """Position in the model."""
        return int(self["index"])

    @property
    def name(self) -> str:
        """Op<index>-<opcode>."""
        return f"Op{self.index}-{self.opcode_str.upper()}"

    @property
    def opcode_str(self) -> str:
        """Operator."""
        return str(self["opcode"])

    @property
    def ops(self) -> int:
        """Operations."""
        return int(self["ops"])

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations."""
        return int(self["macs"])

    @property
    def accelerator_cycles(self) -> int:
        """Cycles of the accelerator."""
        return int(self["accelerator_cycles"])

    @property
    def cpu_cycles(self) -> int:
        """Cycles of the processor."""
        return int(self["cpu_cycles"])

    @property
    def time(self) -> float:
        """Seconds."""
        return float(self["time"])

    @property
    def energy(self) -> float:
        """Joules."""
        return float(self["energy"])

    @property
    def options_str(self) -> str:
        """Options of the operator."""
        return str(self["options"] or "")

    @property
    def input_shape_str(self) -> str:
        """Shapes of the inputs."""
        return str(self["input_shape"] or "")

    @property
    def output_shape_str(self) -> str:
        """Shapes of the outputs."""
        return str(self["output_shape"] or "")

    @property
    def error_msg(self) -> Optional[str]:
        """Why the accelerator does not take the layer."""
        return self["error_msg"] or None

    @property
    def is_accelerated(self) -> bool:
        """Whether the accelerator worked for the layer."""
        return self.accelerator_cycles > 0

    @property
    def is_unsupported(self) -> bool:
        """Whether the layer exceeds the accelerator's limits."""
        return self.error_msg is not None


class ProfilingModelResults:
    """Figures of a model. profile is the opmeter.Profile behind them."""

    def __init__(
        self, profile: Profile, accelerator: Optional[str], platform: Optional[str], simulated: bool, estimates: bool
    ) -> None:
        self.profile = profile
        self.accelerator = accelerator
        self.platform = platform
        self.is_simulated = simulated
        self._estimates = estimates
        full = self._read(units=False, full=True)
        self._summary: dict[str, Any] = full["summary"]
        self.layers = [ProfilingLayerResult(x) for x in full["layers"]]

    @property
    def name(self) -> str:
        """Name of the model."""
        return str(self._summary["name"])

    @property
    def cpu_clock_rate(self) -> int:
        """Clock of the processor in hertz."""
        clock = (self.profile.data.get("target") or {}).get("clock_hz")
        return int(self._summary.get("cpu_clock_rate") or clock or 0)

    @property
    def runtime_memory_bytes(self) -> int:
        """Bytes of RAM for the runtime."""
        return int(self._summary.get("runtime_memory_size") or 0)

    @property
    def flatbuffer_size(self) -> int:
        """Bytes of the .tflite file."""
        return int(self._summary.get("tflite_size") or 0)

    @property
    def n_layers(self) -> int:
        """Number of layers."""
        return len(self.layers)

    @property
    def input_shape_str(self) -> str:
        """Shapes of the inputs."""
        return str(self._summary.get("input_shape", ""))

    @property
    def input_dtype_str(self) -> str:
        """Types of the inputs."""
        return str(self._summary.get("input_dtype", ""))

    @property
    def output_shape_str(self) -> str:
        """Shapes of the outputs."""
        return str(self._summary.get("output_shape", ""))

    @property
    def output_dtype_str(self) -> str:
        """Types of the outputs."""
        return str(self._summary.get("output_dtype", ""))

    @property
    def ops(self) -> int:
        """Operations."""
        return int(self.stat_total("ops"))

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations."""
        return int(self.stat_total("macs"))

    @property
    def accelerator_cycles(self) -> int:
        """Cycles of the accelerator."""
        return int(self.stat_total("accelerator_cycles"))

    @property
    def cpu_cycles(self) -> int:
        """Cycles of the processor."""
        return int(self.stat_total("cpu_cycles"))

    @property
    def time(self) -> float:
        """Seconds of an inference."""
        return float(self.stat_total("time"))

    @property
    def energy(self) -> float:
        """Joules of an inference."""
        return float(self.stat_total("energy"))

    @property
    def cpu_utilization(self) -> float:
        """Share of the processor's cycles, from 0 to 1."""
        return float(self._summary.get("cpu_utilization") or 0) / 100

    @property
    def unsupported_layers(self) -> list[ProfilingLayerResult]:
        """Layers that exceed the accelerator's limits."""
        return [x for x in self.layers if x.is_unsupported]

    @property
    def n_unsupported_layers(self) -> int:
        """Number of layers that exceed the accelerator's limits."""
        return len(self.unsupported_layers)

    def stat_total(self, name: str) -> Union[int, float]:
        """Return the sum of a figure over the layers."""
        return sum(x[name] or 0 for x in self.layers)

    def _render(self, folder: Path, *flags: str, units: bool, full: bool) -> str:
        path = folder / "profile.json"
        path.write_text(json.dumps(self.profile.data), encoding="utf-8")
        args = ["report", str(path), *flags]
        for wanted, flag in ((self._estimates, "--estimates"), (not units, "--no-format"), (full, "--full-summary")):
            if wanted:
                args.append(flag)
        return run(args).text

    def _read(self, units: bool, full: bool) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as d:
            if not units:
                text = self._render(Path(d), "--format=mltk-json", units=False, full=full)
            else:
                self._render(Path(d), f"--output={d}{os.sep}", units=True, full=full)
                text = next(Path(d).glob("profiling_report-*.json")).read_text(encoding="utf-8")
        result: dict[str, Any] = json.loads(text)
        return result

    def to_string(self, format_units: bool = True, exclude_null: bool = True, full_summary: bool = False) -> str:
        """Return the report as text."""
        if not exclude_null:
            return _text(self.to_dict(format_units, False, full_summary))
        with tempfile.TemporaryDirectory() as d:
            text = self._render(Path(d), "--format=mltk", units=format_units, full=full_summary)
        return text.rstrip("\n")

    def to_dict(
        self, format_units: bool = False, exclude_null: bool = True, full_summary: bool = False
    ) -> dict[str, Any]:
        """Return summary, layers and their labels.

        exclude_null=False adds figures that no layer has, as 0, which the original leaves out by default.
        """
        data = self._read(format_units, full_summary)
        return data if exclude_null else _with_null(data, format_units, self.cpu_clock_rate)

    def get_summary(
        self,
        include_labels: bool = False,
        format_units: bool = False,
        exclude_null: bool = True,
        full_summary: bool = False,
    ) -> dict[str, Any]:
        """Return the summary; with include_labels, pairs of label and figure."""
        data = self.to_dict(format_units, exclude_null, full_summary)
        summary: dict[str, Any] = data["summary"]
        if include_labels:
            return {k: (data["summary_labels"][k], v) for k, v in summary.items()}
        return summary

    def to_json(
        self, indent: int = 2, format_units: bool = False, exclude_null: bool = True, full_summary: bool = False
    ) -> str:
        """Return to_dict() as JSON."""
        return json.dumps(self.to_dict(format_units, exclude_null, full_summary), indent=indent)

    def to_csv(
        self,
        format_units: bool = False,
        exclude_null: bool = True,
        full_summary: bool = False,
        include_header: bool = True,
        dialect: Union[str, csv.Dialect] = "excel",
    ) -> tuple[str, str]:
        """Return summary and layers as CSV."""
        data = self.to_dict(format_units, exclude_null, full_summary)
        texts = []
        for labels, rows in (("summary_labels", [data["summary"]]), ("layer_labels", data["layers"])):
            b = io.StringIO()
            w = csv.writer(b, dialect)
            if include_header:
                w.writerow(data[labels])
            w.writerows(row.values() for row in rows)
            texts.append(b.getvalue())
        return texts[0], texts[1]

    def generate_report(self, output_dir: str, format_units: bool, full_summary: bool = False) -> None:
        """Write the report as text and as JSON into a folder."""
        os.makedirs(output_dir, exist_ok=True)
        with tempfile.TemporaryDirectory() as d:
            self._render(Path(d), f"--output={output_dir}{os.sep}", units=format_units, full=full_summary)

    def __str__(self) -> str:
        return self.to_string()


# The labels of all figures in the original's order. None stands for those of the accelerator.
_SUMMARY: dict[Optional[str], str] = {
    "name": "Name",
    "accelerator": "Accelerator",
    "input_shape": "Input Shape",
    "input_dtype": "Input Data Type",
    "output_shape": "Output Shape",
    "output_dtype": "Output Data Type",
    "tflite_size": "Flash, Model File Size (bytes)",
    "runtime_memory_size": "RAM, Runtime Memory Size (bytes)",
    "ops": "Operation Count",
    "macs": "Multiply-Accumulate Count",
    "n_layers": "Layer Count",
    "n_unsupported_layers": "Unsupported Layer Count",
    "accelerator_cycles": "Accelerator Cycle Count",
    "cpu_cycles": "CPU Cycle Count",
    "cpu_utilization": "CPU Utilization (%)",
    "cpu_clock_rate": "Clock Rate (hz)",
    "time": "Time (s)",
    "energy": "Energy (J)",
    "j_per_op": "J/Op",
    "j_per_mac": "J/MAC",
    "op_per_s": "Ops/s",
    "mac_per_s": "MACs/s",
    "inf_per_sec": "Inference/s",
    None: "",
}
_LAYER: dict[Optional[str], str] = {
    "index": "Index",
    "opcode": "OpCode",
    "ops": "# Ops",
    "macs": "# MACs",
    "accelerator_cycles": "Acc Cycles",
    None: "",
    "cpu_cycles": "CPU Cycles",
    "energy": "Energy (J)",
    "time": "Time (s)",
    "input_shape": "Input Shape",
    "output_shape": "Output Shape",
    "options": "Options",
    "supported": "Supported?",
    "error_msg": "Error Msg",
}


def _with_null(data: dict[str, Any], units: bool, clock: int) -> dict[str, Any]:
    """Return a report with the figures that it leaves out."""
    zero = {"cpu_utilization": "0.0", "inf_per_sec": "0.0"} if units else {}
    empty: dict[str, Any] = {"supported": True, "error_msg": "" if units else None, **zero}
    empty["cpu_clock_rate"] = _prefixed(clock) if units else clock

    def filled(row: dict[str, Any], labels: dict[Optional[str], str]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key in labels:
            if key is None:
                out.update((k, v) for k, v in row.items() if k not in labels)
            else:
                out[key] = row.get(key, empty.get(key, "0" if units else 0))
        return out

    def labelled(row: dict[str, Any], labels: dict[Optional[str], str], before: dict[str, str]) -> dict[str, str]:
        return {k: before.get(k, labels.get(k, "")) for k in row}

    summary = filled(data["summary"], _SUMMARY)
    layers = [filled(x, _LAYER) for x in data["layers"]]
    return {
        **data,
        "summary": summary,
        "summary_labels": labelled(summary, _SUMMARY, data["summary_labels"]),
        "layers": layers,
        "layer_labels": labelled(layers[0] if layers else {}, _LAYER, data["layer_labels"]),
    }


def _prefixed(value: float) -> str:
    for scale, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.1f}{prefix}"
    return f"{value:.1f}" if value else "0"


def _text(data: dict[str, Any]) -> str:
    """Return a report as text: the summary, and a table of the layers."""
    summary = dict(data["summary"])
    if summary["accelerator"] != "None":
        summary["accelerator"] = summary["accelerator"].upper()
    lines = ["Profiling Summary"]
    lines += [f"{data['summary_labels'][k]}: {v}" for k, v in summary.items()]
    rows = [list(data["layer_labels"].values()), *([str(v) for v in x.values()] for x in data["layers"])]
    widths = [max(map(len, column)) for column in zip(*rows)]
    rule = "+" + "".join("-" * (n + 2) + "+" for n in widths)
    table = ["|" + "".join(f" {v:{n}} |" for v, n in zip(row, widths)) for row in rows]
    return "\n".join([*lines, "", "Model Layers", rule, table[0], rule, *table[1:], rule])


def profile_model(
    model: Any,
    accelerator: Optional[str] = None,
    port: Optional[str] = None,
    use_device: bool = False,
    build: bool = False,
    platform: Optional[str] = None,
    image_path: Optional[str] = None,
    baud: int = _BAUD,
    runtime_buffer_size: int = -1,
    test: bool = False,
    post_process: bool = False,
    return_estimates: bool = False,
) -> ProfilingModelResults:
    """Profile a .tflite or .mltk.zip model for an EFR32xG24, or on a board.

    use_device flashes the model to a board and measures there, with the firmware image_path if
    given. return_estimates adds estimated cycles, time and energy.
    """
    for argument, wrong, instead in (
        ("build", build, "opmeter does not train: give a .tflite or .mltk.zip file"),
        ("test", test, "give the .tflite file of the test model"),
        ("post_process", post_process, "opmeter calls no hooks: process the result"),
        ("runtime_buffer_size", runtime_buffer_size >= 0, "opmeter computes the size of the buffer; leave it out"),
    ):
        if wrong:
            raise ValueError(f"{argument}: {instead}")
    if not use_device and (port, platform, image_path, baud) != (None, None, None, _BAUD):
        raise ValueError("port, platform, image_path and baud need use_device=True")
    name = None if accelerator is None else accelerator.lower()
    with tempfile.TemporaryDirectory() as d:
        path = _path(model, Path(d))
        file = Path(d) / "profile.opmeter"
        args = ["profile", path, f"--accelerator={name or 'none'}"]
        if use_device:
            args = ["device", "mltk", path]
            given = {"port": port, "platform": platform, "firmware": image_path, "accelerator": name}
            if baud != _BAUD:
                given["speed"] = str(baud)
            args += [f"--{k}={v}" for k, v in given.items() if v is not None]
        run([*args, f"--output={file}", "--open=false"])
        profile = load(file)
    return ProfilingModelResults(profile, accelerator, platform, not use_device, return_estimates)


def _path(model: Any, folder: Path) -> str:
    """Return the file of a model: also of the MLTK's objects, by their attributes."""
    for attribute in ("flatbuffer_data", "tflite_archive_path"):
        value = getattr(model, attribute, None)
        if value is not None:
            model = value
            break
    path = model_path(model, folder)
    try:
        with open(path, "rb") as f:
            head = f.read(8)
    except OSError:
        return path  # the program says why
    known = head[4:] == b"TFL3" or head[:4] == b"PK\x03\x04"
    if not known and not path.lower().endswith((".tflite", ".mltk.zip")):
        # The layout has TFLite operators only: the figures of others would be 0.
        raise ValueError(f"{path}: give a .tflite or .mltk.zip file; opmeter.profile() takes others")
    return path

"""ProfileParser of the SensiML SDK: from opmeter.compat.sensiml import ProfileParser.

The figures are those of the original, mistakes included. opmeter device sensiml has the right ones.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
from pathlib import Path
from typing import Any, Optional, Union

from .._errors import Interrupted, OpmeterError
from .._program import run

_NO_SPEED = re.compile(r"(tcp|exec|file):|-$")


class ProfileParser:
    """Reads the figures of a profiled Knowledge Pack from a device.

    json_path is the pack's model.json, port the serial port (also tcp:HOST:PORT, exec:COMMAND or
    file:PATH), num_msgs the number of lines, baud the speed. debug prints what is not read.
    """

    def __init__(
        self,
        json_path: Union[str, os.PathLike[str]],
        port: str,
        num_msgs: int = 100,
        baud: int = 115200,
        debug: bool = False,
    ) -> None:
        with open(json_path, encoding="utf-8") as f:
            pack = json.load(f)  # a wrong file fails here, as in the original
        self.baud = baud
        self._json_path, self._port = os.fspath(json_path), port
        self._max_msgs, self._debug = num_msgs, debug
        self._stop = threading.Event()
        self._running = False
        self._metrics: dict[str, Any] = {}
        self._json, self._yaml = "{}", "{}\n"
        self._samples = _Samples(pack)

    def run(self) -> None:
        """Read num_msgs lines. Without lines for ten seconds it fails and keeps what came."""
        args = ["device", "sensiml", "--compat", f"--port={self._port}", f"--model-json={self._json_path}"]
        args.append(f"--runs={self._max_msgs}")
        if not _NO_SPEED.match(self._port):
            args.append(f"--speed={self.baud}")
        if self._debug:
            args.append("--debug")
        self._running = True
        self._stop.clear()
        failed: Optional[BaseException] = None
        with tempfile.TemporaryDirectory() as d:
            files = Path(d, "metrics.json"), Path(d, "metrics.yaml")
            record = Path(d, "received")
            try:
                output = run([*args, f"--record={record}", *(f"--output={f}" for f in files)], stop=self._stop)
                for line in output.messages if self._debug else ():
                    print(line)
            except (Interrupted, OpmeterError) as e:
                failed = None if isinstance(e, Interrupted) and self._stop.is_set() else e
            finally:
                self._running = False
            if all(f.exists() for f in files):
                self._json, self._yaml = (f.read_text(encoding="utf-8") for f in files)
                self._metrics.update(json.loads(self._json))
            if record.exists():
                self._samples.read(record.read_bytes(), self._max_msgs)
        if failed is not None:
            raise failed
        print("Reader closed")

    def stop(self) -> None:
        """End run() in another thread; what was read is kept."""
        self._stop.set()

    @property
    def is_running(self) -> bool:
        """Whether run() reads."""
        return self._running

    @property
    def combined_metrics(self) -> dict[str, Any]:
        """All averages, {} before a run."""
        return self._metrics

    @property
    def feature_average_time(self) -> list[dict[str, Any]]:
        """Average time of each generator, for each model."""
        return self._list("FeatureTimePerInference")

    @property
    def feature_average_cycles(self) -> list[dict[str, Any]]:
        """Average cycles of each generator, for each model."""
        return self._list("FeatureCyclesPerInference")

    @property
    def classifier_average_time(self) -> list[dict[str, Any]]:
        """Average time of the classifier, for each model."""
        return self._list("ClassifierAverageTime")

    @property
    def classifier_average_cycles(self) -> list[dict[str, Any]]:
        """Average cycles of the classifier, for each model."""
        return self._list("ClassifierAverageCycles")

    @property
    def feature_times(self) -> list[dict[str, list[Any]]]:
        """Times of each generator as the device sent them, for each model."""
        return self._samples.models["FeatureTimes"]

    @property
    def feature_cycles(self) -> list[dict[str, list[Any]]]:
        """Cycles of each generator as the device sent them, for each model."""
        return self._samples.models["FeatureCycles"]

    @property
    def classifier_times(self) -> list[dict[str, list[Any]]]:
        """Times of the classifier, once for each generator of an inference, for each model."""
        return self._samples.models["ClassifierTime"]

    @property
    def classifier_cycles(self) -> list[dict[str, list[Any]]]:
        """Cycles of the classifier, once for each generator of an inference, for each model."""
        return self._samples.models["ClassifierCycles"]

    def _list(self, key: str) -> list[dict[str, Any]]:
        return list(self._metrics.get(key, []))

    def to_json(self) -> str:
        """Return combined_metrics as JSON."""
        return self._json

    def to_yaml(self) -> str:
        """Return combined_metrics as YAML, keys in order."""
        return self._yaml


# The keys of the figures by the type of a message.
_KINDS = {"Cycles": ("FeatureCycles", "ClassifierCycles"), "Times": ("FeatureTimes", "ClassifierTime")}


class _Samples:
    """The figures of the messages that the original accepts, by key and model."""

    def __init__(self, pack: Any) -> None:
        self.models: dict[str, list[dict[str, list[Any]]]] = {k: [] for keys in _KINDS.values() for k in keys}
        try:
            for index in pack["ModelIndexes"]:
                model = pack["ModelDescriptions"][int(index)]
                for features, classifier in _KINDS.values():
                    self.models[features].append({name: [] for name in model["FeatureFunctions"]})
                    self.models[classifier].append({model["ModelType"]: []})
        except (LookupError, TypeError, ValueError):
            self.models = {k: [] for k in self.models}  # run() says what is wrong with the file

    def read(self, stream: bytes, messages: int) -> None:
        """Add the figures of so many messages; lines that are none do not count."""
        for line in stream.split(b"\n"):
            if messages <= 0:
                return
            try:
                self._add(json.loads(line))
            except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
                continue
            messages -= 1

    def _add(self, message: Any) -> None:
        number, keys = message.get("ModelNumber", 0), _KINDS.get(message.get("Type"))
        models = {k: self.models[k][number] for k in keys or self.models}
        if keys is None:
            return
        features, classifier = (models[k] for k in keys)
        # What comes before a missing figure stays, as in the original.
        for i, values in enumerate(features.values()):
            values.append(message[keys[0]][i])
            sum(values)  # fails for what is no number
            for sums in classifier.values():
                sums.append(message[keys[1]])
        for sums in classifier.values():
            if not sums:
                raise ValueError("a pack without features gives no average")
            sum(sums)

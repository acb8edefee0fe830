import io
import json
import os
import tempfile
import textwrap
import threading
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import opmeter
from opmeter.compat.mltk import _path, profile_model
from opmeter.compat.sensiml import ProfileParser

from .support import ModelCase, Player, shared
from .test_functions import onnx_model

# How the vendor's documents call the parser; only the import differs.
SCRIPT = """
from opmeter.compat.sensiml import ProfileParser

def run_profile(com_port="/dev/ttyACM0", run_count=100, model_json_path="MODEL_JSON_PATH", baud_rate=921600):
    parser = ProfileParser(port=com_port, num_msgs=run_count, json_path=model_json_path, baud=baud_rate)
    parser.run()
    return parser

profile = run_profile(com_port=port, run_count=runs, model_json_path=model)
print(profile.to_yaml(), end="")
print(json.dumps(profile.combined_metrics), profile.to_json() == json.dumps(profile.combined_metrics))
"""

PACK = {
    "NumModels": 1,
    "ModelIndexes": {"0": "walk"},
    "ModelDescriptions": [{"Name": "walk", "ModelType": "PME", "FeatureFunctions": ["Mean", "Sum"]}],
}
LINE = b'{"ModelNumber":0,"Type":"Cycles", "FeatureCycles":[1000,2000],"ClassifierCycles": 8000}\n\n'


def printed(port: str, runs: int, model: Path) -> list[str]:
    out = io.StringIO()
    with redirect_stdout(out):
        exec(SCRIPT, {"port": port, "runs": runs, "model": str(model), "json": json})
    return out.getvalue().split("\n", 1)


class SensiML(unittest.TestCase):
    def pack(self) -> Path:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        path = Path(holder.name, "model.json")
        path.write_text(json.dumps(PACK), encoding="utf-8")
        return path

    def test_script(self) -> None:
        with Player(LINE * 3) as device:
            first, rest = printed(device.port, 3, self.pack())
        self.assertEqual(first, "Reader closed")
        self.assertEqual(
            rest,
            textwrap.dedent("""\
                ClassifierAverageCycles:
                - PME: 8000
                ClassifierAverageTime:
                - PME: 0
                FeatureCyclesPerInference:
                - Mean: 1000
                  Sum: 2000
                FeatureTimePerInference:
                - Mean: 0
                  Sum: 0
                RunCount: 3
                {"FeatureTimePerInference": [{"Mean": 0, "Sum": 0}], "FeatureCyclesPerInference": """)
            + '[{"Mean": 1000, "Sum": 2000}], "ClassifierAverageTime": [{"PME": 0}], '
            '"ClassifierAverageCycles": [{"PME": 8000}], "RunCount": 3} True\n',
        )

    def test_recordings(self) -> None:
        folder = shared("raw", "sensiml", "format")
        for recording, model, runs in (
            ("roc7_nano33", "roc7_model", 20),
            ("roc7_runner", "roc7_model", 20),
            ("dup_runner", "dup_model", 20),
            ("times_fixed", "roc7_model", 2),
        ):
            with Player((folder / f"{recording}.log").read_bytes()) as device:
                _, rest = printed(device.port, runs, folder / f"{model}.json")
            want = (folder / f"{recording}.expected.yml").read_text(encoding="utf-8")
            self.assertTrue(rest.startswith(want), f"{recording}: {rest}")
            self.assertTrue(rest.endswith("True\n"), rest)

    def test_attributes(self) -> None:
        p = ProfileParser(self.pack(), "file:none")
        self.assertEqual((p.combined_metrics, p.is_running, p.baud, p.to_json()), ({}, False, 115200, "{}"))
        with Player(LINE) as device:
            p = ProfileParser(self.pack(), device.port, 1)
            with redirect_stdout(io.StringIO()):
                p.run()
        self.assertEqual(p.feature_average_cycles, [{"Mean": 1000, "Sum": 2000}])
        self.assertEqual(p.classifier_average_cycles, [{"PME": 8000}])
        self.assertEqual(p.feature_average_time, [{"Mean": 0, "Sum": 0}])
        self.assertEqual(p.classifier_average_time, [{"PME": 0}])

    def test_samples(self) -> None:
        """Figures as the device sent them; lines that the original ignores leave what came before."""
        lines = [
            b"text\n",
            b'{"ModelNumber":0,"Classification":3}\n',
            LINE,
            b'{"ModelNumber":7,"Type":"Cycles"}\n',
            b'{"ModelNumber":0,"Type":"Cycles","FeatureCycles":[5],"ClassifierCycles":6}\n',
            b'{"ModelNumber":0,"Type":"Times","FeatureTimes":[0.5,0.25],"ClassifierTime":0.125}\n',
            LINE,
        ]
        with Player(b"".join(lines)) as device:
            p = ProfileParser(self.pack(), device.port, 4)
            self.assertEqual(p.feature_cycles, [{"Mean": [], "Sum": []}])
            with redirect_stdout(io.StringIO()):
                p.run()
        self.assertEqual(p.combined_metrics["RunCount"], 4)
        self.assertEqual(p.feature_cycles, [{"Mean": [1000, 5, 1000], "Sum": [2000, 2000]}])
        self.assertEqual(p.classifier_cycles, [{"PME": [8000, 8000, 6, 8000, 8000]}])
        self.assertEqual(p.feature_times, [{"Mean": [0.5], "Sum": [0.25]}])
        self.assertEqual(p.classifier_times, [{"PME": [0.125, 0.125]}])
        for key, samples in (("Mean", p.feature_cycles[0]["Mean"]), ("Sum", p.feature_cycles[0]["Sum"])):
            self.assertEqual(p.feature_average_cycles[0][key], round(sum(samples) / len(samples)))

    def test_wrong(self) -> None:
        self.assertRaises(FileNotFoundError, ProfileParser, "none.json", "COM3")
        with self.assertRaises(opmeter.OpmeterError):
            ProfileParser(self.pack(), "file:none.log").run()

    @unittest.skipIf(os.name == "nt", "an event of the console goes to the whole test")
    def test_stop(self) -> None:
        with Player(LINE) as device:
            p = ProfileParser(self.pack(), device.port, 1000)
            with redirect_stdout(io.StringIO()):
                thread = threading.Thread(target=p.run)
                thread.start()
                device.played.wait()
                p.stop()
                thread.join()
        self.assertFalse(p.is_running)


class MLTK(ModelCase):
    def test_simulator(self) -> None:
        r = profile_model(str(self.model), accelerator="mvp", return_estimates=True)
        self.assertEqual((r.name, r.accelerator, r.is_simulated, r.cpu_clock_rate), ("net", "mvp", True, 78_000_000))
        self.assertEqual(r.n_layers, len(r.layers))
        self.assertEqual(r.n_unsupported_layers, len(r.unsupported_layers))
        self.assertEqual(r.flatbuffer_size, self.model.stat().st_size)
        summary = r.get_summary()
        for key in ("ops", "macs", "accelerator_cycles", "cpu_cycles"):
            self.assertEqual(getattr(r, key), summary[key], key)
        self.assertAlmostEqual(r.time, summary["time"])
        self.assertAlmostEqual(r.energy, summary["energy"])
        self.assertAlmostEqual(r.cpu_utilization * 100, summary["cpu_utilization"])
        first = r.layers[0]
        self.assertEqual((first.index, first.name, first.opcode_str), (0, "Op0-CONV_2D", "conv_2d"))
        self.assertTrue(first.is_accelerated)
        self.assertFalse(first.is_unsupported)
        self.assertEqual(first["nothing"], 0)
        self.assertGreater(r.stat_total("accelerator_programs"), 0)

        self.assertTrue(str(r).startswith("Profiling Summary\nName: net\nAccelerator: MVP\n"), str(r)[:100])
        self.assertEqual(json.loads(r.to_json())["summary"], summary)
        self.assertIn("k", r.to_dict(format_units=True)["summary"]["tflite_size"])
        head, layers = r.to_csv()
        self.assertTrue(head.startswith("name,accelerator,"))
        self.assertEqual(len(layers.splitlines()), r.n_layers + 1)
        r.generate_report(str(self.folder / "report"), format_units=True)
        names = sorted(p.name for p in (self.folder / "report").iterdir())
        self.assertEqual(names, ["profiling_report-mvp-simulated.json", "profiling_report-mvp-simulated.txt"])

    def test_null(self) -> None:
        """exclude_null=False adds what no layer has, in the original's order."""
        whole = profile_model(str(self.model), accelerator="mvp", return_estimates=True)
        bare = profile_model(str(self.model))
        for units in (False, True):
            data = bare.to_dict(units, exclude_null=False)
            reference = whole.to_dict(units)
            self.assertEqual(list(data["summary"]), list(reference["summary"]))
            self.assertEqual(data["summary_labels"], reference["summary_labels"])
            keys = [*reference["layers"][0], "supported", "error_msg"]
            for layer in data["layers"]:
                self.assertEqual(list(layer), keys)
            self.assertEqual(list(data["layer_labels"]), keys)
            self.assertEqual(data["summary"]["energy"], "0" if units else 0)
            self.assertEqual(data["summary"]["cpu_clock_rate"], reference["summary"]["cpu_clock_rate"])
            self.assertEqual(data["layers"][0]["error_msg"], "" if units else None)
            for r in (whole, bare):  # what is there stays
                excluded = r.to_dict(units)["summary"]
                self.assertEqual({k: r.to_dict(units, False)["summary"][k] for k in excluded}, excluded)
        self.assertNotIn("energy", bare.get_summary())
        self.assertEqual(bare.get_summary(include_labels=True, exclude_null=False)["energy"], ("Energy (J)", 0))
        self.assertIn("\nEnergy (J): 0\n", bare.to_string(exclude_null=False))
        self.assertEqual(json.loads(bare.to_json(exclude_null=False))["summary"]["time"], 0)
        self.assertIn(",energy,", bare.to_csv(exclude_null=False)[1])
        # Both ways to write a table agree.
        text = whole.to_string(exclude_null=False)
        self.assertEqual(text.splitlines()[:5], str(whole).splitlines()[:5])
        self.assertEqual(len(text.splitlines()), len(str(whole).splitlines()))

    def test_choices(self) -> None:
        plain = profile_model(str(self.model))
        self.assertEqual((plain.accelerator, plain.accelerator_cycles, plain.time), (None, 0, 0))
        self.assertGreater(profile_model(str(self.model), return_estimates=True).time, 0)

        class TfliteModel:
            flatbuffer_data = self.model.read_bytes()

        self.assertEqual(profile_model(TfliteModel()).macs, plain.macs)
        wrong: list[dict[str, Any]] = [
            {"build": True},
            {"test": True},
            {"post_process": True},
            {"runtime_buffer_size": 1000},
            {"port": "COM3"},
            {"accelerator": "npu"},
        ]
        for options in wrong:
            with self.assertRaises(ValueError, msg=str(options)):
                profile_model(str(self.model), **options)
        # The layout has operators of TFLite only: counts of an ONNX model would be 0.
        other = self.folder / "other.onnx"
        other.write_bytes(onnx_model())
        for model in (str(other), onnx_model()):
            with self.assertRaisesRegex(ValueError, "opmeter.profile"):
                profile_model(model, accelerator="mvp")
        bare = self.folder / "bare"  # files are told by their content
        bare.write_bytes(self.model.read_bytes())
        self.assertEqual(_path(str(bare), self.folder), str(bare))

    def test_device(self) -> None:
        # The test in Go that runs this one has a board, and a commander in PATH.
        port = os.environ.get("OPMETER_TEST_MLTK_PORT")
        if not port:
            raise unittest.SkipTest("no simulated board: go test ./tools/release has one")
        model = shared("models", "mltk", "keyword_spotting_on_off__34cf4f92.tflite")
        r = profile_model(str(model), accelerator="mvp", use_device=True, port=port, platform="brd2601b")
        self.assertFalse(r.is_simulated)
        self.assertEqual((r.platform, r.n_layers, r.cpu_clock_rate), ("brd2601b", 7, 78_000_000))
        self.assertAlmostEqual(r.time, sum(100e-6 * (i + 1) for i in range(7)), delta=1e-5)

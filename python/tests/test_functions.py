import json
import os
import pickle
import select
import signal
import subprocess
import sys
import types
import unittest
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from typing import Any
from unittest import mock

import opmeter
from opmeter import _functions, _notebook, _program

from .support import ROOT, ModelCase


def message(*fields: tuple[int, Any]) -> bytes:
    """Return a protobuf message: numbers, texts and messages by field."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += bytes([number << 3, value])
        else:
            data = value.encode() if isinstance(value, str) else value
            out += bytes([number << 3 | 2, len(data)]) + data
    return out


def onnx_model() -> bytes:
    """Return a model of one Relu."""
    shape = message((1, message((1, 1))), (1, message((1, 8))))
    kind = message((1, message((1, 1), (2, shape))))
    node = message((1, "x"), (2, "y"), (4, "Relu"))
    graph = message((1, node), (2, "g"), (11, message((1, "x"), (2, kind))), (12, message((1, "y"), (2, kind))))
    return message((1, 8), (7, graph), (8, message((2, 17))))


# A profile of ONNX Runtime of that model.
RECORD = [
    {"cat": "Session", "pid": 1, "tid": 1, "dur": 90, "ts": 1, "ph": "X", "name": "model_run", "args": {}},
    {
        "cat": "Node", "pid": 1, "tid": 1, "dur": 50, "ts": 5, "ph": "X", "name": "a_kernel_time",
        "args": {"op_name": "Relu", "node_index": "0", "provider": "CPUExecutionProvider"},
    },
]  # fmt: skip

# A script that says the number of the process that measures for it. Another process keeps what
# that one writes to: otherwise its next line of progress would end it.
KILLED = """
import subprocess
import sys
import opmeter
from opmeter import _program

start = _program._start

def told(*args):
    process = start(*args)
    wait = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    subprocess.Popen(wait, pass_fds=[process.stderr.fileno()])
    print(process.pid, flush=True)
    return process

_program._start = told
opmeter.profile(sys.argv[1], time=3600, engine="opmeter")
"""


def python_path() -> str:
    """Return the search path of a Python that imports this package."""
    return os.pathsep.join(p for p in [str(ROOT / "python"), os.environ.get("PYTHONPATH", "")] if p)


class Functions(ModelCase):
    def test_summary(self) -> None:
        p = opmeter.summary(self.model)
        self.assertEqual(p.name, "net")
        self.assertIsNone(p.latency)
        self.assertIsNone(p.quality)
        self.assertEqual(len(p.layers), p.totals["layers"])
        self.assertEqual(sum(x.macs or 0 for x in p.layers), p.totals["macs"])
        self.assertEqual(p.layers[0].op, "CONV_2D")
        self.assertEqual([x.index for x in p.layers[1:3]], [1, 2])
        self.assertIn("net", repr(p))

    def test_estimate(self) -> None:
        p = opmeter.estimate(self.model, "stm32h743")
        assert p.latency is not None and p.interval is not None
        self.assertEqual((p.kind, p.target, p.machine), ("estimated", "stm32h743", {}))
        self.assertTrue(p.interval.low < p.latency < p.interval.high)
        self.assertIsNotNone(p.memory.ram)
        table = p.layers.to_dict()
        self.assertEqual(table["index"], list(range(len(p.layers))))
        self.assertEqual(table["latency_s"], [x.latency for x in p.layers])
        self.assertEqual(table["latency_s_low"][0], p.layers[0].interval.low if p.layers[0].interval else None)
        slower = opmeter.estimate(self.model, "stm32h743", clock="100MHz")
        assert slower.latency is not None
        self.assertGreater(slower.latency, p.latency)
        for on in ("host", "device:COM3"):
            with self.assertRaisesRegex(TypeError, "use profile"):
                opmeter.estimate(self.model, on)
        wrong: tuple[Any, ...] = (None, ["a", "b"], {"a": 1}, 3)
        for value in wrong:
            for function in (opmeter.estimate, opmeter.device):
                with self.assertRaisesRegex(TypeError, "^(on|port) is ", msg=str(value)):
                    function(self.model, value)

    def test_models(self) -> None:
        data = self.model.read_bytes()
        want = opmeter.summary(self.model).totals
        self.assertEqual(opmeter.summary(data).totals, want)
        self.assertEqual(opmeter.summary(memoryview(data)).totals, want)
        self.assertEqual(opmeter.summary(str(self.model)).totals, want)
        proto = types.SimpleNamespace(SerializeToString=onnx_model)
        self.assertEqual([x.op for x in opmeter.summary(proto).layers], ["Relu"])
        for model, words in ((3, "not int"), (object(), "TFLiteConverter")):
            with self.assertRaisesRegex(TypeError, words):
                opmeter.summary(model)
        with self.assertRaisesRegex(TypeError, "torch.nn.Module"):
            opmeter.summary(self.model, example_inputs=1)

    def test_torch(self) -> None:
        calls = []

        def export(model: Any, inputs: Any, path: str, **options: Any) -> None:
            calls.append((model.training, inputs, options))
            if not options:
                raise ImportError("onnxscript")
            with open(path, "wb") as f:
                f.write(onnx_model())

        def train(self: Any, mode: bool = True) -> None:
            self.training = mode

        space = {"__module__": "torch.nn.modules.module", "training": True, "train": train}
        base = type("Module", (), {**space, "eval": lambda self: self.train(False)})
        net = type("Net", (base,), {})()
        fake = types.SimpleNamespace(onnx=types.SimpleNamespace(export=export))
        with mock.patch.dict(sys.modules, {"torch": fake}):
            self.assertEqual([x.op for x in opmeter.summary(net, example_inputs=5).layers], ["Relu"])
            self.assertEqual(calls, [(False, (5,), {}), (False, (5,), {"dynamo": False})])
            self.assertTrue(net.training)
            with self.assertRaisesRegex(TypeError, "example_inputs"):
                opmeter.summary(net)
            record = self.folder / "torch.json"
            record.write_text(json.dumps(RECORD), encoding="utf-8")
            joined = opmeter.import_record(record, model=net, example_inputs=(5,))
            self.assertEqual(joined.layers[0].data["outputs"][0]["shape"], [1, 8])
            with self.assertRaisesRegex(TypeError, "model, which is missing"):
                opmeter.import_record(record, example_inputs=(5,))
            self.assertEqual(opmeter.compare(net, onnx_model(), outputs=True, example_inputs=(5,)).verdict, "equal")

    def test_profile(self) -> None:
        p = opmeter.profile(self.model, time=0.1, warmup=0.01, engine="opmeter")
        assert p.latency is not None and p.interval is not None and p.quality is not None
        self.assertEqual((p.kind, p.target, p.engine), ("measured", "host", "opmeter"))
        self.assertIn(p.quality.verdict, ("good", "fair", "unreliable"))
        self.assertIn("os", p.machine)
        shares = [x.share for x in p.layers if x.share is not None]
        self.assertGreater(sum(shares), 0.5)
        self.assertEqual(pickle.loads(pickle.dumps(p)).data, p.data)

        for ending in ("opmeter", "json"):
            file = self.folder / f"saved.{ending}"
            p.save(file)
            self.assertEqual(opmeter.load(file).data, p.data)
        p.save(self.folder / "table.csv")
        self.assertIn("latency_s", (self.folder / "table.csv").read_text(encoding="utf-8"))
        self.assertIn("CONV_2D", p.text(top=2))
        self.assertIn("<html", p.page())
        with self.assertRaisesRegex(TypeError, "did you mean 'top'"):
            p.text(topp=2)

        e = opmeter.estimate(self.model, "stm32h743")
        c = p.compare(e)
        self.assertEqual(len(c.runs), 2)
        self.assertEqual(c.verdicts, [None, "incomparable"])  # a measurement and an estimate
        self.assertTrue(c.rows)
        self.assertIn("stm32h743", c.text())
        named = opmeter.compare(self.folder / "saved.opmeter", e, name=["here", "there"])
        self.assertEqual([r["name"] for r in named.runs], ["here", "there"])
        named.save(self.folder / "both.html")
        self.assertTrue((self.folder / "both.html").exists())
        for wrong in (lambda: opmeter.compare(p), lambda: opmeter.compare(p, e, name=["one"])):
            self.assertRaises(TypeError, wrong)

    def test_notebook(self) -> None:
        p = opmeter.estimate(self.model, "stm32h743")
        text = p._repr_html_()
        self.assertIn("<b>net on stm32h743", text)
        self.assertIn("90 % band", text)
        self.assertIn('sandbox="allow-scripts allow-downloads"', text)
        self.assertEqual(text.count("<iframe"), 1)
        self.assertIn("&lt;head&gt;&lt;base href=&quot;about:srcdoc&quot;&gt;", text)
        self.assertNotIn("<script", text)  # the page is an attribute, all of it
        self.assertEqual(p.layers._repr_html_().count("<tr>"), len(p.layers) + 1)
        p.data["model"]["name"] = "<script>alert(1)</script>"
        self.assertNotIn("<script>", _notebook.summary(p))

    def test_import_record(self) -> None:
        file = self.folder / "record.json"
        file.write_text(json.dumps(RECORD), encoding="utf-8")
        p = opmeter.import_record(file)
        self.assertEqual([x.op for x in p.layers], ["Relu"])
        self.assertEqual(p.incomplete, ())
        joined = opmeter.import_record(file, model=onnx_model())
        self.assertEqual(joined.layers[0].data["outputs"][0]["shape"], [1, 8])

    def test_incomplete(self) -> None:
        """A record that ends early is told of, wherever it is opened."""
        file = self.folder / "half.json"
        file.write_text(json.dumps(RECORD)[:-1], encoding="utf-8")
        with self.assertWarnsRegex(opmeter.OpmeterWarning, "incomplete: ."):
            p = opmeter.import_record(file)
        self.assertIsInstance(p.incomplete[0], opmeter.Missing)
        self.assertEqual((p.incomplete[0].layers, len(p.layers)), ((), 1))
        p.save(self.folder / "half.opmeter")
        with self.assertWarns(opmeter.OpmeterWarning) as c:
            self.assertEqual(opmeter.load(self.folder / "half.opmeter").incomplete, p.incomplete)
        self.assertEqual(c.filename, __file__)

    def test_compress(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", opmeter.OpmeterWarning)
            s = opmeter.compress(
                self.model, flops=True, speedup=1.2, samples=4, method="magnitude", study=self.folder / "net.study"
            )
        self.assertEqual(len(s.plans), 1)
        self.assertIn("as fast", s.text())
        s.save(self.folder / "study.csv")
        self.assertTrue((self.folder / "study.csv").exists())
        with self.assertRaises(TypeError):
            s.text(top=3)

    def test_compress_bytes(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", opmeter.OpmeterWarning)
            s = opmeter.compress(
                self.model.read_bytes(),
                flops=True,
                speedup=1.2,
                samples=4,
                method="magnitude",
                study=self.folder / "bytes.study",
            )
        self.assertEqual(len(s.plans), 1)
        self.assertEqual(_functions._study(b""), "model.study")
        self.assertEqual(_functions._study("models/net.mltk.zip"), "net.study")
        self.assertRaises(TypeError, opmeter.compress, 3)

    def test_compare_study(self) -> None:
        """A study is compared with profiles, by the profiles that it holds."""
        study = self.folder / "compared.study"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", opmeter.OpmeterWarning)
            opmeter.compress(self.model, on="stm32h743", speedup=1.2, samples=4, method="magnitude", study=study)
        e = opmeter.estimate(self.model, "stm32h743")
        c = opmeter.compare(e, study, quantity="params")
        names = [r["name"] for r in c.runs]
        self.assertEqual(names[0], "net on stm32h743 (tflm-cmsis-nn)")
        self.assertTrue(names[1:] and all(n.startswith("compared:") for n in names[1:]), names)
        self.assertIn("compared:", c.text())
        renamed = opmeter.compare(e, study, quantity="params", name=[str(i) for i in range(len(names))])
        self.assertEqual([r["name"] for r in renamed.runs], [str(i) for i in range(len(names))])
        with self.assertRaisesRegex(opmeter.UsageError, "--name"):
            opmeter.compare(e, study, name=["one"])
        with self.assertRaises(opmeter.InputError):
            opmeter.compare(e, self.folder / "none.study")

    def test_compare_outputs(self) -> None:
        data = onnx_model()
        file = self.folder / "relu.onnx"
        file.write_bytes(data)
        p = opmeter.summary(data)
        c = opmeter.compare(data, file, outputs=True, seed=3)
        self.assertEqual((c.verdict, len(c.rows), len(c.sides)), ("equal", 1, 2))
        self.assertEqual(c.data["seed"], 3)
        self.assertIn("Relu", c.text())
        c.save(self.folder / "outputs.md")
        self.assertTrue((self.folder / "outputs.md").exists())
        with self.assertRaisesRegex(opmeter.UsageError, "comparisons of outputs"):
            c.page()
        self.assertIn("equal", repr(c))
        for wrong in (
            lambda: opmeter.compare(opmeter.summary(data), file, outputs=True),
            lambda: p.compare(p, outputs=True),
        ):
            with self.assertRaisesRegex(TypeError, "not profiles"):
                wrong()
        with self.assertRaisesRegex(TypeError, "for outputs=True"):
            opmeter.compare(file, file, example_inputs=1)
        with self.assertRaises(opmeter.UsageError):
            opmeter.compare(file, outputs=True)

    def test_hyphen(self) -> None:
        """A path is a path, also one that looks like a flag."""
        calls = (opmeter.summary, opmeter.profile, opmeter.load, opmeter.import_record, opmeter.compress)
        for name in ("--help", "-none.onnx", "--list", "-"):
            for call in (*calls, lambda x: opmeter.compare(x, x)):
                with self.assertRaises(opmeter.InputError, msg=name) as caught:
                    call(name)
                self.assertIn(name, str(caught.exception))

    def test_compare_models(self) -> None:
        other = self.folder / "other.onnx"
        other.write_bytes(onnx_model())
        c = opmeter.compare(self.model, other)
        self.assertEqual([r["name"] for r in c.runs], ["net", "other"])
        self.assertTrue(c.rows)

    def test_errors(self) -> None:
        damaged = self.folder / "damaged.tflite"
        damaged.write_bytes(self.model.read_bytes()[:100])
        for call, kind, status in (
            (lambda: opmeter.profile(self.model, threads=-1), opmeter.UsageError, 2),
            (lambda: opmeter.profile(self.model, on="nosuchchip"), opmeter.UsageError, 2),
            (lambda: opmeter.summary(damaged), opmeter.InputError, 3),
            (lambda: opmeter.profile(self.model, engine="onnxruntime=/none.so"), opmeter.SourceError, 4),
            (lambda: opmeter.device(self.model, "tcp:127.0.0.1:1", timeout=0.2), opmeter.SourceError, 4),
        ):
            with self.assertRaises(kind) as caught:
                call()
            self.assertEqual(caught.exception.status, status, caught.exception)
            self.assertNotIn("\n", str(caught.exception))
        self.assertTrue(issubclass(opmeter.UsageError, ValueError))
        models = self.folder / "models"
        models.mkdir()
        for name in ("a.tflite", "b.tflite"):
            (models / name).write_bytes(self.model.read_bytes())
        for function in (opmeter.summary, lambda m: opmeter.estimate(m, "stm32h743")):
            with self.assertRaisesRegex(opmeter.OpmeterError, "several profiles"):
                function(models)
        for options in ({"on": ["host", "stm32h743"]}, {"engine": "opmeter,onnxruntime"}, {"engine": 3}):
            with self.assertRaisesRegex(TypeError, "one value|is a text"):
                opmeter.profile(self.model, **options)

    @unittest.skipUnless(hasattr(os, "pidfd_open"), "this system tells nobody of the end of a process")
    def test_killed(self) -> None:
        """A measurement ends with the process that asked for it."""
        env = {**os.environ, "PYTHONPATH": python_path()}
        command = [sys.executable, "-c", KILLED, str(self.model)]
        with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            pid = int(process.stdout.readline())
            ended = os.pidfd_open(pid)
            self.addCleanup(os.close, ended)
            process.kill()
            if not select.select([ended], [], [], 300)[0]:
                os.kill(pid, signal.SIGKILL)
                self.fail("the program is alive")

    def test_progress(self) -> None:
        """Progress is no remark, whether it is shown or not."""
        with mock.patch.object(_program, "find_program", return_value=sys.executable):
            for show in (None, lambda text: None):
                out = _program.run(["-c", "import os; print(os.environ['OPMETER_PROGRESS'])"], show)
                self.assertEqual((out.text.strip(), out.messages), ("1", []))

    @unittest.skipIf(os.name == "nt", "an event of the console goes to the whole test")
    def test_interrupt(self) -> None:
        @contextmanager
        def press() -> Iterator[Any]:
            pressed = []

            def show(text: str) -> None:
                if text.startswith("measuring") and not pressed:
                    pressed.append(text)
                    raise KeyboardInterrupt

            yield show

        with mock.patch.object(_functions._notebook, "progress", press), self.assertRaises(opmeter.Interrupted) as c:
            opmeter.profile(self.model, time=3600, engine="opmeter")
        self.assertIsInstance(c.exception, KeyboardInterrupt)
        self.assertIsInstance(c.exception.result, opmeter.Profile)
        self.assertIsNotNone(c.exception.result.latency)
        # A profile without times is no result.
        for file, measured in ((self.model, False), (c.exception.result, True)):
            kept = file if measured else opmeter.summary(file)
            stopped = mock.Mock(side_effect=opmeter.Interrupted("stopped"))
            ends = mock.patch.multiple(_functions, _run=stopped, _kept=mock.Mock(return_value=kept))
            with ends, self.assertRaises(opmeter.Interrupted) as c:
                opmeter.profile(self.model)
            self.assertEqual(c.exception.result, kept if measured else None)

    @unittest.skipUnless(find_spec("pandas"), "pandas is absent")
    def test_pandas(self) -> None:
        p = opmeter.estimate(self.model, "stm32h743")
        frame = p.layers.to_pandas()
        self.assertEqual(len(frame), len(p.layers))
        self.assertEqual(frame["op"].iloc[0], "CONV_2D")

    @unittest.skipUnless(find_spec("polars"), "polars is absent")
    def test_polars(self) -> None:
        p = opmeter.estimate(self.model, "stm32h743")
        self.assertEqual(p.layers.to_polars()["latency_s"].to_list(), [x.latency for x in p.layers])

    @unittest.skipUnless(find_spec("onnx"), "onnx is absent")
    def test_onnx(self) -> None:
        import onnx

        self.assertEqual([x.op for x in opmeter.summary(onnx.load_from_string(onnx_model())).layers], ["Relu"])


class Program(unittest.TestCase):
    def test_version(self) -> None:
        self.assertTrue(opmeter.version())
        for line, want in (
            ("opmeter version development\n", "development"),
            ("opmeter version v1.2.3 (commit 0123456789ab, 2026-11-29)\n", "v1.2.3"),
            ("opmeter version 0123456 (commit 0123456789ab, 2026-11-29)\n", "0123456"),
        ):
            with mock.patch.object(_program, "run", return_value=_program.Output(line, [])):
                self.assertEqual(opmeter.version(), want)
        with mock.patch("importlib.metadata.version", return_value="1.2.3"):
            self.assertEqual(opmeter.__version__, "1.2.3")
        with mock.patch("importlib.metadata.version", side_effect=PackageNotFoundError):
            self.assertEqual(opmeter.__version__, opmeter.version())
        self.assertFalse(hasattr(opmeter, "__nothing__"))
        self.assertTrue(os.path.isabs(opmeter.find_program()))

    def test_missing(self) -> None:
        with (
            mock.patch.object(_program.os.path, "isfile", return_value=False),
            mock.patch.object(_program.shutil, "which", return_value=None),
            self.assertRaisesRegex(opmeter.MissingProgramError, "pip install"),
        ):
            opmeter.find_program()

    def test_environment(self) -> None:
        self.assertEqual(_program.environment()["VIRTUAL_ENV"], sys.prefix)

    def test_module(self) -> None:
        path = python_path()
        for args, status in ((["version"], 0), (["profile", "none.onnx"], 3)):
            done = subprocess.run(
                [sys.executable, "-m", "opmeter", *args],
                env={**os.environ, "PYTHONPATH": path},
                capture_output=True,
                check=False,
            )
            self.assertEqual(done.returncode, status, done.stderr)

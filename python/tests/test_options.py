import os
import tempfile
import unittest
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from opmeter._options import argument, flags
from opmeter._program import _CLEAR, _Lines

HERE = Path(".")


class Scalar:
    """A scalar of NumPy, as far as flags look at it."""

    shape = ()

    def __init__(self, value: Any) -> None:
        self._value = value

    def __array__(self) -> Any:
        raise AssertionError("a scalar is a number")

    def item(self) -> Any:
        return self._value


class Options(unittest.TestCase):
    def test_values(self) -> None:
        for options, want in (
            ({"threads": 2}, ["--threads=2"]),
            ({"threads": None}, []),
            ({"pin": True, "zeros": False}, ["--pin"]),
            ({"cold": True}, ["--cold"]),
            ({"cold": "start"}, ["--cold=start"]),
            ({"time": 0.3}, ["--time=0.3s"]),
            ({"time": 5}, ["--time=5s"]),
            ({"time": 0.00001}, ["--time=0.00001s"]),
            ({"time": "2m"}, ["--time=2m"]),
            ({"engine_option": {"a": 1, "b": "x"}}, ["--engine-option=a=1", "--engine-option=b=x"]),
            ({"shape": {"image": (1, 3, 224, 224)}}, ["--shape=image=1x3x224x224"]),
            ({"shape": ["a=1x2", "b=3"]}, ["--shape=a=1x2", "--shape=b=3"]),
            ({"input": {"x": Path("x.npy")}}, ["--input=x=x.npy"]),
            ({"max_memory": "4GiB"}, ["--max-memory=4GiB"]),
            ({"time": Decimal("0.25")}, ["--time=0.25s"]),
            ({"time": Fraction(1, 4)}, ["--time=0.25s"]),
            ({"time": Scalar(0.25)}, ["--time=0.25s"]),
            ({"threads": Scalar(2)}, ["--threads=2"]),
            ({"pin": Scalar(True)}, ["--pin"]),
            ({"shape": {"x": (Scalar(1), 2)}}, ["--shape=x=1x2"]),
            ({"engine_option": {"a": Scalar(3)}}, ["--engine-option=a=3"]),
            ({"strict": True}, ["--strict"]),
        ):
            self.assertEqual(flags("profile", options, HERE), want, options)
        self.assertEqual(flags("compress", {"levels": [0.5, 0.9]}, HERE), ["--levels=0.5,0.9"])
        self.assertEqual(flags("import", {"from_": "tflm"}, HERE), ["--from=tflm"])

    def test_wrong(self) -> None:
        for options, words in (
            ({"thread": 2}, "did you mean 'threads'"),
            ({"xyzzy": 2}, "unexpected keyword argument 'xyzzy'$"),
            ({"top": 3}, "use save"),
            ({"format": "json"}, "use save"),
            ({"pin": 3}, "is a switch"),
            ({"threads": False}, "leave it out"),
            ({"threads": True}, "takes N$"),
            ({"time": True}, "takes TIME$"),
            ({"threads": Scalar(True)}, "takes N$"),
            ({"threads": {"a": 1}}, "not a mapping"),
        ):
            with self.assertRaisesRegex(TypeError, words, msg=str(options)):
                flags("profile", options, HERE)
        with self.assertRaisesRegex(TypeError, "unexpected"):
            flags("import", {"model": "x"}, HERE, taken=("model",))

    @unittest.skipUnless(find_spec("numpy"), "numpy is absent")
    def test_arrays(self) -> None:
        import numpy

        with tempfile.TemporaryDirectory() as d:
            (flag,) = flags("profile", {"input": {"x": numpy.arange(6.0).reshape(2, 3)}}, Path(d))
            name, _, path = flag.rpartition("=")
            self.assertEqual(name, "--input=x")
            self.assertEqual(numpy.load(path).shape, (2, 3))
        for key, value, want in (
            ("threads", numpy.int64(2), "--threads=2"),
            ("time", numpy.int64(2), "--time=2s"),
            ("time", numpy.float32(0.5), "--time=0.5s"),
            ("time", numpy.float64(0.5), "--time=0.5s"),
            ("time", numpy.array(0.5), "--time=0.5s"),
            ("pin", numpy.bool_(True), "--pin"),
        ):
            self.assertEqual(flags("profile", {key: value}, HERE), [want], type(value))

    def test_argument(self) -> None:
        for path in ("--help", "-net.onnx", "-"):
            self.assertEqual(argument(path), os.path.join(os.curdir, path))
        for path in ("net.onnx", os.path.abspath("-net.onnx")):
            self.assertEqual(argument(path), path)
        self.assertEqual(argument(b"net.onnx"), "net.onnx")
        self.assertEqual(argument(Path("-x")), os.path.join(os.curdir, "-x"))


class Lines(unittest.TestCase):
    def test_progress_and_messages(self) -> None:
        text = f"{_CLEAR}loading, 1 s{_CLEAR}measuring [==] 20 %{_CLEAR}opmeter: a remark\n\nlast µ\n"
        for size in (1, 3, len(text)):
            shown: list[str] = []
            lines = _Lines(shown.append)
            for i in range(0, len(text), size):
                lines.feed(text[i : i + size])
            self.assertEqual(lines.messages, ["opmeter: a remark", "last µ"], size)
            if size == 1:
                self.assertIn("loading, 1 s", shown)
                self.assertIn("measuring [==] 20 %", shown)
            self.assertFalse([s for s in shown if "\r" in s or "\x1b" in s], shown)

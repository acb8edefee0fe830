import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path

from opmeter._options import flags
from opmeter._program import _CLEAR, _Lines

HERE = Path(".")


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
        self.assertEqual(flags("profile", {"threads": numpy.int64(2)}, HERE), ["--threads=2"])


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

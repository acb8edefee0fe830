"""The plain loop of a user of ONNX Runtime: the yardstick for the total of `opmeter profile --engine onnxruntime`.

    python3 bench/engines/onnxruntime.py [--threads 1] [--seconds 1] [--optimization all] [--library FILE] [--inputs FOLDER] MODEL

Inputs and outputs are bound once; what is timed is one call of the library. The package of Python holds the engine twice:
linked into the package's own module, and as libonnxruntime.so, for C. These are two builds and differ by up to a tenth.
Packages: onnxruntime, numpy.
"""

import ctypes
import os
import sys

import plain

# This file has the name of the package that it imports.
here = os.path.dirname(os.path.abspath(__file__))
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != here]

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # as opmeter does: nothing is sent of the models

import numpy as np
import onnxruntime as ort

LEVELS = {
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
TYPES = {
    "float": np.float32, "double": np.float64, "float16": np.float16, "int8": np.int8, "int16": np.int16, "int32": np.int32,
    "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64, "bool": np.bool_,
    "string": np.str_,
}


def session(a):
    o = ort.SessionOptions()
    o.intra_op_num_threads = a.threads
    o.inter_op_num_threads = 1
    o.graph_optimization_level = LEVELS[a.optimization]
    o.log_severity_level = 4
    return ort.InferenceSession(a.model, o, providers=["CPUExecutionProvider"])


def library(a, inputs, outputs):
    """A call of the C interface: what OrtApi has at some places, and the steps of its users. Inputs are names, arrays and
    types, outputs names and whether their shapes are fixed."""
    lib = ctypes.CDLL(a.library)
    lib.OrtGetApiBase.restype = ctypes.POINTER(ctypes.c_void_p)
    table = ctypes.cast(ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(lib.OrtGetApiBase()[0])(16), ctypes.POINTER(ctypes.c_void_p))
    pointer = ctypes.c_void_p

    def failed(status):
        text = ctypes.CFUNCTYPE(ctypes.c_char_p, pointer)(table[2])(status)
        sys.exit(f"{a.library}: {text.decode()}")

    def call(slot, *args):
        status = ctypes.CFUNCTYPE(pointer, *[type(x) for x in args])(table[slot])(*args)
        if status:
            failed(status)

    def make(slot, *args):
        out = pointer()
        call(slot, *args, ctypes.pointer(out))
        return out

    number = ctypes.c_int
    env = make(3, number(4), ctypes.c_char_p(b"plain"))
    o = make(10)
    call(24, o, number(a.threads))
    call(25, o, number(1))
    call(23, o, number({"none": 0, "basic": 1, "extended": 2, "all": 99}[a.optimization]))
    session = make(7, env, ctypes.c_char_p(os.fsencode(a.model)), o)
    cpu = make(69, number(0), number(0))
    values = (pointer * max(1, len(inputs)))()
    for i, (_, x, element) in enumerate(inputs):
        shape = (ctypes.c_int64 * max(1, x.ndim))(*x.shape)
        values[i] = make(49, cpu, pointer(x.ctypes.data), ctypes.c_size_t(x.nbytes), shape, ctypes.c_size_t(x.ndim), number(element)).value
    ins = (ctypes.c_char_p * max(1, len(inputs)))(*[name.encode() for name, _, _ in inputs])
    outs = (ctypes.c_char_p * len(outputs))(*[name.encode() for name in outputs])
    # The first run makes the outputs, and those that follow write into them, but for those without a fixed shape, which the
    # library makes anew.
    results = (pointer * len(outputs))()
    run = plain.Call(
        table[9],
        [session.value, 0, ctypes.addressof(ins), ctypes.addressof(values), len(inputs), ctypes.addressof(outs), len(outputs), ctypes.addressof(results)],
        failed,
        [lib, values, ins, outs, results, inputs],
    )
    anew = [i for i, fixed in enumerate(outputs.values()) if not fixed]
    if not anew:
        return run
    release = ctypes.CFUNCTYPE(None, pointer)(table[96])

    def both():
        run.run()
        for i in anew:
            release(results[i])
            results[i] = None

    return plain.Calls(both, run.cost_s * (1 + len(anew)))


def main():
    a = plain.arguments(__doc__, lambda p: p.add_argument("--optimization", choices=LEVELS, default="all"))
    s = session(a)
    if a.library:
        kinds = "undefined float uint8 int8 uint16 int16 int32 int64 string bool float16 double uint32 uint64".split()
        elements = [x.type[len("tensor(") : -1] for x in s.get_inputs()]
        inputs = [
            (x.name, np.ascontiguousarray(plain.given(a.inputs, i, x.shape, TYPES[e])), kinds.index(e))
            for i, (x, e) in enumerate(zip(s.get_inputs(), elements))
        ]
        outputs = {x.name: x.type.startswith("tensor") and all(isinstance(d, int) for d in x.shape) for x in s.get_outputs()}
        del s
        plain.measure(library(a, inputs, outputs), a, engine="onnxruntime", library=a.library)
        return
    binding = s.io_binding()
    kept = []
    for i, x in enumerate(s.get_inputs()):
        value = ort.OrtValue.ortvalue_from_numpy(plain.given(a.inputs, i, x.shape, TYPES[x.type[len("tensor(") : -1]]))
        kept.append(value)
        binding.bind_ortvalue_input(x.name, value)
    for x in s.get_outputs():
        binding.bind_output(x.name)
    plain.measure(lambda: s.run_with_iobinding(binding), a, engine="onnxruntime", version=ort.__version__)


if __name__ == "__main__":
    main()

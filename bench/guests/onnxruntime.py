"""The plain loop of a user of ONNX Runtime: the yardstick for the total of `opmeter profile --engine onnxruntime`.

    python3 bench/guests/onnxruntime.py [--threads 1] [--seconds 1] [--optimization all] [--inputs FOLDER] MODEL

Inputs and outputs are bound once; what is timed is one call of the library.
Packages: onnxruntime, numpy.
"""

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


def main():
    a = plain.arguments(__doc__, lambda p: p.add_argument("--optimization", choices=LEVELS, default="all"))
    s = session(a)
    binding = s.io_binding()
    kept = []
    for i, x in enumerate(s.get_inputs()):
        value = ort.OrtValue.ortvalue_from_numpy(plain.given(a.inputs, i, x.shape, TYPES[x.type[len("tensor(") : -1]]))
        kept.append(value)
        binding.bind_ortvalue_input(x.name, value)
    for x in s.get_outputs():
        binding.bind_output(x.name)
    plain.measure(lambda: s.run_with_iobinding(binding), a.seconds, engine="onnxruntime", version=ort.__version__)


if __name__ == "__main__":
    main()

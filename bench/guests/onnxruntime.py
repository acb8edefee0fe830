"""The plain loop of a user of ONNX Runtime: the yardstick for the total of `opmeter profile --engine onnxruntime`.

    python bench/guests/onnxruntime.py [--threads 1] [--seconds 2] [--optimization all] MODEL INPUT.npy ...

Inputs are files in the model's order, or random numbers where none is given and the model states all shapes. They and
the outputs are bound once; what is timed is one call of the library. Prints the median, quartiles and number of runs, in seconds.
"""

import argparse
import json
import os
import sys
import time

# This file has the name of the package that it imports.
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

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
}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("inputs", nargs="*")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--warmup", type=float, default=0.5)
    p.add_argument("--optimization", choices=LEVELS, default="all")
    p.add_argument("--plain", action="store_true", help="run without binding, as most callers do")
    return p.parse_args()


def session(a):
    o = ort.SessionOptions()
    o.intra_op_num_threads = a.threads
    o.inter_op_num_threads = 1
    o.graph_optimization_level = LEVELS[a.optimization]
    o.log_severity_level = 4
    return ort.InferenceSession(a.model, o, providers=["CPUExecutionProvider"])


def inputs(a, s):
    rng = np.random.default_rng(0)
    out = {}
    for i, x in enumerate(s.get_inputs()):
        if i < len(a.inputs):
            out[x.name] = np.load(a.inputs[i])
            continue
        shape = [d if isinstance(d, int) and d > 0 else 1 for d in x.shape]
        t = TYPES[x.type[len("tensor(") : -1]]
        out[x.name] = (rng.random(shape) if np.issubdtype(t, np.floating) else np.ones(shape)).astype(t)
    return out


def main():
    a = arguments()
    s = session(a)
    feeds = inputs(a, s)
    if a.plain:
        names = [o.name for o in s.get_outputs()]

        def run():
            s.run(names, feeds)
    else:
        b = s.io_binding()
        keep = {n: ort.OrtValue.ortvalue_from_numpy(x) for n, x in feeds.items()}
        for n, v in keep.items():
            b.bind_ortvalue_input(n, v)
        for o in s.get_outputs():
            b.bind_output(o.name)

        def run():
            s.run_with_iobinding(b)

    clock = time.perf_counter_ns
    end = clock() + int(a.warmup * 1e9)
    while clock() < end:
        run()
    times = []
    end = clock() + int(a.seconds * 1e9)
    while clock() < end or len(times) < 3:
        t = clock()
        run()
        times.append(clock() - t)
    q = np.percentile(times, [25, 50, 75]) / 1e9
    print(json.dumps({"median_s": q[1], "p25_s": q[0], "p75_s": q[2], "runs": len(times), "version": ort.__version__}))


if __name__ == "__main__":
    main()

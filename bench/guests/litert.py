#!/usr/bin/env python3
"""The plain loop of somebody who runs a model with LiteRT: what opmeter's figures are compared with.

    python3 bench/guests/litert.py MODEL.tflite [--api compiled|interpreter] [--threads N]
        [--runs N] [--warmup N] [--inputs FOLDER]

Prints one JSON object: the median and other figures of the times of single runs, in
seconds, and the version. Inputs are written once, before the loop. FOLDER holds
0.npy, 1.npy, ... in the order of the model's inputs; without it they are zeros of the
declared shapes, unknown dimensions being 1.

Packages: ai-edge-litert, numpy, ml_dtypes.
"""

import argparse
import importlib.metadata
import json
import os
import statistics
import time

import numpy as np


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("--api", choices=["compiled", "interpreter"], default="compiled")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--runs", type=int, default=200)
    p.add_argument("--warmup", type=int, default=10)
    p.add_argument("--inputs")
    return p.parse_args()


def given(folder, i, shape, dtype):
    """The tensor of input i."""
    if folder:
        return np.load(os.path.join(folder, f"{i}.npy"))
    return np.zeros([max(1, int(d)) for d in shape], dtype)


def interpreter(a):
    """A function that runs the model by the Interpreter, as TensorFlow Lite had it."""
    from ai_edge_litert.interpreter import Interpreter

    it = Interpreter(a.model, num_threads=a.threads)
    details = it.get_input_details()
    tensors = [given(a.inputs, i, d["shape"], d["dtype"]) for i, d in enumerate(details)]
    for d, x in zip(details, tensors):
        if list(d["shape"]) != list(x.shape):
            it.resize_tensor_input(d["index"], x.shape)
    it.allocate_tensors()
    for d, x in zip(details, tensors):
        it.set_tensor(d["index"], x)
    return it.invoke


def compiled(a):
    """A function that runs the model by the CompiledModel, LiteRT's own interface."""
    from ai_edge_litert.compiled_model import CompiledModel
    from ai_edge_litert.options import CpuOptions, HardwareAccelerator, Options
    from ai_edge_litert.interpreter import Interpreter

    model = CompiledModel.from_file(
        a.model,
        options=Options(hardware_accelerators=HardwareAccelerator.CPU, cpu_options=CpuOptions(num_threads=a.threads)),
    )
    # Shapes and types by the interpreter, which says them in the order of the graph.
    details = Interpreter(a.model).get_input_details()
    ins, outs = model.create_input_buffers(0), model.create_output_buffers(0)
    for i, (buffer, d) in enumerate(zip(ins, details)):
        x = given(a.inputs, i, d["shape"], d["dtype"])
        # The buffer takes bytes of some of the types only: others go as the bytes that they are.
        x = np.ascontiguousarray(x)
        buffer.write(x if x.dtype in (np.float32, np.int32, np.int8) else x.view(np.int8))
    return lambda: model.run_by_index(0, ins, outs)


def main():
    a = arguments()
    run = {"compiled": compiled, "interpreter": interpreter}[a.api](a)
    for _ in range(a.warmup):
        run()
    times = []
    for _ in range(a.runs):
        begin = time.perf_counter_ns()
        run()
        times.append((time.perf_counter_ns() - begin) / 1e9)
    print(json.dumps({
        "engine": "litert", "api": a.api, "version": importlib.metadata.version("ai-edge-litert"), "runs": a.runs,
        "median_s": statistics.median(times), "mean_s": statistics.fmean(times), "min_s": min(times), "max_s": max(times),
    }))


if __name__ == "__main__":
    main()

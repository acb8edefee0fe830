#!/usr/bin/env python3
"""The plain loop of a user of OpenVINO, to compare totals with.

    python3 openvino.py [--threads N] [--runs N] [--seconds S] [--device CPU]
                        [--shape NAME=1,2,3]... [--property KEY=VALUE]... MODEL

compiles a model for latency with one stream, as opmeter does, sets the request's
inputs once, runs request.infer() and prints the median in seconds as JSON. Open
dimensions are 1 where --shape does not say. Needs the package openvino.
"""

import argparse
import json
import statistics
import sys
import time

# This file has the package's name: its folder is not where to look for that.
del sys.path[0]

import numpy as np
import openvino as ov


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=0, help="0 for as many as fit into the time")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1,2,3")
    parser.add_argument("--property", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()

    core = ov.Core()
    model = core.read_model(args.model)
    given = dict(s.rsplit("=", 1) for s in args.shape)
    shapes = {}
    for port in model.inputs:
        shape = port.partial_shape
        name = port.any_name
        if name in given:
            shapes[port] = [int(d) for d in given[name].split(",") if d]
        elif shape.is_dynamic and shape.rank.is_static:
            shapes[port] = [d.get_length() if d.is_static else 1 for d in shape]
    if shapes:
        model.reshape(shapes)
    config = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": str(args.threads)}
    config.update(p.split("=", 1) for p in args.property)
    compiled = core.compile_model(model, args.device, config)
    request = compiled.create_infer_request()

    draw = np.random.default_rng(1)
    for i, port in enumerate(compiled.inputs):
        dtype = port.element_type.to_dtype()
        shape = tuple(port.shape)
        if np.issubdtype(dtype, np.floating):
            data = draw.random(shape).astype(dtype)
        else:
            data = draw.integers(0, 2, shape).astype(dtype)
        request.set_input_tensor(i, ov.Tensor(data))

    def run():
        began = time.perf_counter_ns()
        request.infer()
        return time.perf_counter_ns() - began

    end = time.perf_counter() + args.seconds / 4
    while time.perf_counter() < end:
        run()
    times = []
    end = time.perf_counter() + args.seconds
    while len(times) < args.runs if args.runs else time.perf_counter() < end or len(times) < 10:
        times.append(run())
    print(json.dumps({
        "engine": "openvino", "version": ov.__version__, "model": args.model, "runs": len(times),
        "median_s": statistics.median(times) / 1e9, "min_s": min(times) / 1e9,
        "precision": str(compiled.get_property("INFERENCE_PRECISION_HINT")) if args.device == "CPU" else None,
    }))


if __name__ == "__main__":
    main()

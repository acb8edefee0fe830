"""The plain loop of a user of OpenVINO: the yardstick for the total of `opmeter profile --engine openvino`.

    python3 bench/guests/openvino.py [--threads 1] [--seconds 1] [--device CPU] [--property KEY=VALUE]... [--inputs FOLDER] MODEL

The model is compiled for latency with one stream, with the shapes of the inputs; these are set once, and what is timed
is one call of request.infer(). Packages: openvino, numpy.
"""

import os
import sys

import plain

# This file has the name of the package that it imports.
here = os.path.dirname(os.path.abspath(__file__))
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != here]

import numpy as np
import openvino as ov


def flags(p):
    p.add_argument("--device", default="CPU")
    p.add_argument("--property", action="append", default=[], metavar="KEY=VALUE")


def main():
    a = plain.arguments(__doc__, flags)
    core = ov.Core()
    model = core.read_model(a.model)
    tensors = []
    for i, port in enumerate(model.inputs):
        shape = port.partial_shape
        sizes = [d.get_length() if d.is_static else 1 for d in shape] if shape.rank.is_static else []
        tensors.append(plain.given(a.inputs, i, sizes, port.element_type.to_dtype()))
    model.reshape({port: list(x.shape) for port, x in zip(model.inputs, tensors)})
    config = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": str(a.threads)}
    config.update(p.split("=", 1) for p in a.property)
    compiled = core.compile_model(model, a.device, config)
    request = compiled.create_infer_request()
    for i, x in enumerate(tensors):
        request.set_input_tensor(i, ov.Tensor(np.ascontiguousarray(x)))
    says = {"engine": "openvino", "version": ov.__version__}
    if a.device == "CPU":
        says["precision"] = str(compiled.get_property("INFERENCE_PRECISION_HINT"))
    plain.measure(request.infer, a.seconds, **says)


if __name__ == "__main__":
    main()

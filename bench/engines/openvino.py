"""The plain loop of a user of OpenVINO: the yardstick for the total of `opmeter profile --engine openvino`.

    python3 bench/engines/openvino.py [--threads 1] [--seconds 1] [--device CPU] [--property KEY=VALUE]... [--inputs FOLDER] MODEL

The model is compiled for latency with one stream, with the shapes of the inputs; these are set once, and what is timed
is one call of request.infer(), or with --library FILE of ov_infer_request_infer. Packages: openvino, numpy.
"""

import ctypes
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


def library(a, tensors, config):
    """A call of the C interface, by the steps of its users."""
    lib = plain.Library(a.library, lambda: (lib.c.ov_get_last_err_msg() or b"").decode())
    lib.c.ov_get_last_err_msg.restype = ctypes.c_char_p
    call, make = lib.call, lib.make

    class Shape(ctypes.Structure):
        """ov_partial_shape: its rank and its dimensions, each from a least to a greatest."""

        _fields_ = [("rank", ctypes.c_int64 * 2), ("dims", ctypes.c_void_p)]

    core = make("ov_core_create")
    model = make("ov_core_read_model", core, os.fsencode(a.model), None)
    shapes, kept = (Shape * max(1, len(tensors)))(), []
    for s, x in zip(shapes, tensors):
        dims = (ctypes.c_int64 * (2 * x.ndim + 1))(*[d for n in x.shape for d in (n, n)])
        kept.append(dims)
        s.rank[:] = x.ndim, x.ndim
        s.dims = ctypes.addressof(dims)
    at = (ctypes.c_size_t * max(1, len(tensors)))(*range(len(tensors)))
    call("ov_model_reshape_by_port_indexes", model, at, shapes, ctypes.c_size_t(len(tensors)))
    compiled, pairs = ctypes.c_void_p(), [ctypes.c_char_p(t.encode()) for kv in config.items() for t in kv]
    call("ov_core_compile_model", core, model, a.device.encode(), ctypes.c_size_t(len(pairs)), ctypes.byref(compiled), *pairs)
    request = make("ov_compiled_model_create_infer_request", compiled)
    for i, x in enumerate(tensors):
        x = np.ascontiguousarray(x)
        tensor = make("ov_infer_request_get_input_tensor_by_index", request, ctypes.c_size_t(i))
        place = make("ov_tensor_data", tensor)
        ctypes.memmove(place, x.ctypes.data, x.nbytes)
    return plain.Call(lib.address("ov_infer_request_infer"), [request.value], lib.failed)


def main():
    a = plain.arguments(__doc__, flags)
    core = ov.Core()
    model = core.read_model(a.model)
    tensors = []
    for i, port in enumerate(model.inputs):
        shape = port.partial_shape
        sizes = [d.get_length() if d.is_static else 1 for d in shape] if shape.rank.is_static else []
        tensors.append(plain.given(a.inputs, i, sizes, port.element_type.to_dtype()))
    config = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": str(a.threads)}
    config.update(p.split("=", 1) for p in a.property)
    if a.library:
        plain.measure(library(a, tensors, config), a, engine="openvino", library=a.library)
        return
    model.reshape({port: list(x.shape) for port, x in zip(model.inputs, tensors)})
    compiled = core.compile_model(model, a.device, config)
    request = compiled.create_infer_request()
    for i, x in enumerate(tensors):
        request.set_input_tensor(i, ov.Tensor(np.ascontiguousarray(x)))
    says = {"engine": "openvino", "version": ov.__version__}
    if a.device == "CPU":
        says["precision"] = str(compiled.get_property("INFERENCE_PRECISION_HINT"))
    plain.measure(request.infer, a, **says)


if __name__ == "__main__":
    main()

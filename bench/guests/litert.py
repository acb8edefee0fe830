"""The plain loop of a user of LiteRT: the yardstick for the total of `opmeter profile --engine litert`.

    python3 bench/guests/litert.py [--threads 1] [--seconds 1] [--api compiled] [--inputs FOLDER] MODEL

Inputs are written once; what is timed is one call of the library, by the CompiledModel or by the older Interpreter.
Packages: ai-edge-litert, numpy, ml_dtypes.
"""

import importlib.metadata

import numpy as np
import plain


def interpreter(a):
    """A function that runs the model by the Interpreter, as TensorFlow Lite had it."""
    from ai_edge_litert.interpreter import Interpreter

    it = Interpreter(a.model, num_threads=a.threads)
    details = it.get_input_details()
    tensors = [plain.given(a.inputs, i, d["shape"].tolist(), d["dtype"]) for i, d in enumerate(details)]
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
    from ai_edge_litert.interpreter import Interpreter
    from ai_edge_litert.options import CpuOptions, HardwareAccelerator, Options

    model = CompiledModel.from_file(
        a.model,
        options=Options(hardware_accelerators=HardwareAccelerator.CPU, cpu_options=CpuOptions(num_threads=a.threads)),
    )
    # Shapes and types by the interpreter, which says them in the order of the graph.
    details = Interpreter(a.model).get_input_details()
    ins, outs = model.create_input_buffers(0), model.create_output_buffers(0)
    for i, (buffer, d) in enumerate(zip(ins, details)):
        # The buffer takes some of the types only: others go as the bytes that they are.
        x = np.ascontiguousarray(plain.given(a.inputs, i, d["shape"].tolist(), d["dtype"]))
        buffer.write(x if x.dtype in (np.float32, np.int32, np.int8) else x.view(np.int8))
    return lambda: model.run_by_index(0, ins, outs)


def main():
    apis = {"compiled": compiled, "interpreter": interpreter}
    a = plain.arguments(__doc__, lambda p: p.add_argument("--api", choices=apis, default="compiled"))
    plain.measure(apis[a.api](a), a.seconds, engine="litert", api=a.api, version=importlib.metadata.version("ai-edge-litert"))


if __name__ == "__main__":
    main()

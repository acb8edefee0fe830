"""The plain loop of a user of LiteRT: the yardstick for the total of `opmeter profile --engine litert`.

    python3 bench/engines/litert.py [--threads 1] [--seconds 1] [--api compiled] [--library FILE] [--inputs FOLDER] MODEL

Inputs are written once; what is timed is one call of the library, by the CompiledModel or by the older Interpreter. The package of
Python holds the engine twice: in libpywrap_litert_common.so, for Python, and as libLiteRt.so, for C.
Packages: ai-edge-litert, numpy, ml_dtypes.
"""

import ctypes
import importlib.metadata
import os

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


def library(a):
    """A call of the C interface, by the steps of its users: an environment, a compiled model, buffers that are filled once."""
    from ai_edge_litert.interpreter import Interpreter

    details = Interpreter(a.model).get_input_details()
    lib = plain.Library(a.library)
    call, make = lib.call, lib.make
    size, pointer = ctypes.c_size_t, ctypes.c_void_p

    class Option(ctypes.Structure):
        """LiteRtEnvOption: a tag, and a LiteRtAny."""

        _fields_ = [("tag", ctypes.c_int32), ("pad", ctypes.c_int32), ("kind", ctypes.c_int32), ("more", ctypes.c_int32), ("value", ctypes.c_uint64)]

    class Layout(ctypes.Structure):
        """LiteRtLayout."""

        _fields_ = [("rank", ctypes.c_uint32), ("dims", ctypes.c_int32 * 8), ("strides", ctypes.c_uint32 * 8)]

    class Type(ctypes.Structure):
        """LiteRtRankedTensorType."""

        _fields_ = [("element", ctypes.c_int32), ("layout", Layout)]

    folder = ctypes.create_string_buffer(os.fsencode(os.path.dirname(a.library)))
    cpu, integer, text = 1, 2, 8
    about = (Option * 3)((25, 0, integer, 0, 3), (24, 0, integer, 0, cpu), (22, 0, text, 0, ctypes.addressof(folder)))
    env = make("LiteRtCreateEnvironment", size(len(about)), about)
    model = make("LiteRtCreateModelFromFile", env, os.fsencode(a.model))
    options = make("LiteRtCreateOptions")
    call("LiteRtSetOptionsHardwareAccelerators", options, ctypes.c_int(cpu))
    threads = ctypes.create_string_buffer(f"num_threads = {a.threads}\n".encode())
    nothing = ctypes.CFUNCTYPE(None, pointer)(lambda _: None)
    call("LiteRtAddOpaqueOptions", options, make("LiteRtCreateOpaqueOptions", b"xnnpack", threads, nothing))
    graph = make("LiteRtGetModelSubgraph", model, make("LiteRtGetMainModelSubgraphIndex", model, of=size))
    signature = None
    for i in range(make("LiteRtGetNumModelSignatures", model, of=size).value):
        if make("LiteRtGetSignatureSubgraph", make("LiteRtGetModelSignature", model, size(i))).value == graph.value:
            signature = size(i)
    compiled = make("LiteRtCreateCompiledModel", env, model, options)

    def buffer(port, needs, i, layout):
        kind = make("LiteRtGetRankedTensorType", make(port, graph, size(i)), of=Type)
        kind.layout = layout
        return make("LiteRtCreateManagedTensorBufferFromRequirements", env, ctypes.byref(kind), make(needs, compiled, signature, size(i)))

    tensors = [np.ascontiguousarray(plain.given(a.inputs, i, d["shape"].tolist(), d["dtype"])) for i, d in enumerate(details)]
    shapes = []
    for i, x in enumerate(tensors):
        shape = make("LiteRtGetCompiledModelInputTensorLayout", compiled, signature, size(i), of=Layout)
        if list(shape.dims[: shape.rank & 0x7F]) != list(x.shape):
            shape.rank, shape.dims[: x.ndim] = x.ndim, x.shape
            call("LiteRtCompiledModelResizeInputTensorNonStrict", compiled, signature, size(i), shape.dims, size(x.ndim))
        shapes.append(shape)
    number = make("LiteRtGetNumSubgraphOutputs", graph, of=size).value
    layouts = (Layout * max(1, number))()
    call("LiteRtGetCompiledModelOutputTensorLayouts", compiled, signature, size(number), layouts, ctypes.c_bool(True))
    ins = [buffer("LiteRtGetSubgraphInput", "LiteRtGetCompiledModelInputBufferRequirements", i, s) for i, s in enumerate(shapes)]
    outs = [buffer("LiteRtGetSubgraphOutput", "LiteRtGetCompiledModelOutputBufferRequirements", i, layouts[i]) for i in range(number)]
    for b, x in zip(ins, tensors):
        place = pointer()
        call("LiteRtLockTensorBuffer", b, ctypes.byref(place), ctypes.c_int(1))
        ctypes.memmove(place, x.ctypes.data, x.nbytes)
        call("LiteRtUnlockTensorBuffer", b)
    lists = [(pointer * max(1, len(bs)))(*bs) for bs in (ins, outs)]
    args = [compiled.value, signature.value, len(ins), ctypes.addressof(lists[0]), len(outs), ctypes.addressof(lists[1])]
    return plain.Call(lib.address("LiteRtRunCompiledModel"), args, lib.failed, [folder, about, threads, nothing, lists])


def main():
    apis = {"compiled": compiled, "interpreter": interpreter}
    a = plain.arguments(__doc__, lambda p: p.add_argument("--api", choices=apis, default="compiled"))
    if a.library:
        plain.measure(library(a), a, engine="litert", library=a.library)
        return
    plain.measure(apis[a.api](a), a, engine="litert", api=a.api, version=importlib.metadata.version("ai-edge-litert"))


if __name__ == "__main__":
    main()

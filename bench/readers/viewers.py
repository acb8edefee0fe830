"""Checks the files for viewers of models: viewers.py FOLDER.

FOLDER holds m.tflite and n.onnx, the node data m.nodes.json and n.nodes.json, and the annotated
model noted.onnx. See run.
"""

import json
import pathlib
import sys

import numpy
import onnx
import onnxruntime
from model_explorer import node_data_builder
from model_explorer.builtin_tflite_flatbuffer_adapter import BuiltinTfliteFlatbufferAdapter
from model_explorer_onnx.main import ONNXAdapter

folder = pathlib.Path(sys.argv[1])


def graphs(converted):
    """Ids of the nodes of each graph, from either form that adapters return."""
    listed = converted.get("graphs") or [g for c in converted["graphCollections"] for g in getattr(c, "graphs", None) or c["graphs"]]
    return [{n["id"] if isinstance(n, dict) else n.id for n in (g["nodes"] if isinstance(g, dict) else g.nodes)} for g in listed]


def check_nodes(data, adapter, model):
    doc = json.loads((folder / data).read_text())
    ids = graphs(adapter.convert(str(folder / model), {}))[0]
    assert doc["results"].keys() <= ids, f"{data}: {doc['results'].keys() - ids} are no nodes of the graph"
    built = node_data_builder.GraphNodeData(
        results={k: node_data_builder.NodeDataResult(**v) for k, v in doc["results"].items()},
        gradient=[node_data_builder.GradientItem(**g) for g in doc["gradient"]],
    )
    again = json.loads(built.to_json_string())
    assert {k: again[k] for k in doc} == doc, f"{data}: the builder of the viewer writes it otherwise"
    print(f"{data}: {len(doc['results'])} values, all on nodes of the graph of {len(ids)}")


check_nodes("m.nodes.json", BuiltinTfliteFlatbufferAdapter(), "m.tflite")
check_nodes("n.nodes.json", ONNXAdapter(), "n.onnx")

plain, noted = onnx.load(folder / "n.onnx"), onnx.load(folder / "noted.onnx")
onnx.checker.check_model(noted, full_check=True)
timed = sum(any(p.key == "opmeter.time" for p in n.metadata_props) for n in noted.graph.node)
assert timed, "no node has a time"


def run(name):
    s = onnxruntime.InferenceSession(folder / name, providers=["CPUExecutionProvider"])
    shapes = {i.name: [d if isinstance(d, int) else 1 for d in i.shape] for i in s.get_inputs()}
    kinds = {i.name: i.type.tensor_type.elem_type for i in plain.graph.input}
    return s.run(None, {k: numpy.ones(v, onnx.helper.tensor_dtype_to_np_dtype(kinds[k])) for k, v in shapes.items()})


assert all(numpy.array_equal(a, b, equal_nan=True) for a, b in zip(run("n.onnx"), run("noted.onnx"))), "outputs differ"
for m in plain, noted:
    for props in [m.metadata_props, *(n.metadata_props for n in m.graph.node)]:
        kept = [p for p in props if not p.key.startswith("opmeter.")]
        del props[:]
        props.extend(kept)
assert plain.SerializeToString(deterministic=True) == noted.SerializeToString(deterministic=True), "more than metadata differs"
print(f"noted.onnx: {timed} of {len(noted.graph.node)} nodes have a time; valid, and the same outputs in ONNX Runtime")

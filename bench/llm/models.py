"""Write a small language model with random weights, once for llama.cpp and once for ONNX Runtime GenAI.

    python models.py FOLDER [layers hidden heads kv-heads inner vocabulary]

FOLDER/net.gguf has the weights as Q4_0. FOLDER/genai/model.onnx has the same 4-bit weights and
scales as MatMulNBits, with GroupQueryAttention as the exporter of ONNX Runtime GenAI writes it. Needs
the packages gguf, numpy and onnx.
"""

import json
import pathlib
import sys

import gguf
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCK = 32
CONTEXT = 4096
EPSILON = 1e-5
BASE = 10_000.0


def nibbles(blocks):
    """Turn blocks of Q4_0 into scales and the order of MatMulNBits: neighbours share a byte."""
    scales = blocks[..., :2].copy().view(np.float16)[..., 0].astype(np.float32)
    low, high = blocks[..., 2:] & 15, blocks[..., 2:] >> 4
    plain = np.concatenate([low, high], axis=-1)
    return plain[..., 0::2] | plain[..., 1::2] << 4, scales


class Network:
    def __init__(self, folder, layers, hidden, heads, kv_heads, inner, vocabulary):
        self.random = np.random.default_rng(1)
        self.size = hidden // heads
        self.nodes, self.constants = [], []
        self.heads, self.kv_heads = heads, kv_heads
        w = gguf.GGUFWriter(str(folder / "net.gguf"), "llama")
        w.add_block_count(layers)
        w.add_context_length(CONTEXT)
        w.add_embedding_length(hidden)
        w.add_feed_forward_length(inner)
        w.add_head_count(heads)
        w.add_head_count_kv(kv_heads)
        w.add_layer_norm_rms_eps(EPSILON)
        w.add_rope_dimension_count(self.size)
        w.add_rope_freq_base(BASE)
        w.add_vocab_size(vocabulary)
        w.add_tokenizer_model("no_vocab")
        w.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_0)
        self.gguf = w

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def node(self, kind, inputs, outputs, domain="com.microsoft", **attributes):
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def norm(self, name):
        weight = np.ones(self.hidden, np.float32) + 0.1 * self.random.standard_normal(self.hidden).astype(np.float32)
        self.gguf.add_tensor(name, weight)
        return self.constant(name, weight)

    def product(self, name, of, rows, columns):
        weight = self.random.standard_normal((rows, columns)).astype(np.float32) / np.sqrt(columns)
        raw = gguf.quants.quantize(weight, gguf.GGMLQuantizationType.Q4_0)
        self.gguf.add_tensor(name, raw, raw_dtype=gguf.GGMLQuantizationType.Q4_0)
        packed, scales = nibbles(raw.reshape(rows, columns // BLOCK, -1))
        inputs = [of, self.constant(name, packed), self.constant(name + ".scales", scales.reshape(-1))]
        return self.node("MatMulNBits", inputs, [name + ".out"], K=columns, N=rows, bits=4, block_size=BLOCK, accuracy_level=4)

    def layer(self, i, x, skip):
        at = f"blk.{i}."
        if skip is None:
            h, total = self.node("SimplifiedLayerNormalization", [x, self.norm(at + "attn_norm.weight")], [at + "normal"], domain="", axis=-1, epsilon=EPSILON, stash_type=1), x
        else:
            h, total = self.skip(x, skip, at + "attn_norm.weight", at + "normal")
        width, kv = self.heads * self.size, self.kv_heads * self.size
        q = self.product(at + "attn_q.weight", h, width, self.hidden)
        k = self.product(at + "attn_k.weight", h, kv, self.hidden)
        v = self.product(at + "attn_v.weight", h, kv, self.hidden)
        past = [f"past_key_values.{i}.key", f"past_key_values.{i}.value"]
        attended = self.node(
            "GroupQueryAttention",
            [q, k, v, *past, "lengths", "longest", "cosines", "sines"],
            [at + "attended", f"present.{i}.key", f"present.{i}.value"],
            num_heads=self.heads, kv_num_heads=self.kv_heads, do_rotary=1, rotary_interleaved=1, scale=float(self.size**-0.5),
        )
        out = self.product(at + "attn_output.weight", attended, self.hidden, width)
        h, total = self.skip(out, total, at + "ffn_norm.weight", at + "ffn_normal")
        gate = self.product(at + "ffn_gate.weight", h, self.inner, self.hidden)
        up = self.product(at + "ffn_up.weight", h, self.inner, self.hidden)
        sigmoid = self.node("Sigmoid", [gate], [at + "sigmoid"], domain="")
        silu = self.node("Mul", [gate, sigmoid], [at + "silu"], domain="")
        both = self.node("Mul", [silu, up], [at + "both"], domain="")
        return self.product(at + "ffn_down.weight", both, self.hidden, self.inner), total

    def skip(self, x, total, weight, name):
        self.node("SkipSimplifiedLayerNormalization", [x, total, self.norm(weight)], [name, "", "", name + ".sum"], epsilon=EPSILON)
        return name, name + ".sum"


def write(folder, layers=8, hidden=1024, heads=16, kv_heads=8, inner=2816, vocabulary=8192):
    folder = pathlib.Path(folder)
    (folder / "genai").mkdir(parents=True, exist_ok=True)
    n = Network(folder, layers, hidden, heads, kv_heads, inner, vocabulary)
    n.hidden, n.inner = hidden, inner
    angles = np.outer(np.arange(CONTEXT), BASE ** (-np.arange(0, n.size, 2) / n.size))
    n.constant("cosines", np.cos(angles).astype(np.float32))
    n.constant("sines", np.sin(angles).astype(np.float32))
    n.constant("one", np.array([1], np.int64))
    n.constant("index", np.array(1, np.int64))
    n.node("ReduceSum", ["attention_mask", "one"], ["sum"], domain="", keepdims=0)
    n.node("Sub", ["sum", "one"], ["less"], domain="")
    n.node("Cast", ["less"], ["lengths"], domain="", to=TensorProto.INT32)
    n.node("Shape", ["attention_mask"], ["shape"], domain="")
    n.node("Gather", ["shape", "index"], ["width"], domain="")
    n.node("Cast", ["width"], ["longest"], domain="", to=TensorProto.INT32)
    table = (n.random.standard_normal((vocabulary, hidden)) / 8).astype(np.float32)
    raw = gguf.quants.quantize(table, gguf.GGMLQuantizationType.Q4_0)
    n.gguf.add_tensor("token_embd.weight", raw, raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    n.constant("token_embd.weight", gguf.quants.dequantize(raw, gguf.GGMLQuantizationType.Q4_0))
    x, total = n.node("Gather", ["token_embd.weight", "input_ids"], ["tokens"], domain=""), None
    for i in range(layers):
        x, total = n.layer(i, x, total)
    h, _ = n.skip(x, total, "output_norm.weight", "last")
    n.node("Identity", [n.product("output.weight", h, vocabulary, hidden)], ["logits"], domain="")
    n.gguf.write_header_to_file()
    n.gguf.write_kv_data_to_file()
    n.gguf.write_tensors_to_file()
    n.gguf.close()

    value = helper.make_tensor_value_info
    inputs = [value("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]), value("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"])]
    outputs = [value("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", vocabulary])]
    for i in range(layers):
        for part in ("key", "value"):
            inputs.append(value(f"past_key_values.{i}.{part}", TensorProto.FLOAT, ["batch_size", kv_heads, "past_sequence_length", n.size]))
            outputs.append(value(f"present.{i}.{part}", TensorProto.FLOAT, ["batch_size", kv_heads, "total_sequence_length", n.size]))
    graph = helper.make_graph(n.nodes, "net", inputs, outputs, n.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
    onnx.save_model(model, folder / "genai" / "model.onnx", save_as_external_data=True, location="model.onnx.data", size_threshold=1024)
    decoder = {
        "session_options": {"provider_options": []}, "filename": "model.onnx", "head_size": n.size, "hidden_size": hidden,
        "num_attention_heads": heads, "num_key_value_heads": kv_heads, "num_hidden_layers": layers,
        "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask", "past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value"},
        "outputs": {"logits": "logits", "present_key_names": "present.%d.key", "present_value_names": "present.%d.value"},
    }
    config = {
        "model": {"type": "llama", "bos_token_id": 1, "eos_token_id": [vocabulary - 1], "pad_token_id": 0, "context_length": CONTEXT, "vocab_size": vocabulary, "decoder": decoder},
        "search": {"do_sample": False, "max_length": CONTEXT, "min_length": 0, "num_beams": 1, "past_present_share_buffer": True},
    }
    (folder / "genai" / "genai_config.json").write_text(json.dumps(config, indent=2))


if __name__ == "__main__":
    write(sys.argv[1], *map(int, sys.argv[2:]))

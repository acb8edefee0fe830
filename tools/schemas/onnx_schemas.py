"""Writes internal/runtime/operators/onnx.schema, the table of ONNX's operators.

    python3 -m venv venv && venv/bin/pip install onnx==1.23.2 onnxruntime==1.31.1
    venv/bin/python tools/schemas/onnx_schemas.py > internal/runtime/operators/onnx.schema

The table is data: it is committed, and nothing in the build runs this. Facts on the
operators of ONNX come from the schemas of the onnx package, all versions of them, and
those of com.microsoft from the schemas that ONNX Runtime registers. The grammar is that
of op.ParseSchemas.
"""

import re
from collections import Counter

from onnx import defs
from onnxruntime.capi import onnxruntime_pybind11_state as ort

TYPES = {
    "float": "float32", "double": "float64", "complex64": "complex64", "complex128": "complex128",
    "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "int4": "int4", "int2": "int2",
    "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "uint4": "uint4", "uint2": "uint2",
    "bool": "bool", "string": "string", "float16": "float16", "bfloat16": "bfloat16",
    "float8e4m3fn": "float8e4m3fn", "float8e4m3fnuz": "float8e4m3fnuz", "float8e5m2": "float8e5m2",
    "float8e5m2fnuz": "float8e5m2fnuz", "float8e8m0": "float8e8m0", "float4e2m1": "float4e2m1",
    "float6e2m3": "float6e2m3", "float6e3m2": "float6e3m2",
}
KINDS = {"FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "FLOATS": "F", "INTS": "I", "STRINGS": "S",
         "TENSORS": "T", "GRAPHS": "G", "SPARSE_TENSOR": "t", "SPARSE_TENSORS": "T", "TYPE_PROTO": "p", "TYPE_PROTOS": "P"}


def code(t):
    for prefix, kind in (("seq(", "sequence"), ("optional(", "optional"), ("map(", "map")):
        if t.startswith(prefix):
            return kind
    m = re.fullmatch(r"tensor\((\w+)\)", t)
    return TYPES.get(m[1]) if m else None  # sparse tensors are read as dense ones


def types(param):
    return tuple(sorted({c for c in map(code, param.types) if c}))


def option(param):
    return str(param.option).rsplit(".", 1)[-1]


def lower(name):
    return re.sub(r"\W", "_", name)


def params(ps, least, homogeneous):
    out = []
    for i, p in enumerate(ps):
        o = option(p)
        end = "" if o == "Single" else "?" if o == "Optional" else "+" if least > i else "*"
        if end in ("+", "*") and not homogeneous(p):
            end += "~"
        var = p.type_str if hasattr(p, "type_str") else p.typeStr
        out.append((lower(p.name), lower(var) if "(" not in var else None, types(p), end))
    return out


def schemas():
    for s in defs.get_all_schemas_with_history():
        if s.domain in ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training") and not s.deprecated:
            hom = lambda p: p.is_homogeneous
            attrs = [(a.name, KINDS[str(a.type).rsplit(".", 1)[-1]], a.required) for a in s.attributes.values()]
            yield s.domain, s.name, s.since_version, params(s.inputs, s.min_input, hom), params(s.outputs, s.min_output, hom), attrs
    for s in ort.get_all_operator_schema():
        if s.domain == "com.microsoft" and not s.deprecated:
            hom = lambda p: p.isHomogeneous
            attrs = [(a.name, KINDS[str(a.type).rsplit(".", 1)[-1]], a.required) for a in s.attributes.values()]
            yield s.domain, s.name, s.since_version, params(s.inputs, s.min_input, hom), params(s.outputs, s.min_output, hom), attrs


def main():
    rows = [r for r in sorted(schemas(), key=lambda r: r[:3]) if all(p[2] for p in r[3] + r[4])]
    used = Counter()
    for r in rows:
        for p in r[3] + r[4]:
            used[p[2]] += 1
    # Sets that many operators share have a name; it says only how many types there are.
    names, taken = {}, Counter()
    for s, n in sorted(used.items(), key=lambda x: (-x[1], x[0])):
        if n > 2 and len(s) > 2:
            base = f"any{len(s)}"
            names[s] = base + ("" if not taken[base] else "abcdefghijklmnopqrstuvwxyz"[taken[base]])
            taken[base] += 1
    print("# Made by tools/schemas/onnx_schemas.py of onnx 1.23.2 and onnxruntime 1.31.1: see there. Not for editing.")
    for s, n in names.items():
        print(f"@{n} = {'|'.join(s)}")
    domain = None
    for d, name, since, ins, outs, attrs in rows:
        if d != domain:
            print(f"[{d}]")
            domain = d
        binds = {}
        clash = set()
        for p in ins + outs:
            if p[1]:
                if binds.setdefault(p[1], p[2]) != p[2]:
                    clash.add(p[1])

        def text(p):
            pname, var, ts, end = p
            if var in clash or var is None:
                var = "|".join(ts) if ts not in names else names[ts]
            return f"{pname}:{var}{end}"

        shared = {v: s for v, s in binds.items() if v not in clash}
        line = f"{name} {since}: {', '.join(map(text, ins))} -> {', '.join(map(text, outs))}"
        for v, s in shared.items():
            line += f"; {v} = {names.get(s, '|'.join(s))}"
        if attrs:
            line += " # " + " ".join(f"{n}:{k}{'!' if req else ''}" for n, k, req in sorted(attrs))
        print(line)


main()

#!/usr/bin/env python3
"""Make the command tables of internal/ingest/tpu/command from register tables.

    python3 tools/tpuisa/tables.py FOLDER OUT

FOLDER holds a JSON file per chip (bm1684.json, bm1684x.json, ...): an object with a
list "ops" of objects with engine, name, short (true, false or null for either),
opcode, sub (names of sub-functions by number), bits and fields ([name, first bit,
width] each). OUT gets a text file per chip:

    run A NAME[:WIDTH] ...           a sequence of fields that several commands share
    op ENGINE FORM TYPE BITS NAME    a command; FORM is long, short or any; TYPE is - where
                                     every command of the engine has the same layout
    fn NUMBER NAME ...               the sub-functions of the op above; none: any sub-function
    at NAME[:WIDTH] ... @A           its fields from bit 0 upwards; -:N is a gap

A width of 1 is left out; ~ in a name is a blank. Corrections of the tables
that are known to be wrong are in CORRECTIONS.
"""

import json
import os
import sys

CHIPS = ["bm1684", "bm1684x", "bm1688", "cv184x", "bm1690"]

# The short LIN of BM1690 is stated with 288 bits and a field across a word; the chip's
# sibling has 256 bits. (chip, engine, name) -> chip whose fields hold.
CORRECTIONS = {("bm1690", "tiu", "sLIN"): "cv184x"}


def tokens(op):
    out, at = [], 0
    for name, first, width in op["fields"]:
        if first > at:
            out.append("-:%d" % (first - at))
        if first < at:
            raise SystemExit("%s: field %s overlaps" % (op["name"], name))
        name = name.lower() if op["opcode"] < 0 else name
        name = name.replace(" ", "~")
        out.append(name if width == 1 else "%s:%d" % (name, width))
        at = first + width
    if at < op["bits"]:
        out.append("-:%d" % (op["bits"] - at))
    return out


def share(lists):
    """Replace the sequences that save most by runs, until little is saved."""
    runs = []
    while len(runs) < 26:
        counts = {}
        for seq in {tuple(l) for l in lists}:
            n = len(seq)
            for i in range(n):
                for j in range(i + 4, n + 1):
                    counts[seq[i:j]] = counts.get(seq[i:j], 0) + 1
        best, gain = None, 400
        for seq, k in counts.items():
            if k > 1 and (k - 1) * len(" ".join(seq)) > gain:
                gain, best = (k - 1) * len(" ".join(seq)), seq
        if best is None:
            break
        name = chr(ord("A") + len(runs))
        runs.append((name, best))
        k = len(best)
        for l in lists:
            i = 0
            while i + k <= len(l):
                if tuple(l[i:i + k]) == best:
                    l[i:i + k] = ["@" + name]
                i += 1
    return runs


def main(folder, out):
    chips = {}
    for chip in CHIPS:
        with open(os.path.join(folder, chip + ".json"), encoding="utf-8") as f:
            chips[chip] = json.load(f)["ops"]
    for chip, ops in chips.items():
        for op in ops:
            other = CORRECTIONS.get((chip, op["engine"], op["name"]))
            if other:
                same = [o for o in chips[other] if (o["engine"], o["name"]) == (op["engine"], op["name"])][0]
                op["bits"], op["fields"] = same["bits"], same["fields"]
    for chip, ops in chips.items():
        lists = [tokens(op) for op in ops]
        runs = share(lists)
        with open(os.path.join(out, chip + ".isa"), "w", encoding="utf-8") as f:
            f.write("# Commands of %s. Made by tools/tpuisa/tables.py; not to be edited.\n" % chip.upper())
            for name, seq in runs:
                f.write("run %s %s\n" % (name, " ".join(seq)))
            for op, fields in zip(ops, lists):
                form = {True: "short", False: "long", None: "any"}[op["short"]]
                kind = "-" if op["opcode"] < 0 else str(op["opcode"])
                f.write("op %s %s %s %d %s\n" % (op["engine"], form, kind, op["bits"], json.dumps(op["name"])))
                if op["sub"]:
                    f.write("fn " + " ".join("%s %s" % (k, v or "-") for k, v in op["sub"].items()) + "\n")
                f.write("at " + " ".join(fields) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(sys.argv[1], sys.argv[2])

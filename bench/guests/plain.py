"""What the plain loops of all engines share: their flags, their inputs, and the loop that is timed."""

import argparse
import json
import os
import statistics
import time

import numpy as np


def arguments(doc, more=lambda p: None):
    """The flags of a script; more adds the engine's own."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=1, help="how long is measured, after a quarter of it to warm up")
    p.add_argument("--inputs", metavar="FOLDER", help="0.npy, 1.npy, ... in the model's order; without it zeros, open dimensions being 1")
    more(p)
    return p.parse_args()


def given(folder, i, shape, dtype):
    """The tensor of input i."""
    if folder:
        return np.load(os.path.join(folder, f"{i}.npy"))
    return np.zeros([d if isinstance(d, int) and d > 0 else 1 for d in shape], dtype)


def measure(run, seconds, **says):
    """Times single runs and prints one JSON object: median_s and other figures in seconds, and what else it says."""
    clock = time.perf_counter_ns
    end = clock() + int(seconds * 0.25e9)
    while clock() < end:
        run()
    times = []
    end = clock() + int(seconds * 1e9)
    while clock() < end or len(times) < 10:
        start = clock()
        run()
        times.append((clock() - start) / 1e9)
    print(json.dumps({**says, "runs": len(times), "median_s": statistics.median(times), "min_s": min(times), "max_s": max(times)}))

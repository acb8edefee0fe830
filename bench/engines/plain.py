"""What the plain loops of all engines share: their flags, their inputs, and the loop that is timed."""

import argparse
import ctypes
import json
import os
import statistics
import sys
import time

import numpy as np


def arguments(doc, more=lambda p: None):
    """The flags of a script; more adds the engine's own."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=1, help="how long is measured, after a quarter of it to warm up")
    p.add_argument("--library", help="call this C library, instead of the Python package's own build of the engine")
    p.add_argument("--turns", action="store_true", help="measure a turn for each line of standard input, instead: so many seconds; a line of times each")
    p.add_argument("--inputs", metavar="FOLDER", help="0.npy, 1.npy, ... in the model's order; without it zeros, open dimensions being 1")
    more(p)
    return p.parse_args()


def given(folder, i, shape, dtype):
    """The tensor of input i."""
    if folder:
        return np.load(os.path.join(folder, f"{i}.npy"))
    return np.zeros([d if isinstance(d, int) and d > 0 else 1 for d in shape], dtype)


def timed(run, seconds, least):
    """The times of single runs, in seconds."""
    clock = time.perf_counter_ns
    times = []
    end = clock() + int(seconds * 1e9)
    while clock() < end or len(times) < least:
        start = clock()
        run()
        times.append((clock() - start) / 1e9)
    return times


def settled(run, seconds):
    """The times of single runs once the caches hold what they need, after others had them."""
    timed(run, seconds / 10, 1)
    return timed(run, seconds, 1)


class Library:
    """A C library whose functions return a code, 0 for success, and write what they make to their last argument. explain says more of
    the last failure."""

    def __init__(self, path, explain=lambda: ""):
        self.c, self.path, self.explain = ctypes.CDLL(path), path, explain

    def failed(self, status, what="call"):
        sys.exit(f"{self.path}: {what}: status {status} {self.explain()}".rstrip())

    def call(self, name, *args):
        status = getattr(self.c, name)(*args)
        if status:
            self.failed(status, name)

    def make(self, name, *args, of=ctypes.c_void_p):
        out = of()
        self.call(name, *args, ctypes.byref(out))
        return out

    def address(self, name):
        return ctypes.cast(getattr(self.c, name), ctypes.c_void_p).value


class Calls:
    """A function that calls C, and what Python takes for the way there and back, in seconds."""

    def __init__(self, run, cost_s):
        self.run, self.cost_s = run, cost_s


class Call(Calls):
    """A call of a C function with arguments that stay, which returns an address or a code, 0 for success. keep is what these
    arguments point to."""

    def __init__(self, address, args, failed, keep=()):
        prototype = ctypes.CFUNCTYPE(ctypes.c_void_p, *[ctypes.c_void_p] * len(args))
        function, args = prototype(address), [ctypes.c_void_p(a) for a in args]
        nothing = prototype(ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p).value)
        zeros = [ctypes.c_void_p(0) for _ in args]
        cost = statistics.median(timed(lambda: nothing(*zeros), 0.05, 10))

        def run():
            status = function(*args)
            if status:
                failed(status)

        run.keep = keep
        super().__init__(run, cost)


def measure(run, a, **says):
    """Times single runs and prints one JSON object: median_s and other figures in seconds, and what else it says.

    run is a function, or Calls, of whose times that of empty calls is taken off."""
    if isinstance(run, Calls):
        cost, run = run.cost_s, run.run
        says["call_s"] = cost
    else:
        cost = 0
    timed(run, a.seconds / 4, 3)
    if a.turns:
        print(json.dumps(says), flush=True)
        for line in sys.stdin:
            print(json.dumps([t - cost for t in settled(run, float(line))]), flush=True)
        return
    times = [t - cost for t in timed(run, a.seconds, 10)]
    print(json.dumps({**says, "runs": len(times), "median_s": statistics.median(times), "min_s": min(times), "max_s": max(times)}))

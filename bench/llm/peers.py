"""Time prefill and decode of a language model in another runtime, once, and print JSON.

    python peers.py genai|llama FOLDER THREADS PROMPT CONTEXT TOKENS

Prefill is PROMPT tokens with an empty cache. Decode is the median of TOKENS single tokens that follow
CONTEXT others. Loading is left out. FOLDER is what models.py wrote. The logits of the prompt's last
token are in the answer. Needs onnxruntime-genai or llama-cpp-python, and numpy.
"""

import json
import pathlib
import statistics
import sys
import time

import numpy as np


def genai(folder, threads, longest):
    import onnxruntime_genai as og

    config = og.Config(str(folder / "genai"))
    config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}))
    model = og.Model(config)

    def begin():
        parameters = og.GeneratorParams(model)
        parameters.set_search_options(max_length=longest, do_sample=False)
        generator = og.Generator(model, parameters)

        def feed(tokens):
            generator.append_tokens([tokens])
            return generator.get_logits()[0, -1]  # asked for so that the step is complete

        return feed

    return begin


def llama(folder, threads, longest):
    from llama_cpp import Llama

    net = Llama(str(folder / "net.gguf"), n_ctx=longest, n_threads=threads, n_threads_batch=threads, n_batch=512, verbose=False)

    def begin():
        net.reset()

        def feed(tokens):
            net.eval(tokens)
            return np.ctypeslib.as_array(net._ctx.get_logits(), shape=(net.n_vocab(),)).copy()

        return feed

    return begin


def prompt_of(n):
    """The tokens that main.go uses, too."""
    return [2 + i * 7919 % 5000 for i in range(n)]


def main(engine, folder, threads, prompt, context, tokens):
    begin = {"genai": genai, "llama": llama}[engine](pathlib.Path(folder), threads, max(prompt, context + tokens) + 1)
    begin()(prompt_of(min(prompt, 16)))  # the first use prepares

    def timed(feed, some):
        start = time.perf_counter()
        logits = feed(some)
        return time.perf_counter() - start, logits

    prefill, logits = timed(begin(), prompt_of(prompt))
    feed = begin()
    feed(prompt_of(context))
    decode = [timed(feed, [5])[0] for _ in range(tokens)]
    json.dump({"prefill_s": prefill, "decode_s": statistics.median(decode), "logits": logits.tolist()}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))

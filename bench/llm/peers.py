"""Time prefill and decode of a language model in another runtime, once, and print JSON.

    python peers.py genai|llama|ort FOLDER THREADS PROMPT CONTEXT TOKENS

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


def ort(folder, threads, prompt, context, tokens):
    """Run one step again and again for a second, with caches that are bound once and written in place."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(folder / "genai" / "model.onnx"), options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(1)

    def step(new, before):
        binding = session.io_binding()
        caches = {}
        for i in session.get_inputs():
            array = {"input_ids": np.array([prompt_of(new)], np.int64), "attention_mask": np.ones((1, before + new), np.int64)}.get(i.name)
            if array is None:
                array = random.standard_normal((1, i.shape[1], before + new, i.shape[3])).astype(np.float32)
            caches[i.name.replace("past_key_values", "present")] = bound = onnxruntime.OrtValue.ortvalue_from_numpy(array)
            binding.bind_ortvalue_input(i.name, bound)
        for o in session.get_outputs():
            bound = caches.get(o.name)
            if bound is None:
                bound = onnxruntime.OrtValue.ortvalue_from_shape_and_type([1, new, o.shape[2]], np.float32)
            binding.bind_ortvalue_output(o.name, bound)
        times = []
        end = time.perf_counter() + 1
        while len(times) < tokens + 2 or time.perf_counter() < end:
            start = time.perf_counter()
            session.run_with_iobinding(binding)
            times.append(time.perf_counter() - start)
        return statistics.median(times[2:])

    return {"prefill_s": step(prompt, 0), "decode_s": step(1, context)}


def prompt_of(n):
    """The tokens that main.go uses, too."""
    return [2 + i * 7919 % 5000 for i in range(n)]


def main(engine, folder, threads, prompt, context, tokens):
    if engine == "ort":
        json.dump(ort(pathlib.Path(folder), threads, prompt, context, tokens), sys.stdout)
        return
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

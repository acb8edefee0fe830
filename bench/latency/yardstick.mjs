// Runs a model with ONNX Runtime on command. One JSON object a line on standard
// input, one on standard output:
//   {"load": path, "threads": n, "inputs": [{"name", "dtype", "shape", "file"}]}  ->  {"ok": true}
//   {"run": n}                                                                     ->  {"seconds": [...]}
import fs from 'node:fs';
import readline from 'node:readline';
import ort from 'onnxruntime-node';

const arrays = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array,
  uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array, bool: Uint8Array,
};
let session, feeds, fetches;

async function load(o) {
  await session?.release();
  session = await ort.InferenceSession.create(o.load, {
    executionProviders: ['cpu'], graphOptimizationLevel: 'all', intraOpNumThreads: o.threads, interOpNumThreads: 1,
    executionMode: 'sequential', logSeverityLevel: 4,
  });
  feeds = {};
  for (const i of o.inputs) {
    const b = fs.readFileSync(i.file);
    feeds[i.name] = new ort.Tensor(i.dtype, new arrays[i.dtype](b.buffer.slice(b.byteOffset, b.byteOffset + b.length)), i.shape);
  }
  // Sequences and maps cannot be returned by this binding.
  fetches = session.outputNames.filter((n, i) => session.outputMetadata?.[i]?.isTensor !== false);
  await session.run(feeds, fetches);
  return { ok: true };
}

async function run(n) {
  const seconds = [];
  for (let i = 0; i < n; i++) {
    const t = process.hrtime.bigint();
    await session.run(feeds, fetches);
    seconds.push(Number(process.hrtime.bigint() - t) / 1e9);
  }
  return { seconds };
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const o = JSON.parse(line);
  let answer;
  try {
    answer = o.load ? await load(o) : await run(o.run);
  } catch (e) {
    answer = { error: String(e.message ?? e).split('\n')[0] };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}

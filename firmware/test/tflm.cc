// The adapter against a stand-in for TensorFlow Lite Micro's interface, whose shape is
// that of tensorflow/lite/micro/micro_profiler_interface.h.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>

#define OPMETER_IMPLEMENTATION
#include "opmeter_tflm.h"

static void write_stdout(void*, const uint8_t* data, size_t size) { fwrite(data, 1, size, stdout); }

static void invoke(tflite::MicroProfilerInterface* profiler) {
  const char* const ops[] = {"CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "SOFTMAX"};
  for (const char* op : ops) {
    const uint32_t handle = profiler->BeginEvent(op);
    profiler->EndEvent(handle);
  }
}

int main() {
  opmeter_config config = {};
  config.write = write_stdout;
  opmeter_start(&config);
  opmeter::TflmProfiler profiler;
  for (int i = 0; i < 3; i++) {
    opmeter_inference_begin();
    invoke(&profiler);
    opmeter_inference_end();
  }
  opmeter_done();
  return 0;
}

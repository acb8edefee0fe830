/* opmeter agent for TensorFlow Lite Micro: a profiler that an interpreter takes.
 *
 *     opmeter::TflmProfiler profiler;
 *     tflite::MicroInterpreter interpreter(model, resolver, arena, size, nullptr, &profiler);
 *     opmeter_inference_begin(); interpreter.Invoke(); opmeter_inference_end();
 *
 * An operator has the number of its turn within the inference.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef OPMETER_TFLM_H
#define OPMETER_TFLM_H

#include "opmeter.h"
#include "tensorflow/lite/micro/micro_profiler_interface.h"

namespace opmeter {

class TflmProfiler : public tflite::MicroProfilerInterface {
 public:
  uint32_t BeginEvent(const char* tag) override {
    const uint16_t index = opmeter_op_count();
    opmeter_op_begin(index, tag);
    return index;
  }
  void EndEvent(uint32_t event_handle) override { opmeter_op_end(static_cast<uint16_t>(event_handle)); }
};

}  // namespace opmeter

#endif  // OPMETER_TFLM_H

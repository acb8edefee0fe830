// Package mvp models the MVP matrix accelerator of EFR32 chips together with their Cortex-M33, as
// used by the kernels of TensorFlow Lite Micro.
//
// For each operator that the kernels offload, it derives the accelerator programs from the shapes
// and counts them: instructions, pipeline stalls, iterations. From these follow the cycles of the
// vendor's simulator (exactly) and of the device (with fitted corrections).
//
// The package imports internal/estimate/chip, internal/model/graph, internal/model/tensor and
// internal/model/count, and runs nothing.
package mvp

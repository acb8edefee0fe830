// Package mvp models the MVP matrix accelerator of EFR32 chips together with
// the Cortex-M33 beside it, as the kernels of TensorFlow Lite Micro use it.
//
// For each operator that the kernels hand over, the programs that they would
// build are derived from the shapes and counted: instructions, pipeline stalls,
// iterations. From that follow the cycles of the maker's simulator (exactly)
// and those of the device (with fitted corrections).
//
// The package imports internal/estimate/chip, internal/model/graph, internal/model/tensor and
// internal/model/count, and runs nothing.
package mvp

// Package peaks measures the peak rates of this computer with the engine's own kernels:
// multiply-accumulates and bytes per second, the two limits of a roofline. One measurement serves
// all profiles of a process that use the same threads.
//
// The package imports internal/kernel and internal/base/workers for the work,
// internal/measure/loop for the lease and internal/measure/machine for the memory. It knows no
// models and no result type.
package peaks

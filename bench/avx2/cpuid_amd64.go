//go:build linux

package main

// cpuid asks the processor.
func cpuid(leaf, sub uint32) (a, b, c, d uint32)

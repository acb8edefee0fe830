// Package machine describes this computer: processor, memory, caches and settings; its state
// before and after a measurement; its counters during the measurement, such as time stolen by the
// hypervisor; and the processors that threads may be bound to. It reads the system's own files
// and calls, and measures nothing.
//
// Values that the system does not provide are absent, never zero and never guessed.
//
// The package imports profile, for the types of its results, and nothing else of the project.
package machine

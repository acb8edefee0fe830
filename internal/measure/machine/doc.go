// Package machine says what this computer is and what it does: processor, memory,
// caches and settings; its state before and after a measurement; what it counted
// meanwhile, such as time that the hypervisor took; and which processors threads may
// be bound to. It reads the system's own files and calls, and measures nothing.
//
// What the system does not tell is absent, never zero and never guessed.
//
// The package imports profile, for the shape of its results, and nothing else of the
// project.
package machine

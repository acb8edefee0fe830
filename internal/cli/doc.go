// Package cli is the command line: one file a verb, flags to options of the
// library, results to writers, errors to one line and an exit status.
//
// It uses the library as everybody does: opmeter and profile, and beside them the
// reports. What the library says of an option it says of the flag; the exit status
// follows from the error's type alone.
package cli

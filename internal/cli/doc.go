// Package cli is the command line: one file a verb, flags to library calls,
// results to writers, errors to one line and an exit status.
package cli

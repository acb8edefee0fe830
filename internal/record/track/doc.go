// Package track holds what trace formats have in common: slices of time on the tracks
// of threads, streams and queues. It nests them, so that each has its own time without
// what lies in it, follows arrows between them, adds up the times of layers, and makes
// the timeline.
//
// It knows no format. What a slice is of (a layer, an iteration) is said by whoever
// adds it, or between [Trace.Nest] and [Trace.Tally].
package track

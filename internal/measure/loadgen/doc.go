// Package loadgen drives a model the way an application does and says what came of it:
// one inference after the other, several streams at once, or inferences that are due at
// fixed times. It knows no engine: a stream is a function that computes one inference,
// and each runs on a thread of its own.
//
// # How streams are measured
//
// All streams warm up at the same time and go on running until the last of them is warm.
// Then the window opens, for all at one moment, and closes for all at another; no stream
// pauses at either. Within the window every stream is busy all the time, so that neither
// ramp-up nor tail is in the throughput: of an inference that crosses an edge of the
// window counts the part that lies within. Times are of the inferences that begin in the
// window; streams that are done go on, uncounted, until the last of these has ended, so
// that all of them meet the same load.
//
// # Fixed rate
//
// With a rate the k-th inference is due k/rate after the window opened, and a stream that
// is free takes it. Its response time counts from when it was due and not from when a
// stream got to it: if the streams fall behind, that shows in the times of all that
// wait, as it does for whoever sent them. An inference is late when it was due before a
// stream was free, and unstarted when it was due in the window and none got to it.
package loadgen

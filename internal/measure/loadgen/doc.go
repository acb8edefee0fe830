// Package loadgen runs a model under load as an application does: one inference after the other,
// several concurrent streams, or inferences at a fixed rate. It knows no engine: a stream is a
// function that computes one inference, and each stream runs on its own thread.
//
// # How streams are measured
//
// All streams warm up at the same time and continue until the last of them is warm. Then the
// measurement window opens for all at one moment, and closes for all at another; no stream pauses
// at either. Within the window every stream is busy all the time, so that neither ramp-up nor
// tail distorts the throughput. An inference that crosses an edge of the window counts by the
// fraction that lies within. Latencies are those of inferences that begin in the window. Finished
// streams continue uncounted until the last of these has ended, so that all inferences run under
// the same load.
//
// # Fixed rate
//
// With a rate the k-th inference is scheduled k/rate after the window opened, and a free stream
// takes it. Its response time counts from when it was scheduled and not from when a stream
// started it: if the streams fall behind, the response times of all waiting inferences show it,
// as clients would see it (no coordinated omission). An inference is late if it was scheduled
// before a stream was free, and unstarted if it was scheduled in the window and no stream started
// it.
package loadgen

// Package tflite reads the output of the benchmark tool of TensorFlow Lite and LiteRT with
// operator profiling: the text of its log, the same blocks as CSV, and protocol
// buffers.
//
// Source of the formats: tensorflow/lite/tools/benchmark and
// tensorflow/lite/profiling (profile_summary_formatter, profiling_info.proto,
// benchmark_result.proto, model_runtime_info.proto) of the TensorFlow project, and
// tsl/util/stats_calculator, which draws the tables.
package tflite

import (
	"context"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/textscan"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:   "tflite-benchmark",
		Title:  "TensorFlow Lite / LiteRT benchmark",
		Files:  "output of benchmark_model --enable_op_profiling=true: log, CSV (op_profiling_output_mode=csv), profile and result as protocol buffers",
		Logged: true,
		Gives:  []string{"latency_s", "share", "options", "phases", "timeline", "shapes"},
		Match:  match,
		Read: record.RunsPerFile(func(_ context.Context, _ *record.Input, f *record.File) ([]*runlog.Run, error) {
			if kindOf(f.Head, f.Whole) != none {
				return readProto(f)
			}
			return readText(f)
		}),
	}
}

// match looks for lines that no other tool prints, then for the messages: their fields recognise
// them, since they have no magic number.
func match(f *record.File) record.Sure {
	if s := record.FindLine(f, matchLine, "ode type", "Timings (microseconds)", "nference timings in us", "Profiling Info"); s != record.No {
		return s
	}
	return record.Likely.If(kindOf(f.Head, f.Whole) != none)
}

func matchLine(l string) record.Sure {
	l = strings.TrimSpace(textscan.Strip(l))
	switch {
	case nodeHead.MatchString(l), strings.HasPrefix(l, runHeading), strings.HasPrefix(l, initHeading), timingsLine.MatchString(l):
		return record.Certain
	case strings.HasPrefix(l, "Inference timings in us: Init:"), strings.HasPrefix(l, "Average inference timings in us:"):
		return record.Likely
	}
	return record.No
}

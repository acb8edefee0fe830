// Package tflite reads what the benchmark tool of TensorFlow Lite and LiteRT writes with
// operator profiling on: the text of its log, the same blocks as CSV, and protocol
// buffers.
//
// Source of the formats: tensorflow/lite/tools/benchmark and
// tensorflow/lite/profiling (profile_summary_formatter, profiling_info.proto,
// benchmark_result.proto, model_runtime_info.proto) of the TensorFlow project, and
// tsl/util/stats_calculator, which draws the tables.
package tflite

import (
	"context"
	"regexp"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/textscan"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:  "tflite-benchmark",
		Title: "TensorFlow Lite / LiteRT benchmark",
		Files: "output of benchmark_model --enable_op_profiling=true: log, CSV (op_profiling_output_mode=csv), profile and result as protocol buffers",
		Gives: []string{"latency_s", "share", "options", "phases", "timeline", "shapes"},
		Match: match,
		Read:  read,
	}
}

// nodeHead begins the tables of operators; Node with a capital those by type.
var nodeHead = regexp.MustCompile(`(?i)^\s*(\[node type\]|node type, (start|first|count))`)

// match looks for what nothing else prints.
func match(f *record.File) record.Sure {
	if !textscan.Any(f.Head, "ode type", "Timings (microseconds)", "nference timings in us", "Profiling Info") {
		return matchProto(f)
	}
	for _, l := range textscan.Head(f.Head, f.Whole) {
		l = textscan.Strip(l)
		switch {
		case nodeHead.MatchString(l), strings.HasPrefix(l, "Operator-wise Profiling Info for Regular Benchmark Runs"),
			strings.HasPrefix(l, "Profiling Info for Benchmark Initialization"), timingsLine.MatchString(l):
			return record.Certain
		case strings.HasPrefix(l, "Inference timings in us: Init:"), strings.HasPrefix(l, "Average inference timings in us:"):
			return record.Likely
		}
	}
	return matchProto(f)
}

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	return record.EachFile(ctx, in, func(f *record.File) ([]*runlog.Run, error) {
		if matchProto(f) != record.No {
			return readProto(f, in)
		}
		return readText(f, in)
	})
}

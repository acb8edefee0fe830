// Package openvino reads the reports of OpenVINO's benchmark_app: performance counters as
// CSV and JSON (detailed, average, sorted), the report of the whole run, and the
// counters that the Python and C++ tools print.
//
// Source of the formats: samples/cpp/benchmark_app/statistics_report.cpp and
// samples/cpp/common of the OpenVINO project, and its Python tools.
package openvino

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:   "openvino",
		Title:  "OpenVINO benchmark_app performance counters",
		Files:  "benchmark_detailed_counters_report, benchmark_average_counters_report, benchmark_sort_detailed_counters_report and benchmark_report as .csv or .json (-report_type, -report_folder), console output, with or without -pc",
		Logged: true,
		Gives:  []string{"latency_s", "share", "samples", "options"},
		Match:  func(f *record.File) record.Sure { return record.Certain.If(kindOf(f) != none) },
		Read:   read,
	}
}

// kind is one of the sorts of files.
type kind int

const (
	none kind = iota
	counters
	countersJSON
	console
	report
	reportJSON
)

func kindOf(f *record.File) kind {
	if h := f.JSONHead("{"); h != nil {
		switch {
		case h.Has(`"nodes"`, `"exec_type"`, `"real_time"`), h.HasAny(`"detailed_performance"`, `"avg_performance"`):
			return countersJSON
		case h.Has(`"execution_results"`) && h.HasAny(`"configuration_setup"`, `"cmd_options"`, `latency`):
			return reportJSON
		}
		return none
	}
	sections := 0
	return record.FindLine(f, func(l string) kind {
		l = strings.TrimSpace(textscan.Strip(l))
		switch {
		case strings.HasPrefix(l, "layerName;execStatus;layerType;execType;"):
			return counters
		case l == "Command line parameters", l == "Configuration setup", l == "Execution results", l == "Group Latencies",
			strings.HasPrefix(l, "Data shape;Median;Average;Min;Max"):
			if sections++; sections == 2 {
				return report
			}
		case consoleCounter(l) != nil, throughput.MatchString(l):
			return console
		}
		return none
	}, "execStatus", "layerType", "Command line parameters", "Configuration setup", "Execution results", "Group Latencies", "Data shape;", "Throughput:")
}

// throughput is the last line of the tool's console.
var throughput = lazyregexp.New(`^Throughput:\s+[\d.]+ FPS$`)

// ends are the ends of file names after the common name of a run.
var ends = lazyregexp.New(`(?i)_?((detailed|average|sort_detailed|no|sort)_counters)?_?report$`)

func stem(f *record.File) string { return ends.ReplaceAllString(draft.Stem(f), "") }

// newDraft begins a run with the common name of its files, or the file's own if nothing else is
// left of it.
func newDraft(f *record.File) *draft.Draft {
	return draft.New("openvino", cmp.Or(stem(f), draft.Stem(f)), "OpenVINO")
}

// read makes a run of each file of counters. The report of the whole run is added to the run with
// its name.
func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	// part is a run, or one of several runs of a file.
	type part struct {
		file  *record.File
		d     *draft.Draft
		alone bool
	}
	var parts []part
	var errs []error
	// Reports come last: they are added to runs of counters.
	for _, reports := range []bool{false, true} {
		for _, f := range in.Files {
			if (kindOf(f) >= report) != reports {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, errors.Join(append(errs, err)...)
			}
			var err error
			if reports {
				var r *runReport
				if r, err = readReport(f); r != nil {
					to := slices.IndexFunc(parts, func(p part) bool { return p.alone && stem(p.file) == stem(f) && kindOf(p.file) != console })
					if to < 0 {
						to = len(parts)
						parts = append(parts, part{f, newDraft(f), true})
					}
					r.into(parts[to].d)
				}
			} else {
				var ds []*draft.Draft
				ds, err = readCounters(f)
				for _, d := range ds {
					// The tool can write the counters of a run twice, the second time sorted.
					if slices.ContainsFunc(parts, func(p part) bool { return reordered(p.d, d) }) {
						continue
					}
					if err == nil || !d.Empty() {
						parts = append(parts, part{f, d, len(ds) == 1})
					}
				}
			}
			if err != nil {
				errs = append(errs, record.Fault(f, err))
			}
		}
	}
	var runs []*runlog.Run
	for _, p := range parts {
		if p.d.Empty() {
			errs = append(errs, record.Fault(p.file, draft.ErrNothing))
			continue
		}
		runs = append(runs, p.d.Run())
	}
	return runs, errors.Join(errs...)
}

// reordered reports whether two runs have the same nodes with the same times in other orders.
func reordered(a, b *draft.Draft) bool {
	if a.Len() != b.Len() || a.Len() < 2 {
		return false
	}
	count := map[string]int{}
	same := true
	for i := range a.Len() {
		x, y := a.Layer(i), b.Layer(i)
		same = same && x.Name == y.Name
		v, _ := x.Latency.Best()
		w, _ := y.Latency.Best()
		count[fmt.Sprint(x.Name, x.Kernel, v)]++
		count[fmt.Sprint(y.Name, y.Kernel, w)]--
	}
	for _, n := range count {
		same = same || n != 0
	}
	return !same
}

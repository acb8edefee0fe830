// Package openvino reads the reports of OpenVINO's benchmark_app: performance counters as
// CSV and JSON (detailed, average, sorted), the report of the whole run, and the
// counters that the Python and C++ tools print.
//
// Source of the formats: samples/cpp/benchmark_app/statistics_report.cpp and
// samples/cpp/common of the OpenVINO project, and its Python tools.
package openvino

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:  "openvino",
		Title: "OpenVINO benchmark_app performance counters",
		Files: "benchmark_detailed_counters_report, benchmark_average_counters_report, benchmark_sort_detailed_counters_report and benchmark_report as .csv or .json (-report_type, -report_folder), console output with -pc",
		Gives: []string{"latency_s", "share", "samples", "options"},
		Match: match,
		Read:  read,
	}
}

// kind is one of the sorts of files.
type kind int

const (
	none kind = iota
	counters
	countersJSON
	report
	reportJSON
	console
)

func kindOf(f *record.File) kind {
	head := bytes.TrimLeft(bytes.TrimPrefix(f.Head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if bytes.HasPrefix(head, []byte("{")) {
		has := func(s string) bool { return bytes.Contains(f.Head, []byte(s)) }
		switch {
		case has(`"nodes"`) && has(`"exec_type"`) && has(`"real_time"`), has(`"detailed_performance"`), has(`"avg_performance"`):
			return countersJSON
		case has(`"execution_results"`) && (has(`"configuration_setup"`) || has(`"cmd_options"`) || has(`latency`)):
			return reportJSON
		}
		return none
	}
	if !textscan.Any(f.Head, "execStatus", "layerType", "Command line parameters", "Configuration setup", "Execution results", "Group Latencies", "Data shape;") {
		return none
	}
	sections := 0
	for _, l := range textscan.Head(f.Head, f.Whole) {
		l = strings.TrimSpace(textscan.Strip(l))
		switch {
		case strings.HasPrefix(l, "layerName;execStatus;layerType;execType;"):
			return counters
		case l == "Command line parameters", l == "Configuration setup", l == "Execution results", l == "Group Latencies",
			strings.HasPrefix(l, "Data shape;Median;Average;Min;Max"):
			if sections++; sections == 2 {
				return report
			}
		case consoleRow.MatchString(l):
			return console
		}
	}
	return none
}

func match(f *record.File) record.Sure {
	if kindOf(f) != none {
		return record.Certain
	}
	return record.No
}

// ends are what a run's files have behind their common name.
var ends = regexp.MustCompile(`(?i)_?((detailed|average|sort_detailed|no|sort)_counters)?_?report$`)

func stem(f *record.File) string { return ends.ReplaceAllString(draft.Stem(f), "") }

// read makes a run of each file of counters. The report of the whole run goes to the one
// of its name.
func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	type part struct {
		file *record.File
		d    *draft.Draft
	}
	var parts []part
	var reports []*record.File
	var errs []error
	for _, f := range in.Files {
		if err := ctx.Err(); err != nil {
			errs = append(errs, err)
			break
		}
		var ds []*draft.Draft
		var err error
		switch k := kindOf(f); k {
		case counters, console:
			ds, err = readText(f, in, k == console)
		case countersJSON:
			ds, err = readJSON(f, in)
		default:
			reports = append(reports, f)
			continue
		}
		if err != nil {
			errs = append(errs, record.Fault(f, err))
		}
		for _, d := range ds {
			parts = append(parts, part{f, d})
		}
	}
	for _, f := range reports {
		r, err := readReport(f, in)
		if err != nil {
			errs = append(errs, record.Fault(f, err))
			if r == nil {
				continue
			}
		}
		to := -1
		for i := range parts {
			if stem(parts[i].file) == stem(f) && to < 0 && kindOf(parts[i].file) != console {
				to = i
			}
		}
		if to < 0 {
			d := draft.New("openvino", stemOr(f), "OpenVINO")
			parts = append(parts, part{f, d})
			to = len(parts) - 1
		}
		r.into(parts[to].d)
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

// stemOr is the common name of a run's files, or the file's own where nothing else is
// left of it.
func stemOr(f *record.File) string {
	if s := stem(f); s != "" {
		return s
	}
	return draft.Stem(f)
}

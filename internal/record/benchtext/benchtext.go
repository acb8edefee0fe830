// Package benchtext reads results of programs that measure other programs or whole
// networks: hyperfine, Go's benchmarks, benchncnn with the tables of its documents, MNN's
// timeProfile, and the profiler of MediaTek's Neuron runtime.
//
// Sources of the formats: hyperfine's own documentation; design document 14313 of the
// Go project; benchmark/benchncnn.cpp of ncnn; tools/cpp/Profiler.cpp of MNN; the Neuron
// SDK's page about its runtime profiler.
package benchtext

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/textscan"
)

// Formats lists the readers.
func Formats() []*record.Format {
	return []*record.Format{
		{
			Name: "go-bench", Title: "Go benchmark text", Files: "output of go test -bench, files for benchstat; opmeter's own (report format gobench)",
			Gives: []string{"latency_s", "samples"}, Match: matchGo, Read: readGo,
		},
		{
			Name: "hyperfine", Title: "hyperfine", Files: "--export-json and --export-csv",
			Gives: []string{"latency_s", "samples", "processor_s"}, Match: matchHyperfine, Read: readHyperfine,
		},
		{
			Name: "mnn", Title: "MNN timeProfile", Files: "console output of timeProfile.out: tables by node and by type",
			Gives: []string{"latency_s", "share"}, Match: matchMNN, Read: readMNN,
		},
		{
			Name: "ncnn", Title: "benchncnn", Files: "console output of benchncnn, tables of ncnn's benchmark documents",
			Gives: []string{"latency_s"}, Match: matchNCNN, Read: readNCNN,
		},
		{
			Name: "neuron-runtime", Title: "MediaTek Neuron Runtime Profiler", Files: "CSV log of MTKNN_PROFILER_LOG_PATH: titled tables by level",
			Gives: []string{"latency_s"}, Match: matchNeuron, Read: readNeuron,
		},
	}
}

var (
	goLine   = regexp.MustCompile(`^(Benchmark\S*)\s+(\d+)\s+([\d.eE+-]+ \S.*)$`)
	ncnnLine = regexp.MustCompile(`^\s*(\S+)\s+min =\s*([\d.]+)\s+max =\s*([\d.]+)\s+avg =\s*([\d.]+)\s*$`)
)

// some says whether a line of the beginning is of a kind, which has a part in common.
func some(f *record.File, part string, is func(string) bool) bool {
	if !textscan.Any(f.Head, part) {
		return false
	}
	for _, l := range textscan.Head(f.Head, f.Whole) {
		if is(textscan.Strip(l)) {
			return true
		}
	}
	return false
}

func matchGo(f *record.File) record.Sure {
	if some(f, "Benchmark", func(l string) bool {
		m := goLine.FindStringSubmatch(l)
		return m != nil && strings.Contains(m[3], "/op")
	}) {
		return record.Certain
	}
	return record.No
}

const hyperfineHead = "command,mean,stddev,median,user,system,min,max"

func matchHyperfine(f *record.File) record.Sure {
	has := func(s string) bool { return bytes.Contains(f.Head, []byte(s)) }
	if has(`"results"`) && has(`"command"`) && has(`"mean"`) || some(f, hyperfineHead, func(l string) bool { return strings.HasPrefix(l, hyperfineHead) }) {
		return record.Certain
	}
	return record.No
}

func matchMNN(f *record.File) record.Sure {
	if some(f, "Avg(ms)", func(l string) bool { return isMNNHead(l) != 0 }) {
		return record.Certain
	}
	return record.No
}

func matchNCNN(f *record.File) record.Sure {
	if some(f, "min =", ncnnLine.MatchString) {
		return record.Certain
	}
	return record.No
}

func matchNeuron(f *record.File) record.Sure {
	if some(f, "(LEVEL ", func(l string) bool { return neuronTitle.MatchString(strings.TrimSpace(l)) }) {
		return record.Likely
	}
	return record.No
}

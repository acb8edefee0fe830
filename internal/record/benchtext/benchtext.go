// Package benchtext reads results of programs that measure other programs or whole
// networks: hyperfine, Go's benchmarks, benchncnn with the tables of its documents, MNN's
// timeProfile and benchmark, and the profiler of MediaTek's Neuron runtime.
//
// Sources of the formats: hyperfine's own documentation; design document 14313 of the
// Go project; benchmark/benchncnn.cpp of ncnn; tools/cpp/Profiler.cpp and
// benchmark/benchmark.cpp of MNN; the Neuron
// SDK's page about its runtime profiler.
package benchtext

import (
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
)

// Formats lists the readers.
func Formats() []*record.Format {
	return []*record.Format{
		{
			Name: "go-bench", Title: "Go benchmark text", Files: "output of go test -bench, files for benchstat; opmeter's own (report format bench)",
			Gives: []string{"latency_s", "samples"}, Match: matchGo, Read: record.RunsPerFile(readGo),
		},
		{
			Name: "hyperfine", Title: "hyperfine", Files: "--export-json and --export-csv",
			Gives: []string{"latency_s", "samples", "processor_s"}, Match: matchHyperfine, Read: record.RunsPerFile(readHyperfine),
		},
		{
			Name: "mnn", Title: "MNN timeProfile and benchmark", Files: "console output of timeProfile.out (tables by node and by type) and of benchmark.out",
			Gives: []string{"latency_s", "share"}, Match: matchMNN, Read: record.RunsPerFile(readMNN),
		},
		{
			Name: "ncnn", Title: "benchncnn", Files: "console output of benchncnn, tables of ncnn's benchmark documents",
			Gives: []string{"latency_s"}, Match: matchNCNN, Read: record.RunsPerFile(readNCNN),
		},
		{
			Name: "neuron-runtime", Title: "MediaTek Neuron Runtime Profiler", Files: "CSV log of MTKNN_PROFILER_LOG_PATH: titled tables by level",
			Gives: []string{"latency_s"}, Match: matchNeuron, Read: record.RunsPerFile(readNeuron),
		},
	}
}

// some reports whether a line at the beginning of the file, without logger prefix, satisfies is.
// Such lines contain part.
func some(f *record.File, part string, is func(string) bool) bool {
	return record.FindLine(f, func(l string) bool { return is(textscan.Strip(l)) }, part)
}

func matchGo(f *record.File) record.Sure {
	return record.Certain.If(some(f, "Benchmark", func(l string) bool {
		m := goLine.FindStringSubmatch(l)
		return m != nil && strings.Contains(m[3], "/op")
	}))
}

const hyperfineHead = "command,mean,stddev,median,user,system,min,max"

func matchHyperfine(f *record.File) record.Sure {
	return record.Certain.If(record.Head(f.Head).Has(`"results"`, `"command"`, `"mean"`) ||
		some(f, hyperfineHead, func(l string) bool { return strings.HasPrefix(l, hyperfineHead) }))
}

func matchMNN(f *record.File) record.Sure {
	return record.Certain.If(some(f, "Avg(ms)", func(l string) bool { return mnnHead(l) >= 0 }) || some(f, "[ - ]", mnnNetwork.MatchString))
}

// apart makes the runs of a file.
func apart(ds []*draft.Draft, err error) (runs []*runlog.Run, _ error) {
	draft.Apart(ds, false)
	for _, d := range ds {
		runs = append(runs, d.Run())
	}
	return draft.NotEmpty(runs, err)
}

func matchNCNN(f *record.File) record.Sure {
	return record.Certain.If(some(f, "min =", ncnnLine.MatchString))
}

func matchNeuron(f *record.File) record.Sure {
	return record.Likely.If(some(f, "(LEVEL ", func(l string) bool { return neuronTitle.MatchString(strings.TrimSpace(l)) }))
}

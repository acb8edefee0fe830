package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

func TestSweep(t *testing.T) {
	t.Parallel()
	n := int64(100)
	rows := []SweepRow{
		{
			Batch: 4, Threads: 2, Streams: 1, Latency: &profile.Metric{Kind: profile.Measured, N: &n, Median: new(0.002), P90: new(0.003), P95: new(0.004), Max: new(0.005)},
			Throughput: &profile.Metric{Kind: profile.Measured, Median: new(1500.0), Min: new(1000.0), Max: new(2000.0)}, RAMBytes: new(int64(2048)), Best: true,
		},
		{Threads: 1, Streams: 2, Error: "it is, so to say, too big"},
	}
	write := func(format string, width int) string {
		var b bytes.Buffer
		if err := Sweep(&b, "net", rows, format, width); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	want := "batch,threads,streams,latency_s,latency_p90_s,latency_p95_s,latency_p99_s,latency_max_s,runs,items_per_s,items_per_s_min,items_per_s_max,ram_bytes,best,note\n" +
		"4,2,1,0.002,0.003,0.004,,0.005,100,1500,1000,2000,2048,true,\n" +
		",1,2,,,,,,,,,,,false,\"it is, so to say, too big\"\n"
	if got := write("csv", 0); got != want {
		t.Errorf("csv:\n%s\nwant\n%s", got, want)
	}
	if got := write("json", 0); !strings.Contains(got, `"items_per_s"`) || !strings.Contains(got, `"error": "it is, so to say, too big"`) {
		t.Errorf("json:\n%s", got)
	}
	if got := write("markdown", 0); !strings.HasPrefix(got, "| batch | threads |") || strings.Count(got, "\n") != 4 {
		t.Errorf("markdown:\n%s", got)
	}
	table := write("table", 0)
	if !strings.Contains(table, "2.00 ms") || !strings.Contains(table, "1.50 k") || !strings.Contains(table, "*\n") || !strings.Contains(table, "file's") {
		t.Errorf("table:\n%s", table)
	}
	for line := range strings.Lines(write("table", 60)) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if _, err := SweepFormat("x.html"); err == nil {
		t.Error("a sweep as a page")
	}
}

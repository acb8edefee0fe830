package sensiml

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// runner prints what a pack for a computer prints: the models first, then results, counts that
// are differences of the nanoseconds of a clock without its seconds, and times in whole
// milliseconds of the measurement before. Every third inference runs over the end of a second.
const runner = `
#include <stdio.h>

int main(void)
{
	static const long took[3] = {250000L, 1250000L, 40000L};
	long before = 0;
	printf("{\"NumModels\":1,\"0\":\"TestModel\"}\n\n");
	for (int i = 0; i < 30; i++) {
		long start = i % 3 == 2 ? 999900000L : 100000000L * (i % 7);
		printf("{\"ModelNumber\":0,\"Classification\":%d}\n", 1 + i % 2);
		printf("{\"ModelNumber\":0,\"Type\":\"Cycles\", \"FeatureCycles\":[");
		for (int k = 0; k < 2; k++) {
			long end = (start + took[k]) % 1000000000L;
			printf("%s%d", k > 0 ? "," : "", (int)(end - start));
			start = end;
		}
		printf("],\"ClassifierCycles\": %d}\n\n", (int)took[2]);
		printf("{\"ModelNumber\":0,\"Type\":\"Times\", \"FeatureTimes\":[%.9f,%.9f], \"ClassifierTime\": %.9f, }\n\n",
			(double)(before / 1000000L) / 1e3, 0.0, 0.001);
		before = took[1];
	}
	return 0;
}
`

// pack builds the runner.
func pack(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil || runtime.GOOS == "windows" {
		material.Skip(t, "a C compiler (cc) is absent")
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "pack.c"), filepath.Join(dir, "pack")
	if err := os.WriteFile(source, []byte(runner), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), cc, "-std=c99", "-Wall", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// TestExec: nanoseconds of a program are times, and those over the end of a second are repaired and
// told of.
func TestExec(t *testing.T) {
	t.Parallel()
	program := pack(t)
	p, err := NewProfileParser(Options{Port: "exec:" + program, Messages: -1, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	res := p.Result()
	m := res.Models[0]
	if res.Unit != "ns" || m.Name != "TestModel" || res.Runs != 30 || !has(res, "sensiml.second") {
		t.Fatalf("%s, %s, %d runs, %v", res.Unit, m.Name, res.Runs, res.Findings)
	}
	// The clock's own differences, and a rounding of the division by 10^9.
	for i, want := range []float64{250e-6, 1250e-6} {
		s := m.Features[i].Time
		if m.Features[i].Cycles != nil || s == nil || !(math.Abs(s.Min-want) <= 1e-15) || !(math.Abs(s.Max-want) <= 1e-15) {
			t.Errorf("%s: %+v, want %v s always", m.Features[i].Name, s, want)
		}
	}
	if s := m.Classifier.Time; s == nil || !(math.Abs(s.Median-40e-6) <= 1e-15) {
		t.Errorf("classifier: %+v", s)
	}
	// The same without being told that it is a program: its whole milliseconds give it away.
	out, err := exec.CommandContext(t.Context(), program).Output()
	if err != nil {
		t.Fatal(err)
	}
	if res := replay(t, "", out, Options{Messages: -1}).Result(); res.Unit != "ns" || res.Models[0].Features[1].Time.Max != m.Features[1].Time.Max {
		t.Errorf("as a recording: %s", res.Unit)
	}
}

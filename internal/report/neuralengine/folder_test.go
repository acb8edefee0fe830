package neuralengine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// timed is a profile of two operators in two iterations.
func timed() *profile.Profile {
	p := sample.Large(2, 2, 0)
	p.Timeline = &timeline.Timeline{Lanes: []timeline.Lane{{
		Name: "operators", Kind: timeline.Layer, Starts: []float64{0, 1, 2, 3}, Durations: []float64{0.5, 0.5, 0.25, 0.25},
		Layers: []int32{0, 1, 0, 1}, Iterations: []int32{0, 0, 1, 1},
	}}}
	return p
}

func tableNames(t *testing.T, dir string) (out []string) {
	t.Helper()
	for _, f := range tables(filepath.Join(dir, Folder)) {
		out = append(out, f.stamp[len("profiling_2026-11-22_"):]+"_"+string(rune('0'+f.n)))
	}
	return out
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.Local)
	write := func(o FolderOptions, n int) {
		t.Helper()
		ps := make([]*profile.Profile, n)
		for i := range ps {
			ps[i] = timed()
		}
		if _, files, err := Write(dir, ps, o); err != nil || len(files) != 2*n {
			t.Fatal(files, err)
		}
	}
	before := time.Now().Add(-time.Hour)
	// Four processes that overlap: their numbers go on, whatever second each ends in.
	for i := range 4 {
		write(FolderOptions{Instances: 4, Started: before, Now: now.Add(time.Duration(i/2) * time.Second)}, 1)
	}
	// Four of them were enough: the next run has numbers and a second of its own.
	write(FolderOptions{Instances: 4, Started: before, Now: now.Add(time.Second)}, 1)
	// One that began after that one had ended is of another run, although it was not whole.
	write(FolderOptions{Instances: 4, Started: time.Now().Add(time.Hour), Now: now.Add(5 * time.Second)}, 1)
	// Without INST_NUM nothing is written over all the same.
	write(FolderOptions{Instances: 1, Started: before, Now: now.Add(5 * time.Second)}, 1)
	// Several instances of one process.
	write(FolderOptions{Now: now.Add(5 * time.Second)}, 2)
	want := []string{"10-00-00_0", "10-00-00_1", "10-00-01_2", "10-00-01_3", "10-00-02_0", "10-00-05_0", "10-00-05_1", "10-00-06_0", "10-00-06_1"}
	if got := tableNames(t, dir); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestAtOnce: of files of one second none is lost.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.Local)
	var all sync.WaitGroup
	for k := range 9 {
		all.Go(func() {
			if _, _, err := Write(dir, []*profile.Profile{timed()}, FolderOptions{Instances: 1 + k%3*1000, Started: now, Now: now}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := tableNames(t, dir); len(got) != 9 {
		t.Errorf("%v", got)
	}
	traces, _ := filepath.Glob(filepath.Join(dir, Folder, traceFolder, "*.json"))
	if len(traces) != 9 {
		t.Errorf("%v", traces)
	}
}

// TestNothingHalf: what cannot be written leaves nothing behind.
func TestNothingHalf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := timed()
	p.Timeline = nil
	if _, _, err := Write(dir, []*profile.Profile{p}, FolderOptions{Now: time.Now()}); !errors.Is(err, ErrNoTimeline) {
		t.Errorf("%v", err)
	}
	if got := tables(filepath.Join(dir, Folder)); len(got) != 0 {
		t.Errorf("%v", got)
	}
	// A trace without a table is not written over either.
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.Local)
	kept := filepath.Join(dir, Folder, traceFolder, "profiling_2026-11-22_10-00-00_0.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(kept), 0o700), os.WriteFile(kept, []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Write(dir, []*profile.Profile{timed()}, FolderOptions{Now: now}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(kept); err != nil || string(b) != "mine" {
		t.Errorf("%s, %v", b, err)
	}
	if got := tableNames(t, dir); !slices.Equal(got, []string{"10-00-00_1"}) {
		t.Errorf("%v", got)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for ns, want := range map[int64]string{0: "0ms", 1: "0.000001ms", 44_000: "0.044ms", 1_234_567: "1.23457ms", 123_456_789: "123.457ms", 1_234_567_890: "1234.57ms", 12_345_678_901_000: "12345679ms", 5_000_000: "5ms"} {
		if got := short(ns); got != want {
			t.Errorf("%d ns are %s, want %s", ns, got, want)
		}
	}
	if got := micros(1_234_567_891); got != "1234567.891" {
		t.Errorf("%s", got)
	}
}

func TestNamesOfOperators(t *testing.T) {
	t.Parallel()
	weights := []profile.Tensor{{Name: "x"}, {Name: "w", Constant: true}}
	for _, tt := range []struct {
		l    profile.Layer
		want string
	}{
		{profile.Layer{Op: "MatMul", Inputs: weights}, "InnerProduct"},
		{profile.Layer{Op: "MatMul", Inputs: weights[:1]}, "Matmul"},
		{profile.Layer{Op: "BATCH_MATMUL"}, "Matmul"},
		{profile.Layer{Op: "FULLY_CONNECTED"}, "InnerProduct"},
		{profile.Layer{Op: "NonMaxSuppression"}, "NonMaxSuppression"},
		{profile.Layer{Op: "Gelu", Domain: "com.microsoft"}, "Gelu"},
		{profile.Layer{Op: "Softmax", Domain: "mine"}, "Softmax"},
		{profile.Layer{Op: "Add", Domain: "mine"}, "Add"},
	} {
		if got := Operator(&tt.l); got != tt.want {
			t.Errorf("%s (%s) is %s, want %s", tt.l.Op, tt.l.Domain, got, tt.want)
		}
	}
	if postOp("GELU") != "gelu_erf" || postOp("Add") != "binary_add" || postOp("relu") != "relu" {
		t.Error("names of what is appended")
	}
}

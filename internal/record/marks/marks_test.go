package marks_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/marks"
	"github.com/opmeter/opmeter/internal/testing/marked"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
	publicrecord "github.com/opmeter/opmeter/record"
)

const (
	begin, end, frame, done, enter, leave = 1, 2, 3, 4, 5, 6
	count, level, model, dropped          = 7, 8, 9, 10
	lane                                  = 12
	unix                                  = 1_700_000_000_000_000_000
)

type m = []uint64

// camera is a stream of n frames a millisecond apart; decode takes 100 µs and i more ns, within it
// resize 40 µs, infer 200 µs; 50 µs lie between them.
func camera(w *marked.Writer, n int) {
	w.Names("camera", "decode", "resize", "infer", "input_bytes", "net.tflite")
	w.Marks(0, 0, m{lane, 0}, m{model, 4, 6, 0})
	for i := range uint64(n) {
		w.Marks(0, i*1_000_000, m{frame, 1, 0, i + 1},
			m{begin, 2, 0}, m{count, 5, 2 * (1000 + i)}, m{begin, 3, 10_000}, m{end, 3, 40_000}, m{end, 2, 50_000 + i},
			m{begin, 4, 50_000}, m{end, 4, 200_000}, m{done, 0, 0, i + 1})
	}
}

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	// Figures are sums of nanoseconds as binary fractions of a second.
	if got == nil || !(math.Abs(*got-want) <= 1e-12) {
		t.Errorf("%s: %v, want %g", what, got, want)
	}
}

func one(t *testing.T, w *marked.Writer) *profile.Profile {
	t.Helper()
	list := records.Read(t, marks.Format(), []*record.File{record.Bytes("run.marks", w.Out)}, record.Options{})
	if len(list) != 1 {
		t.Fatalf("%d profiles", len(list))
	}
	return list[0]
}

func finding(p *profile.Profile, id string) string {
	for _, f := range p.Findings {
		if f.ID == id {
			return f.Text
		}
	}
	return ""
}

func TestPipeline(t *testing.T) {
	t.Parallel()
	w := &marked.Writer{Process: 7}
	w.Hello(4711, unix)
	camera(w, 101)
	w.Sync(1 << 40)
	w.End(1 << 40)
	p := one(t, w)
	if p.Model.Name != "camera" || p.Model.Format != "marks" || p.Created != "2023-11-14T22:13:20Z" || len(p.Incomplete) != 0 || len(p.Layers) != 3 {
		t.Fatalf("%+v %v %v", p.Model, p.Created, p.Incomplete)
	}
	// The first frame counts separately. The median of frames 1 to 100 is 50.5.
	near(t, "frame", p.Totals.Latency.Median, 350_050.5e-9)
	near(t, "first", p.Phases.FirstRunS, 350_000e-9)
	for i, x := range []struct {
		name   string
		self   float64
		parent *int64
	}{{"decode", 60_050.5e-9, nil}, {"decode/resize", 40_000e-9, new(int64(0))}, {"infer", 200_000e-9, nil}} {
		l := &p.Layers[i]
		near(t, x.name, l.Latency.Median, x.self)
		if l.Name != x.name || (l.Parent == nil) != (x.parent == nil) || l.Parent != nil && *l.Parent != *x.parent {
			t.Errorf("%+v", l)
		}
	}
	near(t, "with what is within", p.Layers[0].Total.Median, *p.Layers[0].Latency.Median+40_000e-9)
	if p.Layers[2].Option("model") != "net.tflite" {
		t.Errorf("%+v", p.Layers[2].Options)
	}
	near(t, "bytes", p.Layers[0].Figures["marked_input_bytes"].Median, 1050)
	near(t, "between", p.Totals.Figures["unmarked_s"].Median, 50_000e-9)
	rate := 101 / (100_000_000e-9 + 350_100e-9)
	// rounding of one division
	if v, _ := p.Totals.Figures["frames_per_s"].Best(); !(math.Abs(v/rate-1) < 1e-12) {
		t.Errorf("%g frames a second, want %g", v, rate)
	}
	tl := p.Timeline
	if tl == nil || len(tl.Lanes) != 2 || tl.Lanes[0].Name != "frames" || len(tl.Lanes[0].Starts) != 101 || tl.Lanes[1].Name != "thread 1" || len(tl.Lanes[1].Starts) != 303 {
		t.Fatalf("%+v", tl)
	}
	if l := tl.Lanes[1]; l.Layers[0] != 0 || l.Layers[1] != 1 || l.Layers[2] != 2 || l.Iterations[3] != 1 || l.Starts[0] != 0 {
		t.Errorf("layers %v, iterations %v", l.Layers[:4], l.Iterations[:4])
	}
}

// TestProcesses: processes of one file share stages and a timeline; time in which none worked is
// in no rate.
func TestProcesses(t *testing.T) {
	t.Parallel()
	w := &marked.Writer{Process: 1}
	w.Hello(10, unix)
	camera(w, 20)
	w.End(1 << 30)
	w.Process = 2
	w.Hello(11, unix+3600_000_000_000) // an hour later
	camera(w, 20)
	p := one(t, w)
	if *p.Totals.Latency.N != 39 || len(p.Layers) != 3 || len(p.Timeline.Lanes) != 4 || p.Timeline.Lanes[0].Group != "process 10" {
		t.Errorf("%+v, %d layers", p.Totals.Latency, len(p.Layers))
	}
	rate := 40 / (2 * (19_000_000e-9 + 350_019e-9))
	// times since 1970 as fractions
	if v, _ := p.Totals.Figures["frames_per_s"].Best(); !(math.Abs(v/rate-1) < 1e-9) {
		t.Errorf("%g frames a second, want %g", v, rate)
	}
	if len(p.Incomplete) != 1 || p.Incomplete[0].Cause != profile.ByEnd || !strings.Contains(p.Incomplete[0].Text, "1 of 2 processes") {
		t.Errorf("%+v", p.Incomplete)
	}
}

// TestParallel: stages that run at the same time are not reconciled sum, and are said to.
func TestParallel(t *testing.T) {
	t.Parallel()
	w := &marked.Writer{}
	w.Names("camera", "a", "b", "queue")
	for i := range uint64(10) {
		at := i * 10_000
		w.Marks(0, at, m{frame, 1, 0, i + 1}, m{begin, 2, 0}, m{end, 2, 5000}, m{done, 0, 1000, i + 1})
		w.Marks(1, at+100, m{enter, 0, 0, i + 1}, m{begin, 3, 0}, m{end, 3, 4000}, m{leave, 0, 0})
		w.Sync(at + 9000)
	}
	p := one(t, w)
	if p.Reconcile != nil || finding(p, "marks.parallel") == "" {
		t.Errorf("%+v, %q", p.Reconcile, finding(p, "marks.parallel"))
	}
	near(t, "between", p.Totals.Figures["unmarked_s"].Median, 1000e-9)
	near(t, "b", p.Layers[1].Latency.Median, 4000e-9)
}

// TestPipelines: each kind of frame is a profile.
func TestPipelines(t *testing.T) {
	t.Parallel()
	w := &marked.Writer{}
	w.Names("camera", "microphone", "a")
	for i := range uint64(10) {
		w.Marks(0, i*1000, m{frame, 1 + i%2, 0, i + 1}, m{begin, 3, 0}, m{end, 3, 100 + i}, m{done, 0, 0, i + 1}, m{begin, 3, 0}, m{end, 3, 1})
	}
	w.End(1 << 30)
	list := records.Read(t, marks.Format(), []*record.File{record.Bytes("x", w.Out)}, record.Options{})
	if len(list) != 2 || list[0].Model.Name != "camera" || list[1].Model.Name != "microphone" || *list[0].Totals.Latency.N != 4 {
		t.Fatalf("%d profiles", len(list))
	}
	if finding(list[0], "marks.outside") == "" {
		t.Error("stages outside of frames are not told of")
	}
}

func TestNothing(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(w *marked.Writer){
		"no frame and no stage": func(w *marked.Writer) { w.Hello(1, 1); w.End(5) },
		"no frame that has":     func(w *marked.Writer) { w.Names("x"); w.Marks(0, 0, m{frame, 1, 0, 1}); w.Sync(3) },
	} {
		w := &marked.Writer{}
		make(w)
		_, err := records.Try(t, marks.Format(), []*record.File{record.Bytes("x", w.Out)}, record.Options{})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestImport: the public way knows the file, and the stage that runs a model gets its work.
func TestImport(t *testing.T) {
	t.Parallel()
	w := &marked.Writer{}
	camera(w, 20)
	w.End(1 << 30)
	path := filepath.Join(t.TempDir(), "run.marks")
	if err := os.WriteFile(path, w.Out, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := publicrecord.Import(t.Context(), path, publicrecord.Options{})
	if err != nil || len(got.Profiles) != 1 || got.Profiles[0].Model.Format != "marks" || len(got.Profiles[0].Layers) != 3 {
		t.Fatal(got, err)
	}
}

func FuzzFormat(f *testing.F) {
	w := &marked.Writer{}
	w.Hello(1, unix)
	camera(w, 3)
	w.Sync(1 << 30)
	w.End(1 << 30)
	f.Add(w.Out)
	f.Fuzz(func(t *testing.T, data []byte) { records.Fuzz(t, marks.Format(), "x.marks", data) })
}

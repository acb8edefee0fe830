package marks_test

import (
	"math"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/marks"
	"github.com/opmeter/opmeter/internal/testing/marked"
	"github.com/opmeter/opmeter/internal/testing/talk"
	"github.com/opmeter/opmeter/profile"
)

const (
	begin, end, frame, done, count, model = 1, 2, 3, 4, 7, 9
)

type m = []uint64

// stream has n frames; from frame late on a stage runs in another that did not before.
func stream(n, late int) *marked.Writer {
	w := &marked.Writer{Process: 3}
	w.Hello(5, 1_700_000_000_000_000_000)
	w.Names("camera", "decode", "infer", "late", "items", "net.tflite")
	w.Marks(0, 0, m{model, 3, 6, 0})
	for i := range uint64(n) {
		list := []m{{frame, 1, 0, i + 1}, {begin, 2, 0}, {count, 5, 2 * i}}
		if i >= uint64(late) {
			list = append(list, m{begin, 4, 0}, m{end, 4, 500})
		}
		list = append(list, m{end, 2, 1000 + i}, m{begin, 3, 100}, m{end, 3, 2000}, m{done, 0, 0, i + 1})
		w.Marks(0, i*10_000, list...)
		w.Sync(i*10_000 + 9000)
	}
	return w
}

func finding(p *profile.Profile, id string) string {
	for _, f := range p.Findings {
		if f.ID == id {
			return f.Text
		}
	}
	return ""
}

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	// Figures are nanoseconds as binary fractions of a second.
	if got == nil || !(math.Abs(*got-want) <= 1e-12) {
		t.Errorf("%s: %v, want %g", what, got, want)
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	w := stream(50, 1000)
	w.End(1 << 40)
	known := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Totals: profile.Totals{MACs: new(int64(77))}}
	for _, model := range []*profile.Profile{nil, known} {
		p, err := talk.Bytes(t, marks.Protocol(), w.Out, device.Rules{Runs: 30, Warmup: 1, Model: model})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Layers) != 2 || *p.Totals.Latency.N != 30 || p.Layers[1].Op != "infer" {
			t.Fatalf("%+v", p.Totals.Latency)
		}
		// Frames 1 to 30 count: the middle is 15.5.
		near(t, "frame", p.Totals.Latency.Median, 3115.5e-9)
		near(t, "decode", p.Layers[0].Latency.Median, 1015.5e-9)
		near(t, "between", p.Totals.Figures["unmarked_s"].Median, 100e-9)
		near(t, "items", p.Layers[0].Figures["marked_items"].Median, 15.5)
		if got := p.Layers[1].MACs; model != nil && (got == nil || *got != 77 || p.Model.Name != "net") || model == nil && got != nil {
			t.Errorf("%v", got)
		}
		if len(p.Incomplete) != 0 {
			t.Error(p.Incomplete)
		}
	}
}

// TestLate: a stage that runs for the first time when stages are listed stands at the one around
// it.
func TestLate(t *testing.T) {
	t.Parallel()
	w := stream(60, 40)
	p, err := talk.Bytes(t, marks.Protocol(), w.Out, device.Rules{Runs: 60})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(finding(p, "marks.late"), `"late"`) || len(p.Layers) != 2 {
		t.Errorf("%+v", p.Findings)
	}
	// Frame 59: 500 in the late one and 1059 beside it.
	near(t, "decode", p.Layers[0].Latency.Max, 1559e-9)
}

// TestShort: fewer frames than are wanted are an error, and stay.
func TestShort(t *testing.T) {
	t.Parallel()
	w := stream(5, 1000)
	p, err := talk.Bytes(t, marks.Protocol(), w.Out[:len(w.Out)-10], device.Rules{Runs: 30})
	if err == nil || p == nil || *p.Totals.Latency.N != 5 {
		t.Errorf("%+v, %v", p, err)
	}
	w = &marked.Writer{}
	w.Hello(1, 1)
	w.End(1)
	if _, err := talk.Bytes(t, marks.Protocol(), w.Out, device.Rules{Runs: 3}); err == nil {
		t.Error("no frame is not an error")
	}
}

func TestSure(t *testing.T) {
	t.Parallel()
	w := stream(2, 10)
	p := marks.Protocol()
	if p.Sure(w.Out) < 90 || p.Sure([]byte("hello\n")) != 0 || p.Sure(append([]byte("log line\n"), w.Out...)) < 90 || p.Sure(w.Out[:10]) >= 80 {
		t.Errorf("%d %d", p.Sure(w.Out), p.Sure(w.Out[:10]))
	}
}

func FuzzProtocol(f *testing.F) {
	w := stream(20, 5)
	f.Add(w.Out)
	f.Add(w.Out[300:])
	f.Fuzz(func(t *testing.T, data []byte) {
		p, _ := talk.Bytes(t, marks.Protocol(), data, device.Rules{Runs: 10})
		if p != nil && p.Validate() != nil {
			t.Error(p.Validate())
		}
	})
}

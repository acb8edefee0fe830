package stages_test

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/source/stages"
	"github.com/opmeter/opmeter/internal/testing/marked"
	"github.com/opmeter/opmeter/profile"
)

const (
	begin, end, frame, done, enter, leave = 1, 2, 3, 4, 5, 6
	count, level, model, dropped, own     = 7, 8, 9, 10, 11
	lane                                  = 12
)

type m = []uint64

type got struct {
	stages.Collector
	d      stages.Decoder
	cut    int
	frames []*stages.Frame
	bars   []stages.Bar
}

func read(data []byte, piece int) *got {
	g := &got{}
	g.Frame = func(f *stages.Frame) { g.frames = append(g.frames, f) }
	g.Bar = func(b stages.Bar) { g.bars = append(g.bars, b) }
	for len(data) > 0 {
		n := min(piece, len(data))
		g.d.Feed(data[:n], g.Block)
		data = data[n:]
	}
	g.cut = g.d.End(g.Block)
	g.End()
	return g
}

func (g *got) shares(i int) map[string][2]int64 {
	out := map[string][2]int64{}
	for _, s := range g.frames[i].Shares {
		name := ""
		for n := s.Node; n >= 0; n = g.Nodes[n].Parent {
			name = g.Nodes[n].Name + strings.TrimSuffix("/"+name, "/")
		}
		out[name] = [2]int64{s.Calls, s.Self}
	}
	return out
}

// TestBytes reads a stream as in docs/reference/marks.md, byte by byte.
func TestBytes(t *testing.T) {
	t.Parallel()
	// A block of marks: lane 0 from 1000 ns, a frame of name 1 with number 7, a stage of name 2
	// from 5 ns after it for 300 ns, and its end 10 ns later.
	want := "6f4d6bf5" + "01" + "01" + "1000" + "78563412" + "00000000" +
		"00e807" + "130007" + "2105" + "22ac02" + "040a07" + "0000"
	b, err := hex.DecodeString(want)
	if err != nil || len(b) != 32 {
		t.Fatal(err, len(b))
	}
	var first, second uint64 = 1, 0
	for i := 0; i < len(b); i += 4 {
		first += uint64(binary.LittleEndian.Uint32(b[i:]))
		second += first
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(first%(1<<32)))
	b = binary.LittleEndian.AppendUint32(b, uint32(second%(1<<32)))
	g := read(b, 1)
	if len(g.frames) != 1 || g.cut != 0 || g.d.Foreign != 0 {
		t.Fatalf("%d frames, %d, %d", len(g.frames), g.cut, g.d.Foreign)
	}
	f := g.frames[0]
	if f.Number != 7 || f.Begin != 1000 || f.End != 1315 || f.Unmarked != 15 || f.Work != 300 || !reflect.DeepEqual(f.Shares, []stages.Share{{Node: 0, Calls: 1, Self: 300}}) {
		t.Errorf("%+v", f)
	}
	for i := range b {
		x := append([]byte(nil), b...)
		x[i] ^= 0x10
		if g := read(x, 1000); len(g.frames) != 0 {
			t.Errorf("byte %d may be wrong", i)
		}
	}
}

// TestNested: time belongs to the innermost stage, calls add up, and the cost of marks belongs to
// no stage.
func TestNested(t *testing.T) {
	t.Parallel()
	w := &marked.Writer{Process: 1}
	w.Hello(77, 0)
	w.Names("camera", "pre", "resize", "infer", "hits")
	w.Marks(0, 1000, m{lane, 0}, m{frame, 1, 0, 5},
		// pre: 70, of which resize 35
		m{begin, 2, 10}, m{begin, 3, 20}, m{count, 5, 6}, m{end, 3, 30}, m{begin, 3, 5}, m{count, 5, 3}, m{end, 3, 5}, m{end, 2, 10},
		m{begin, 4, 100}, m{own, 0, 50, 40}, m{end, 4, 50}, // infer: 100 less 40
		m{own, 0, 20, 20}, // between
		m{done, 0, 30, 5})
	w.Sync(5000)
	w.End(6000)
	g := read(w.Out, 7)
	if len(g.frames) != 1 {
		t.Fatal(len(g.frames), g.Problems)
	}
	f := g.frames[0]
	// 10 before, 100 between, 30 after; 20 of writing marks are not a gap.
	if f.End-f.Begin != 330 || f.Own != 60 || f.Unmarked != 140 {
		t.Errorf("%d long, %d own, %d unmarked", f.End-f.Begin, f.Own, f.Unmarked)
	}
	if want := map[string][2]int64{"pre": {1, 35}, "pre/resize": {2, 35}, "infer": {1, 60}}; !reflect.DeepEqual(g.shares(0), want) {
		t.Errorf("%v, want %v", g.shares(0), want)
	}
	// 6 is 3 and 3 is -2 in zigzag
	if len(f.Figures) != 1 || f.Figures[0].Value != 3-2 || g.Nodes[f.Figures[0].Node].Name != "resize" {
		t.Errorf("%+v", f.Figures)
	}
	if g.Problems != (stages.Collector{}).Problems {
		t.Error(g.Problems)
	}
}

// TestWrong: ends without beginnings, stages left open, missing frames.
func TestWrong(t *testing.T) {
	t.Parallel()
	w := &marked.Writer{Process: 1}
	w.Names("camera", "a", "b", "c")
	w.Marks(0, 0, m{lane, 0},
		m{end, 2, 1},      // nothing runs
		m{frame, 1, 0, 1}, // from 1
		m{begin, 2, 1},    // a from 2
		m{begin, 3, 1},    // b from 3
		m{end, 2, 10},     // ends a and b at 13
		m{begin, 4, 0},    // c from 13
		m{done, 0, 7, 1},  // the frame and c end at 20
		m{done, 0, 1, 1},  // again
		m{done, 0, 1, 99}, // never was
		m{end, 4, 1},      // c has ended
		m{frame, 1, 0, 2}, // never ends
		m{begin, 2, 1})
	w.End(100)
	g := read(w.Out, 4096)
	if len(g.frames) != 1 {
		t.Fatal(len(g.frames))
	}
	if want := map[string][2]int64{"a": {1, 1}, "a/b": {1, 10}, "c": {1, 7}}; !reflect.DeepEqual(g.shares(0), want) {
		t.Errorf("%v, want %v", g.shares(0), want)
	}
	p := g.Problems
	if p[stages.EndWithoutBegin] != 2 || p[stages.LeftOpen] != 2 || p[stages.FrameWithoutBegin] != 2 || p[stages.FrameUnfinished] != 1 {
		t.Error(p)
	}
}

// TestLanes: a frame that several threads work for, whose blocks arrive in any order.
func TestLanes(t *testing.T) {
	t.Parallel()
	w := &marked.Writer{Process: 1}
	w.Names("camera", "a", "b")
	// b from 150 to 250
	w.Marks(1, 0, m{lane, 0}, m{enter, 0, 150, 1}, m{begin, 3, 0}, m{end, 3, 100}, m{done, 0, 0, 1})
	// a from 100 to 190
	w.Marks(0, 0, m{lane, 0}, m{frame, 1, 100, 1}, m{begin, 2, 0}, m{end, 2, 90}, m{leave, 0, 1})
	w.Sync(1000)
	w.End(1000)
	g := read(w.Out, 4096)
	if len(g.frames) != 1 {
		t.Fatal(len(g.frames), g.Problems)
	}
	f := g.frames[0]
	if f.Begin != 100 || f.End != 250 || f.Unmarked != 0 || f.Work != 190 {
		t.Errorf("%+v", f)
	}
	if want := map[string][2]int64{"a": {1, 90}, "b": {1, 100}}; !reflect.DeepEqual(g.shares(0), want) {
		t.Errorf("%v", g.shares(0))
	}
}

// TestDropped: a frame with dropped marks does not count, one that had ended before does.
func TestDropped(t *testing.T) {
	t.Parallel()
	w := &marked.Writer{Process: 1}
	w.Names("camera", "a")
	w.Marks(0, 0, m{lane, 0}, m{frame, 1, 0, 1}, m{begin, 2, 1}, m{end, 2, 1}, m{done, 0, 1, 1},
		m{frame, 1, 0, 2}, m{begin, 2, 1}, m{dropped, 0, 30}, m{end, 2, 1}, m{done, 0, 1, 2},
		m{frame, 1, 0, 3}, m{begin, 2, 1}, m{end, 2, 1}, m{done, 0, 1, 3})
	w.End(100)
	g := read(w.Out, 4096)
	if len(g.frames) != 2 || g.frames[0].Number != 1 || g.frames[1].Number != 3 {
		t.Errorf("%d frames", len(g.frames))
	}
	if p := g.Problems; p[stages.DroppedMarks] != 30 || p[stages.LostFrames] != 1 || p[stages.EndWithoutBegin] != 0 {
		t.Error(p)
	}
}

// TestLost: a missing block makes the frames of its time uncertain; the next ones count.
func TestLost(t *testing.T) {
	t.Parallel()
	w := &marked.Writer{Process: 1}
	w.Names("camera", "a")
	one := func(n, at uint64) []m {
		return []m{{frame, 1, 0, n}, {begin, 2, 1}, {end, 2, 1}, {done, 0, 1, n}}
	}
	w.Marks(0, 0, append([]m{{lane, 0}, {frame, 1, 0, 1}, {begin, 2, 1}}, one(9, 0)[2:3]...)...)
	before := len(w.Out)
	w.Marks(0, 10, m{done, 0, 1, 1}, m{begin, 2, 1})
	after := len(w.Out)
	w.Marks(0, 20, append([]m{{end, 2, 1}}, one(2, 20)...)...)
	w.End(100)
	g := read(append(append([]byte(nil), w.Out[:before]...), w.Out[after:]...), 4096)
	if len(g.frames) != 1 || g.frames[0].Number != 2 || g.Problems[stages.LostBlocks] != 1 || g.Problems[stages.EndWithoutBegin] != 0 {
		t.Errorf("%d frames, %v", len(g.frames), g.Problems)
	}
	// Text between blocks, a truncated block, one of a later version.
	mixed := append([]byte("starting camera\n"), w.Out[:after]...)
	mixed = append(mixed, w.Out[after:after+20]...)
	mixed = append(mixed, w.Out[after:]...)
	g = read(mixed, 5)
	// Two frames, and a stage between them that is a frame of its own.
	if len(g.frames) != 3 || g.d.Foreign != 16+20 {
		t.Errorf("%d frames, %d foreign bytes", len(g.frames), g.d.Foreign)
	}
}

// TestCut: if the end is missing, everything before is complete.
func TestCut(t *testing.T) {
	t.Parallel()
	w := &marked.Writer{Process: 1}
	w.Names("camera", "a")
	for i := range uint64(20) {
		w.Marks(0, 100*i, m{frame, 1, 0, i + 1}, m{begin, 2, 1}, m{end, 2, 1}, m{done, 0, 1, i + 1})
		w.Sync(100*i + 50)
	}
	last := 0
	for n := range len(w.Out) {
		g := read(w.Out[:n], 64)
		if len(g.frames) < last || g.cut == 0 && g.d.Foreign > 3 || g.cut > 0 && g.d.Foreign != 0 {
			t.Fatalf("%d bytes: %d frames after %d, %d foreign, %d cut", n, len(g.frames), last, g.d.Foreign, g.cut)
		}
		last = len(g.frames)
	}
	if last != 20 {
		t.Error(last)
	}
}

// TestImplied: stages without a frame are frames of their own.
func TestImplied(t *testing.T) {
	t.Parallel()
	w := &marked.Writer{Process: 1}
	w.Names("decode", "inner", "infer")
	w.Marks(0, 0, m{lane, 0}, m{begin, 1, 10}, m{begin, 2, 5}, m{end, 2, 5}, m{end, 1, 5}, m{begin, 3, 100}, m{end, 3, 50}, m{begin, 1, 1}, m{end, 1, 9})
	w.End(1000)
	g := read(w.Out, 4096)
	if len(g.frames) != 3 || g.Explicit || len(g.Pipelines) != 2 || g.Pipelines[0] != (stages.Pipeline{Name: "decode", Implied: true}) {
		t.Fatalf("%d frames, %+v", len(g.frames), g.Pipelines)
	}
	if f := g.frames[0]; f.Begin != 10 || f.End != 25 || f.Unmarked != 0 || len(f.Shares) != 2 {
		t.Errorf("%+v", f)
	}
}

// TestBounds: more of everything than the limits.
func TestBounds(t *testing.T) {
	t.Parallel()
	w := &marked.Writer{}
	w.Names("camera", "a")
	for i := range uint32(stages.MaxProcesses + 20) {
		w.Process = i
		w.Sync(1)
	}
	w.Process = 5
	for i := range uint64(6000) {
		w.Marks(0, i, m{frame, 1, 0, i}) // frames that never end
	}
	for i := range uint64(2000) {
		w.Marks(i, 10000, m{begin, 2, 0})
	}
	for range 200 {
		w.Marks(3, 20000, m{begin, 2, 0})
	}
	for i := range uint64(70) {
		w.Marks(4, 20000+i, m{frame, 1000 + i, 0, 100000 + i})
	}
	w.Marks(0, 1<<62, m{begin, 2, 0})
	w.Marks(0, 1, m{begin, 2, 1 << 62})
	w.Marks(0, 1, m{begin, 1 << 30, 1})
	w.Marks(0, 1, m{15, 1, 1})
	w.Block(9, []byte("of a later kind"))
	w.Block(2, nil)
	w.Block(3, marked.Numbers(1, 1<<60))
	w.Block(4, nil)
	g := read(w.Out, 4096)
	if len(g.Processes) != stages.MaxProcesses || g.Problems[stages.TooMany] < 20+2000+900 || g.Problems[stages.TooDeep] < 100 || g.Problems[stages.Malformed] < 6 {
		t.Errorf("%d processes, %v", len(g.Processes), g.Problems)
	}
}

// TestAttach: the stage that runs a model gets the model's description.
func TestAttach(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	known := &profile.Profile{Model: profile.Model{Name: "net", SHA256: sum}, Totals: profile.Totals{Ops: new(int64(100)), MACs: new(int64(50))}}
	for _, test := range []struct {
		name         string
		file, sha256 string
		want         bool
	}{
		{"by name", "dir/net.tflite", "", true},
		{"by hash", "other.onnx", strings.ToUpper(sum), true},
		{"the only one", "other.onnx", "", true},
		{"another hash", "net.tflite", strings.Repeat("cd", 32), false},
	} {
		w := &marked.Writer{}
		w.Names("camera", "decode", "infer", test.file, test.sha256)
		w.Marks(0, 0, m{model, 3, 4, map[bool]uint64{true: 5}[test.sha256 != ""]}, m{frame, 1, 0, 1}, m{begin, 2, 1}, m{end, 2, 1}, m{begin, 3, 1}, m{end, 3, 1}, m{done, 0, 1, 1})
		w.End(10)
		g := read(w.Out, 4096)
		l := g.Layout(0)
		p := &profile.Profile{Layers: l.Layers}
		if ok := l.Attach(p, known); ok != test.want {
			t.Errorf("%s: %v", test.name, ok)
		}
		if x := p.Layers[1]; test.want != (x.MACs != nil && *x.MACs == 50) || x.Op != "infer" || x.Option("model") != test.file || p.Layers[0].MACs != nil {
			t.Errorf("%s: %+v", test.name, x)
		}
	}
}

func TestQuantity(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]string{
		"input_bytes": {"marked_input_bytes", "B"}, "Bytes": {"marked_bytes", "B"}, "wait (s)": {"marked_wait_s", "s"}, "items": {"marked_items", ""}, "größe": {"marked_gr_e", ""},
	} {
		q, ok := stages.Quantity(name, true)
		if !ok || q.Key != want[0] || q.Unit != want[1] || q.Name != name {
			t.Errorf("%q: %+v", name, q)
		}
	}
	if _, ok := stages.Quantity("…", true); ok {
		t.Error("a key of nothing")
	}
}

// FuzzCollect: for any bytes in any chunks nothing panics, and frames are consistent.
func FuzzCollect(f *testing.F) {
	w := &marked.Writer{Process: 9}
	w.Hello(4, 1<<60)
	w.Names("camera", "a", "b")
	w.Marks(0, 0, m{lane, 1}, m{frame, 1, 0, 1}, m{begin, 2, 1}, m{count, 3, 4}, m{level, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0}, m{model, 2, 1, 2}, m{end, 2, 1}, m{own, 0, 2, 1}, m{done, 0, 1, 1}, m{dropped, 0, 3})
	w.Sync(50)
	w.End(100)
	f.Add(w.Out, 7)
	f.Add(w.Out[:len(w.Out)-9], 4096)
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		// Correct the checksums, so that the code after the check is tested too.
		fixed := append([]byte(nil), data...)
		for i := 0; i+24 <= len(fixed); i++ {
			if string(fixed[i:i+4]) != "oMk\xF5" {
				continue
			}
			size := int(binary.LittleEndian.Uint16(fixed[i+6:]))
			if size%4 != 0 || i+16+size+8 > len(fixed) {
				continue
			}
			var first, second uint32 = 1, 0
			for k := i; k < i+16+size; k += 4 {
				first += binary.LittleEndian.Uint32(fixed[k:])
				second += first
			}
			binary.LittleEndian.PutUint32(fixed[i+16+size:], first)
			binary.LittleEndian.PutUint32(fixed[i+20+size:], second)
		}
		for _, b := range [][]byte{data, fixed} {
			g := read(b, max(1, piece))
			for _, x := range g.frames {
				if x.End < x.Begin || x.Unmarked < 0 || x.Unmarked > x.End-x.Begin || x.Own < 0 || x.Work < 0 {
					t.Fatalf("%+v", x)
				}
				for _, s := range x.Shares {
					if s.Self < 0 || s.Calls < 1 || s.Node < 0 || s.Node >= len(g.Nodes) || g.Nodes[s.Node].Pipeline != x.Pipeline {
						t.Fatalf("%+v in %+v", s, x)
					}
				}
				for _, v := range x.Figures {
					if math.IsNaN(v.Value) || v.Node >= len(g.Nodes) {
						t.Fatalf("%+v", v)
					}
				}
			}
			for i := range g.Pipelines {
				l := g.Layout(i)
				for k, x := range l.Layers {
					if x.Parent != nil && (*x.Parent < 0 || *x.Parent >= int64(k)) {
						t.Fatalf("%+v", x)
					}
				}
			}
		}
	})
}

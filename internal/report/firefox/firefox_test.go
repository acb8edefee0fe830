package firefox

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/report/spans"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

// file holds the members of version 48 that the page reads; others are refused.
type file struct {
	Meta struct {
		Interval, StartTime           float64
		ProcessType, Stackwalk        *int
		Debug                         bool
		Version                       int
		PreprocessedProfileVersion    int
		Symbolicated                  bool
		UsesOnlyOneStackType          bool
		DoesNotUseFrameImplementation bool
		SourceCodeIsNotOnSearchfox    bool
		Product, ImportedFrom         string
		CPUName, Oscpu                string
		Categories                    []struct {
			Name, Color   string
			Subcategories []string
		}
		MarkerSchema []struct {
			Name                                 string
			Display                              []string
			TooltipLabel, TableLabel, ChartLabel string
			Data                                 []struct {
				Key, Label, Format string
				Searchable         bool
			}
		}
		Extra []struct {
			Label   string
			Entries []struct{ Label, Format, Value string }
		}
	}
	Libs    []any
	Threads []thread
}

type thread struct {
	ProcessType, ProcessName, Name string
	ProcessStartupTime             *float64
	ProcessShutdownTime            *float64
	RegisterTime, UnregisterTime   *float64
	PausedRanges                   []any
	ShowMarkersInTimeline          bool
	IsMainThread                   bool
	PID                            string
	TID                            int
	Samples                        struct {
		Length     int
		WeightType string
		Stack      []int
		Time       []float64
		Weight     []float64
	}
	Markers struct {
		Length             int
		Name               []int
		StartTime, EndTime []float64
		Phase, Category    []int
		Data               []map[string]any
	}
	StackTable struct {
		Length, _                    int
		Frame, Category, Subcategory []int
		Prefix                       []*int
	}
	FrameTable struct {
		Length                                                    int
		Address, InlineDepth, Category, Subcategory, Func         []int
		NativeSymbol, Implementation, Column, Line, InnerWindowID []*int
	}
	FuncTable struct {
		Length                             int
		Name, Resource                     []int
		IsJS, RelevantForJS                []bool
		FileName, LineNumber, ColumnNumber []*int
	}
	ResourceTable struct {
		Length                int
		Lib, Name, Host, Type []int
	}
	NativeSymbols struct {
		Length                                int
		LibIndex, Address, Name, FunctionSize []int
	}
	StringArray []string
}

func read(t *testing.T, p *profile.Profile) *file {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	var f file
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	m := f.Meta
	if m.PreprocessedProfileVersion != 48 || m.ProcessType == nil || m.Stackwalk == nil || m.Product == "" || m.Interval <= 0 || len(m.Categories) == 0 || m.Categories[0].Color != "grey" || f.Libs == nil {
		t.Fatalf("meta %+v", m)
	}
	for i := range f.Threads {
		checkThread(t, &f, &f.Threads[i])
	}
	return &f
}

func checkThread(t *testing.T, f *file, th *thread) {
	t.Helper()
	lengths := func(table string, want int, have ...int) {
		t.Helper()
		for i, n := range have {
			if n != want {
				t.Fatalf("column %d of %s has %d entries of %d", i, table, n, want)
			}
		}
	}
	below := func(what string, limit int, vs ...int) {
		t.Helper()
		for _, v := range vs {
			if v < 0 || v >= limit {
				t.Fatalf("%s is %d of %d", what, v, limit)
			}
		}
	}
	if th.ProcessType == "" || th.PID == "" || th.TID == 0 || th.PausedRanges == nil || th.StringArray == nil || th.ProcessStartupTime == nil || th.RegisterTime == nil {
		t.Fatalf("thread %q: %+v", th.Name, th)
	}
	s := th.Samples
	lengths("samples", s.Length, len(s.Stack), len(s.Time), len(s.Weight))
	below("stack", th.StackTable.Length, s.Stack...)
	if s.WeightType != "tracing-ms" {
		t.Fatalf("weights are %q", s.WeightType)
	}
	end := 0.0
	for i, at := range s.Time {
		if at < end-1e-6 || s.Weight[i] <= 0 {
			t.Fatalf("sample %d at %g ms lasts %g, the one before ends at %g", i, at, s.Weight[i], end)
		}
		end = at + s.Weight[i]
	}
	k := th.Markers
	lengths("markers", k.Length, len(k.Name), len(k.StartTime), len(k.EndTime), len(k.Phase), len(k.Category), len(k.Data))
	below("name of a marker", len(th.StringArray), k.Name...)
	below("category", len(f.Meta.Categories), k.Category...)
	for i := range k.Name {
		if k.Phase[i] != 1 || k.EndTime[i] < k.StartTime[i] {
			t.Fatalf("marker %d from %g to %g, phase %d", i, k.StartTime[i], k.EndTime[i], k.Phase[i])
		}
		if k.Data[i] != nil && k.Data[i]["type"] != f.Meta.MarkerSchema[0].Name {
			t.Fatalf("marker %d: %v", i, k.Data[i])
		}
	}
	st := th.StackTable
	lengths("stackTable", st.Length, len(st.Frame), len(st.Prefix), len(st.Category), len(st.Subcategory))
	below("frame", th.FrameTable.Length, st.Frame...)
	below("category", len(f.Meta.Categories), st.Category...)
	for i, p := range st.Prefix {
		if p != nil && (*p < 0 || *p >= i) {
			t.Fatalf("stack %d lies on %d", i, *p)
		}
	}
	fr := th.FrameTable
	lengths("frameTable", fr.Length, len(fr.Address), len(fr.InlineDepth), len(fr.Category), len(fr.Subcategory), len(fr.Func), len(fr.NativeSymbol), len(fr.Implementation), len(fr.Column), len(fr.Line), len(fr.InnerWindowID))
	below("function", th.FuncTable.Length, fr.Func...)
	fn := th.FuncTable
	lengths("funcTable", fn.Length, len(fn.Name), len(fn.Resource), len(fn.IsJS), len(fn.RelevantForJS), len(fn.FileName), len(fn.LineNumber), len(fn.ColumnNumber))
	below("name of a function", len(th.StringArray), fn.Name...)
	for _, n := range fn.FileName {
		if n != nil {
			below("file", len(th.StringArray), *n)
		}
	}
}

func TestRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		p := sample.Random(rand.New(rand.NewPCG(seed, 5)))
		f := read(t, p)
		v := spans.Of(p)
		if len(f.Threads) != len(v.Lanes) {
			t.Fatalf("seed %d: %d threads of %d lanes", seed, len(f.Threads), len(v.Lanes))
		}
		for i := range v.Lanes {
			th := &f.Threads[i]
			if th.Name != v.Lanes[i].Name {
				t.Fatalf("seed %d: thread %q", seed, th.Name)
			}
			at, outer := 0, 0.0
			for b := range v.Bars(i) {
				for th.Markers.Data[at] == nil {
					at++ // a stall
				}
				if got := th.StringArray[th.Markers.Name[at]]; got != v.Name(&v.Lanes[i], b.Index) {
					t.Fatalf("seed %d: bar %d is called %q", seed, b.Index, got)
				}
				if got := th.Markers.StartTime[at]; math.Abs(got-float64(b.Start)/1e6) > 1e-9 {
					t.Fatalf("seed %d: bar %d starts at %g ms", seed, b.Index, got)
				}
				if b.Depth == 0 {
					outer += float64(b.End-b.Start) / 1e6
				}
				at++
			}
			// Samples last as long as anything is open.
			for _, w := range th.Samples.Weight {
				outer -= w
			}
			if math.Abs(outer) > 1e-6 {
				t.Fatalf("seed %d: samples differ by %g ms from the bars", seed, outer)
			}
		}
	}
}

func TestThinAndNotRecorded(t *testing.T) {
	t.Parallel()
	extra := func(f *file) string {
		var b strings.Builder
		for _, e := range f.Meta.Extra[0].Entries {
			b.WriteString(e.Label + "=" + e.Value + "\n")
		}
		return b.String()
	}
	p := sample.Large(100, 5000, 1_000_000)
	f := read(t, p)
	if n := f.Threads[1].Markers.Length; n != 100*1667 || !strings.Contains(extra(f), "one in 3 is in this file") || !strings.Contains(extra(f), "Left out=336633 of 505000 bars") {
		t.Errorf("%d bars, %q", n, extra(f))
	}
	p.Timeline = nil
	if f.Threads[0].IsMainThread || !f.Threads[1].IsMainThread {
		t.Error("the page shows iterations first, not operators")
	}
	if f = read(t, p); !strings.Contains(extra(f), "Times=not recorded") {
		t.Errorf("times that were laid out: %q", extra(f))
	}
}

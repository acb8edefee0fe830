package perfetto

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/report/spans"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

// field is one field of a message, decoded without the package that wrote it.
type field struct {
	num   int
	value uint64
	bytes []byte
}

type message []field

func decode(t *testing.T, b []byte) message {
	t.Helper()
	var out message
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatal("bad tag")
		}
		b = b[n:]
		f := field{num: int(key >> 3)}
		switch key & 7 {
		case 0:
			if f.value, n = binary.Uvarint(b); n <= 0 {
				t.Fatal("bad number")
			}
			b = b[n:]
		case 1:
			f.value = binary.LittleEndian.Uint64(b)
			b = b[8:]
		case 2:
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				t.Fatal("bad length")
			}
			f.bytes = b[n : n+int(size)]
			b = b[n+int(size):]
		default:
			t.Fatalf("wire type %d", key&7)
		}
		out = append(out, f)
	}
	return out
}

// one returns a field that may stand at most once.
func (m message) one(t *testing.T, num int) (field, bool) {
	t.Helper()
	var out field
	found := false
	for _, f := range m {
		if f.num == num {
			if found {
				t.Fatalf("field %d stands twice", num)
			}
			out, found = f, true
		}
	}
	return out, found
}

func (m message) must(t *testing.T, num int) field {
	t.Helper()
	f, ok := m.one(t, num)
	if !ok {
		t.Fatalf("field %d is missing in %v", num, m)
	}
	return f
}

type slice struct {
	name, kind string
	start, end uint64
	args       map[string]any
	flows      []uint64
}

type track struct {
	name, unit string
	slices     []slice
	open       []int
	values     []float64
}

// read decodes a trace as its readers do: one sequence, interned names, slices as
// stacks by track.
func read(t *testing.T, b []byte) (map[uint64]*track, string) {
	t.Helper()
	tracks := map[uint64]*track{}
	parents := map[uint64]uint64{}
	interned := [4]map[uint64]string{{}, {}, {}, {}}
	last, about := uint64(0), ""
	for i, f := range decode(t, b) {
		if f.num != 1 {
			t.Fatalf("field %d in a trace", f.num)
		}
		p := decode(t, f.bytes)
		if p.must(t, 10).value == 0 {
			t.Fatal("a packet without a sequence")
		}
		if flags := p.must(t, 13).value; (flags == 1) != (i == 0) || flags != 1 && flags != 2 {
			t.Fatalf("packet %d has flags %d", i, flags)
		}
		if d, ok := p.one(t, 60); ok {
			desc := decode(t, d.bytes)
			id := desc.must(t, 1).value
			if tracks[id] != nil {
				t.Fatalf("track %d is described twice", id)
			}
			tr := &track{}
			tracks[id] = tr
			if a, ok := desc.one(t, 14); ok {
				about = string(a.bytes)
			}
			if pr, ok := desc.one(t, 3); ok {
				tr.name = string(decode(t, pr.bytes).must(t, 6).bytes)
			} else {
				parents[id] = desc.must(t, 5).value
			}
			if th, ok := desc.one(t, 4); ok {
				thread := decode(t, th.bytes)
				tr.name = string(thread.must(t, 5).bytes)
				if thread.must(t, 1).value == thread.must(t, 2).value {
					t.Fatal("a thread has the number of its process")
				}
			}
			if c, ok := desc.one(t, 8); ok {
				tr.name = string(desc.must(t, 2).bytes)
				if u, ok := decode(t, c.bytes).one(t, 6); ok {
					tr.unit = string(u.bytes)
				}
			}
			continue
		}
		at := p.must(t, 8).value
		if at < last {
			t.Fatalf("packet %d at %d after %d", i, at, last)
		}
		last = at
		if in, ok := p.one(t, 12); ok {
			for _, e := range decode(t, in.bytes) {
				entry := decode(t, e.bytes)
				id := entry.must(t, 1).value
				if _, ok := interned[e.num][id]; ok || id == 0 {
					t.Fatalf("number %d of table %d is given twice", id, e.num)
				}
				interned[e.num][id] = string(entry.must(t, 2).bytes)
			}
		}
		name := func(table int, id uint64) string {
			s, ok := interned[table][id]
			if !ok {
				t.Fatalf("number %d of table %d is not defined", id, table)
			}
			return s
		}
		e := decode(t, p.must(t, 11).bytes)
		tr := tracks[e.must(t, 11).value]
		if tr == nil {
			t.Fatalf("an event on a track that is not described")
		}
		switch e.must(t, 9).value {
		case 1:
			s := slice{name: name(2, e.must(t, 10).value), kind: name(1, e.must(t, 3).value), start: at, args: map[string]any{}}
			for _, f := range e {
				switch f.num {
				case 4:
					a := decode(t, f.bytes)
					k := name(3, a.must(t, 1).value)
					if _, ok := s.args[k]; ok {
						t.Fatalf("argument %s stands twice", k)
					}
					switch v := a[1]; v.num {
					case 4:
						s.args[k] = int64(v.value)
					case 5:
						s.args[k] = math.Float64frombits(v.value)
					case 6:
						s.args[k] = string(v.bytes)
					}
				case 47:
					s.flows = append(s.flows, f.value)
				}
			}
			tr.open = append(tr.open, len(tr.slices))
			tr.slices = append(tr.slices, s)
		case 2:
			n := len(tr.open) - 1
			if n < 0 {
				t.Fatal("an end without a beginning")
			}
			tr.slices[tr.open[n]].end = at
			tr.open = tr.open[:n]
		case 4:
			tr.values = append(tr.values, math.Float64frombits(e.must(t, 44).value))
		default:
			t.Fatal("unknown kind of event")
		}
	}
	for id, tr := range tracks {
		if len(tr.open) > 0 {
			t.Fatalf("track %d: a slice does not end", id)
		}
		if p, ok := parents[id]; ok && tracks[p] == nil {
			t.Fatalf("track %d belongs to a process that is not described", id)
		}
	}
	return tracks, about
}

func write(t *testing.T, p *profile.Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRandom decodes traces and compares every bar and value with the source.
func TestRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		p := sample.Random(rand.New(rand.NewPCG(seed, 2)))
		v := spans.Of(p)
		tracks, _ := read(t, write(t, p))
		flows := map[uint64]int{}
		for i := range v.Lanes {
			l := &v.Lanes[i]
			tr := tracks[laneTrack(i)]
			if tr == nil || tr.name != l.Name {
				t.Fatalf("seed %d: lane %d is %+v", seed, i, tr)
			}
			var got []slice
			for _, s := range tr.slices {
				for _, f := range s.flows {
					flows[f]++
				}
				if s.kind != "stall" {
					got = append(got, s)
				}
			}
			n := 0
			for b := range v.Bars(i) {
				s := got[n]
				n++
				if s.name != v.Name(l, b.Index) || s.kind != v.Type(l, b.Index) || s.start != uint64(b.Start) || s.end != uint64(b.End) {
					t.Fatalf("seed %d: bar %+v %q became %+v", seed, b, v.Name(l, b.Index), s)
				}
				if k := spans.At(l.Layers, b.Index); k >= 0 && s.args["layer"] != int64(k) {
					t.Fatalf("seed %d: layer %v, want %d", seed, s.args["layer"], k)
				}
			}
			if n != len(got) {
				t.Fatalf("seed %d: %d slices of %d bars", seed, len(got), n)
			}
		}
		for i := range v.Links {
			if flows[uint64(i)+1] != 2 {
				t.Fatalf("seed %d: link %d has %d ends", seed, i, flows[uint64(i)+1])
			}
		}
		for i, c := range v.Counters {
			tr := tracks[laneTrack(len(v.Lanes))+uint64(i)]
			if d := cmp.Diff([]any{c.Name, c.Unit, append([]float64{}, c.Values...)}, []any{tr.name, tr.unit, append([]float64{}, tr.values...)}); d != "" {
				t.Fatalf("seed %d: counter (-want +got):\n%s", seed, d)
			}
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	p := sample.Large(3, 4, 1000)
	tracks, about := read(t, write(t, p))
	s := tracks[laneTrack(1)].slices[4]
	l := p.Layers[1]
	for k, want := range map[string]any{
		"layer": int64(1), "iteration": int64(1), "op": l.Op, "name": l.Name, "scope": l.Scope, "options": "padding:same stride:1x1 activation:relu", "kernel": l.Kernel,
		"macs": *l.MACs, "ops": *l.Ops, "bytes_read": *l.BytesRead, "latency_s": *l.Latency.Median,
	} {
		if s.args[k] != want {
			t.Errorf("%s is %v, want %v", k, s.args[k], want)
		}
	}
	if got := s.args["inputs"].(string); !strings.HasPrefix(got, "t1 int8 1x32x32x") || !strings.HasSuffix(got, ", w1 int8 64x3x3x64") {
		t.Errorf("inputs %q", got)
	}
	if about != "made up; time 0 is the first iteration; 4 iterations ran" {
		t.Errorf("description %q", about)
	}
	p.Timeline = nil
	if _, about = read(t, write(t, p)); !strings.HasPrefix(about, "not recorded: ") {
		t.Errorf("description of times that were laid out: %q", about)
	}
}

// TestLong keeps every bar of a long trace and says where its arguments are.
func TestLong(t *testing.T) {
	t.Parallel()
	tracks, about := read(t, write(t, sample.Large(50, 2100, 1_000_000)))
	full := 0
	for _, s := range tracks[laneTrack(1)].slices {
		if s.args["op"] != nil {
			full++
		}
	}
	if n := len(tracks[laneTrack(1)].slices); n != 50*2100 || full != 50 || !strings.Contains(about, "only the first bar") {
		t.Errorf("%d slices, %d with all arguments, %q", n, full, about)
	}
}

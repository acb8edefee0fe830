package external

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/measure/loadfigures"
	"github.com/opmeter/opmeter/profile"
)

// TestPipe: what is sent arrives, tensors of every kind included.
func TestPipe(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := NewPipe(&b, &b)
	want := []*Message{
		{
			Request: &Request{
				Protocol: Protocol, Engine: "e", Library: "l", Runs: 3, Time: 2e9, WarmupTime: -1, WarmupRuns: -1, Interleaved: true, CPUs: []int{1, 2}, MaxMemory: 1 << 40,
				Load: loadfigures.Load{Streams: 3, Rate: 0.5, Cold: profile.ColdStart}, Alone: true, Pin: true, StreamCPUs: []int{4}, Ceilings: []string{"memory"},
				Task: &Task{Model: "m", Format: "onnx", Threads: 2, Carry: map[int]int{1: 0}, Options: []Option{{"k", "v"}}, Folder: "f"},
			},
			Tensors: []Tensor{
				{Name: "x", DType: "float32", Shape: []int{1, 2}, Data: []byte{1, 2, 3, 4, 5, 6, 7, 8}},
				{Name: "", DType: "string", Shape: []int{2}, Strings: []string{"a", "\x00ü"}},
				{DType: "int8", Shape: []int{}, Data: []byte{7}},
				{DType: "int8", Shape: []int{0}},
			},
		},
		{Go: true},
		{Spare: true},
		{Round: &loadfigures.Round{N: 3, Samples: []float64{0.5, 1.5}, Mean: 1, Min: 0.5, Max: 1.5, PerSecond: 2}},
		{Error: Errorf(Crashed, "oh %d", 1)},
	}
	for _, m := range want {
		if err := p.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range want {
		got, err := p.Receive()
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.Tensors {
			if len(got.Tensors[i].Data) == 0 {
				got.Tensors[i].Data = nil
			}
		}
		if w.Request != nil {
			w.Request.Task.Inputs = nil
		}
		if d := cmp.Diff(w, got, cmp.AllowUnexported(Message{}), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Heads" }, cmp.Ignore())); d != "" {
			t.Error(d)
		}
	}
	if _, err := p.Receive(); err != io.EOF { //nolint:errorlint // bare by contract
		t.Errorf("at the end: %v", err)
	}
}

// FuzzReceive: whatever comes, there is no fault, no more memory than bytes came, and what is
// received can be sent again.
func FuzzReceive(f *testing.F) {
	var b bytes.Buffer
	p := NewPipe(&b, &b)
	for _, m := range []*Message{{Done: true}, {Outputs: true, Tensors: []Tensor{{DType: "int8", Shape: []int{3}, Data: []byte{1, 2, 3}}}}, {Facts: &Facts{Settings: map[string]string{"a": "b"}}}} {
		if err := p.Send(m); err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(b.Bytes()))
		b.Reset()
	}
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\x7f{}"))
	f.Add([]byte("\x26\x00\x00\x00\x00\x00\x00\x00{\"done\":true,\"tensors\":[{\"bytes\":1e15}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := NewPipe(bytes.NewReader(data), io.Discard)
		for range 100 {
			m, err := in.Receive()
			if err != nil {
				return
			}
			var out bytes.Buffer
			if err := NewPipe(&out, &out).Send(m); err != nil {
				t.Fatalf("what was received cannot be sent: %v", err)
			}
		}
	})
}

package opmeter

import (
	"testing"

	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/internal/testing/decoder"
)

// TestBranches counts the branch that a phase runs: external engines report no counts.
func TestBranches(t *testing.T) {
	t.Parallel()
	counted := func(m *Model, l *llm.Model, p llm.Phase) int64 {
		t.Helper()
		c, err := m.count(Inputs{phase: &phaseInputs{l, p}}, false)
		if err != nil || c.Totals.Ops == nil {
			t.Fatalf("%+v, %v", c, err)
		}
		return *c.Totals.Ops
	}
	open := func(f decoder.Form) (*Model, *llm.Model) {
		data, err := onnx.Encode(decoder.NewPair(decoder.Small, f).Decoder)
		if err != nil {
			t.Fatal(err)
		}
		m, err := OpenBytes("decoder.onnx", data)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		l, err := llm.Detect(m.in.Graph, llm.Setup{})
		if err != nil {
			t.Fatal(err)
		}
		return m, l
	}
	decode := llm.Phase{Batch: 1, Tokens: 1, Depth: 7, Encoder: decoder.Positions, Encoded: true}
	merged, of := open(decoder.Merged)
	cached, single := open(decoder.Crossed)
	// A decoder of one file computes the same, without making the encoder's keys and values.
	if got, want := counted(merged, of, decode), counted(cached, single, decode); got != want {
		t.Errorf("decode has %d operations in the branch with caches, want %d", got, want)
	}
	prefill := llm.Phase{Batch: 1, Tokens: 1, Encoder: decoder.Positions}
	if got, more := counted(merged, of, prefill), counted(merged, of, decode); got <= more {
		t.Errorf("prefill has %d operations, decode %d", got, more)
	}
}

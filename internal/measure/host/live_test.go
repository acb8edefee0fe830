package host

import (
	"cmp"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// TestLiveBytes: the engine's plan never has more live bytes at a step than the description
// states. It excludes the model's inputs and computes some layers in place.
func TestLiveBytes(t *testing.T) {
	t.Parallel()
	specs, err := filepath.Glob(filepath.Join(material.Root(), "examples", "*.yaml"))
	if err != nil || len(specs) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, spec := range specs {
		name := filepath.Base(spec)
		m, err := modelfile.Open(spec)
		if err != nil {
			t.Fatal(err)
		}
		p, err := counted(m, Options{Threads: 1})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var most int64
		for _, l := range p.Layers {
			if l.LiveBytes == nil {
				if l.State == profile.Ran && l.Parent == nil {
					t.Errorf("%s: layer %d has no live bytes", name, l.Index)
				}
				continue
			}
			most = max(most, *l.LiveBytes)
			if l.Parent == nil && *l.LiveBytes < union(p.Memory.Plan, l.Index) {
				t.Errorf("%s: layer %d has %d bytes alive, the plan says %d", name, l.Index, *l.LiveBytes, union(p.Memory.Plan, l.Index))
			}
		}
		if most == 0 || most != *p.Memory.PeakBytes {
			t.Errorf("%s: at most %d bytes alive, peak %d", name, most, *p.Memory.PeakBytes)
		}
	}
}

// union counts the bytes of the arena that the plan uses at a step, each once.
func union(plan []profile.Buffer, step int64) (n int64) {
	plan = slices.SortedFunc(slices.Values(plan), func(a, b profile.Buffer) int { return cmp.Compare(a.Offset, b.Offset) })
	end := int64(0)
	for _, e := range plan {
		if e.First <= step && step <= e.Last {
			n += max(0, e.Offset+e.Bytes-max(end, e.Offset))
			end = max(end, e.Offset+e.Bytes)
		}
	}
	return n
}

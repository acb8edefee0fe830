package rewrite_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/study"
)

// BenchmarkApply changes one layer of a network with 53 layers.
func BenchmarkApply(b *testing.B) {
	m, err := modelfile.Open(material.Path(b, "models", "real", "coral_mnv2_224_uint8.tflite"))
	if err != nil {
		b.Fatal(err)
	}
	layers := weights.Find(m, nil)
	for _, s := range []study.Structure{study.Unstructured, study.Block4, study.Filter} {
		for name, list := range map[string][]*weights.Layer{"one": layers[20:21], "all": layers} {
			b.Run(string(s)+"/"+name, func(b *testing.B) {
				var changes []rewrite.Change
				for _, l := range list {
					changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Structure: s, Level: 0.5}})
				}
				for b.Loop() {
					if _, _, err := rewrite.Apply(m, changes, rewrite.Options{Remove: true}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			weights.Find(m, nil)
		}
	})
	b.Run("suffix", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := rewrite.Suffix(m, layers[20].Nodes); err != nil {
				b.Fatal(err)
			}
		}
	})
}

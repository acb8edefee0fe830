package gguf_test

import (
	"fmt"
	"testing"

	"github.com/opmeter/opmeter/internal/model/gguf"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/blocks"
)

// TestBlocks finds the layers of the architectures, with the parameters that a token uses. The
// first layer of deepseek2 has no experts.
func TestBlocks(t *testing.T) {
	t.Parallel()
	for arch, want := range map[string]string{
		"llama": "2 blocks: norm attention router experts", "qwen2moe": "2 blocks: norm attention router experts",
		"qwen3moe": "2 blocks: norm attention router experts", "gpt-oss": "2 blocks: norm attention router experts",
		"mamba": "2 blocks: norm state space", "deepseek2": "",
	} {
		for _, kind := range []uint32{0, 8} {
			s := newSmall(arch, kind)
			all := int64(0)
			for _, values := range s.of {
				all += int64(len(values))
			}
			m, err := gguf.Parse(s.w.file(), "x.gguf")
			if err == nil {
				err = m.Complete()
			}
			if err != nil {
				t.Fatal(err)
			}
			in, _, err := inputs.Inputs(m, inputs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			made, err := plan.Make(m, in, plan.Options{Registry: operators.Registry()})
			if err != nil {
				t.Fatal(err)
			}
			p, err := describe.Model(made, made.Slots(), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, less := "", int64(0)
			for _, b := range blocks.Find(p) {
				if b.Count == 1 {
					continue
				}
				got += fmt.Sprintf("%d blocks:", b.Count)
				for _, x := range b.Parts {
					got += " " + string(x.Name)
					less += unused(p, &b, &x)
				}
			}
			if got != want {
				t.Errorf("%s: %q, want %q", arch, got, want)
			}
			if active := m.Language.ActiveParams; want != "" && active > 0 && all-less != active {
				t.Errorf("%s: a token uses %d parameters, want %d", arch, all-less, active)
			}
		}
	}
}

// unused is the number of parameters of a part of all blocks that a token does not use.
func unused(p *profile.Profile, b *profile.Block, part *profile.BlockPart) int64 {
	if part.ActiveParams == nil {
		return 0
	}
	all := -b.Count * *part.ActiveParams
	for _, l := range b.Layers {
		for _, x := range l.Layers {
			if n := p.Layers[x].Params; l.Part == part.Name && n != nil {
				all += *n
			}
		}
	}
	return all
}

package blocks

import (
	"fmt"

	"github.com/opmeter/opmeter/profile"
)

// Name describes a block: "32 × block of 11 layers", "3 × Conv", "embedding".
func Name(p *profile.Profile, b *profile.Block) string {
	switch {
	case b.Count == 1:
		return string(b.Part)
	case len(b.Layers) == 1:
		return fmt.Sprintf("%d × %s", b.Count, p.Layers[b.Layers[0].Layers[0]].OpText())
	}
	return fmt.Sprintf("%d × block of %d layers", b.Count, len(b.Layers))
}

// Names returns by layer the name of its block and of its part there, such as "32 × block of 11
// layers, attention". Layers outside of blocks have none.
func Names(p *profile.Profile) map[int64]string {
	out := map[int64]string{}
	for _, b := range Find(p) {
		for i := range b.Layers {
			l := &b.Layers[i]
			name := Name(p, &b)
			if b.Count > 1 && l.Part != "" {
				name += ", " + string(l.Part)
			}
			for _, list := range [][]int64{l.Layers, l.With} {
				for _, x := range list {
					out[x] = name
				}
			}
		}
	}
	return out
}

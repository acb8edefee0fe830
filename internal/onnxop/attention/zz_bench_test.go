package attention

import "testing"

func BenchmarkBlocks(b *testing.B) {
	const H, S, D = 12, 512, 64
	q := make([]float32, H*S*D)
	for i := range q {
		q[i] = float32(i%13)*.1 - .6
	}
	y := make([]float32, H*S*D)
	a := &Attend[float32]{Batch: 1, Heads: H, KVHeads: H, Rows: S, Total: S, Size: D, VSize: D, Scale: .125}
	v := PackedHeads(q, S, H, D)
	for b.Loop() {
		a.Run(nil, v, v, v, PackedHeads(y, S, H, D))
	}
}

package contrib

import (
	"encoding/binary"
	"math/bits"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// MurmurHash3: the 32-bit hash (x86_32) of each element's little-endian bytes or of its text.

// hashed lists the types of the documentation.
var hashed = []tensor.Type{tensor.Uint32, tensor.Int32, tensor.Uint64, tensor.Int64, tensor.Float32, tensor.Float64, tensor.String}

func inferHash(c *op.Call) error {
	t := tensor.Int32
	if c.Node.Attrs.Bool("positive", true) {
		t = tensor.Uint32
	}
	return c.Result(t, c.In[0].Shape)
}

func runHash(c *op.Call) error {
	x, y := c.In[0], c.Out[0].Data
	seed := uint32(c.Node.Attrs.Int("seed", 0)) //nolint:gosec // its lower 32 bits are the seed
	width := x.Type.Bytes(1)
	for i := range x.Len() {
		var h uint32
		if x.Type == tensor.String {
			h = murmur3([]byte(x.Strings[i]), seed)
		} else {
			h = murmur3(x.Data[i*width:][:width], seed)
		}
		binary.LittleEndian.PutUint32(y[4*i:], h)
	}
	return nil
}

// murmur3 is Austin Appleby's MurmurHash3_x86_32.
func murmur3(data []byte, seed uint32) uint32 {
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593 }
	h, n := seed, uint32(len(data)) //nolint:gosec // the length counts modulo 2^32
	for ; len(data) >= 4; data = data[4:] {
		h = bits.RotateLeft32(h^mix(binary.LittleEndian.Uint32(data)), 13)*5 + 0xe6546b64
	}
	var tail [4]byte
	copy(tail[:], data)
	h ^= mix(binary.LittleEndian.Uint32(tail[:])) // 0 without a tail
	h ^= n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

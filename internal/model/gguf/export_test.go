package gguf

// Block returns how many elements the type stores together, and in how many bytes.
func (t Type) Block() (elements, bytes int) { return types[t].block, types[t].bytes }

// Floats returns the weights of whole blocks of a type that can be converted.
func (t Type) Floats(data []byte) []float32 {
	info := types[t]
	u, q := info.unpack, make([]uint8, info.block)
	scale, zero := make([]float32, info.block/u.block), make([]float32, info.block/u.block)
	var out []float32
	for ; len(data) >= info.bytes; data = data[info.bytes:] {
		for i := range zero {
			zero[i] = float32(int(1) << (u.bits - 1))
		}
		u.to(data[:info.bytes], q, scale, zero)
		for i, x := range q {
			out = append(out, (float32(x)-zero[i/u.block])*scale[i/u.block])
		}
	}
	return out
}

package block

// Driver is a BMLIB block: what a program asked of the driver. Times are microseconds
// of the host's clock.
type Driver struct {
	Begin, End uint64
	Sends      []Send
	Syncs      []Span
	Marks      []Mark
	Copies     []Copy
	Memory     []MemoryOp
	Lists      int // how many of the five lists are there: older files end earlier
}

// Send is a function of the chip that was called.
type Send struct {
	API  uint32
	Time uint64
}

// Span is a wait for the chip.
type Span struct{ Begin, End uint64 }

// Mark is a point or span that the program named; End 0 is a point.
type Mark struct{ ID, Begin, End uint64 }

// Copy is a copy between host and chip.
type Copy struct {
	Src, Dst uint64
	// Direction is 0 to the chip, 1 from it, 2 within it.
	Direction, Size uint32
	Begin, End      uint64
}

// MemoryOp is an operation on the chip's memory.
type MemoryOp struct {
	Address uint64
	Size    uint32
	// Kind is 0 allocate, 1 free, 2 invalidate, 3 flush.
	Kind       uint32
	Begin, End uint64
}

// ParseDriver decodes a BMLIB block. ok is false if it ends within a list. The elements before
// are kept.
func ParseDriver(data []byte) (d Driver, ok bool) {
	if len(data) < 16 {
		return d, false
	}
	d.Begin, d.End, data = le.Uint64(data), le.Uint64(data[8:]), data[16:]
	for _, read := range []func([]byte, int) (int, []byte){reader(&d.Sends), reader(&d.Syncs), reader(&d.Marks), reader(&d.Copies), reader(&d.Memory)} {
		if len(data) < 4 {
			break
		}
		d.Lists++
		n := int(le.Uint32(data))
		have, rest := read(data[4:], n)
		if have < n {
			return d, false
		}
		data = rest
	}
	return d, len(data) == 0
}

// reader returns a function that decodes at most n elements of a list.
func reader[T any](to *[]T) func(data []byte, n int) (have int, rest []byte) {
	return func(data []byte, n int) (int, []byte) {
		*to, data = list[T](data, n)
		return len(*to), data
	}
}

// Append encodes the block with its first Lists lists.
func (d *Driver) Append(dst []byte) []byte {
	dst = appendValues(dst, d.Begin, d.End)
	counts := [...]int{len(d.Sends), len(d.Syncs), len(d.Marks), len(d.Copies), len(d.Memory)}
	for i, l := range []any{d.Sends, d.Syncs, d.Marks, d.Copies, d.Memory}[:d.Lists] {
		dst = appendValues(dst, uint32(counts[i]), l)
	}
	return dst
}

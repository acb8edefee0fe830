package machine

import (
	"fmt"
	"math"
)

// Bound is one bound of this process's memory.
type Bound struct {
	// By says what bounds it, to follow "limited by".
	By string
	// Free is how many more bytes the process may use.
	Free int64
	// Most is how many bytes it could use if everything else gave way.
	Most int64
}

// Free returns how many more bytes this process may use: limited by free memory and by the limits
// of the process, its user and its container. It returns false if the system does not provide
// them.
func Free() (int64, bool) {
	b, ok := tightest(system{"/"}.bounds(), func(b Bound) int64 { return b.Free })
	return b.Free, ok
}

// tightest returns the bound with the least value, false for no bounds.
func tightest(bs []Bound, value func(Bound) int64) (least Bound, ok bool) {
	for _, b := range bs {
		if !ok || value(b) < value(least) {
			least, ok = b, true
		}
	}
	return least, ok
}

// Reserve returns how many of so many free bytes a model must leave: for its file, for garbage,
// and for other processes.
func Reserve(free int64) int64 { return min(max(free/8, 256<<20), free/2) }

// MemoryLimit returns how many bytes a model may use by default and what bounds them: the memory
// that is free less [Reserve]. If that is unknown it is half of this computer's memory, or 8 GiB.
func MemoryLimit() (limit int, by string) { return limitOf(system{"/"}.bounds(), MemoryBytes()) }

func limitOf(bs []Bound, memory *int64) (limit int, by string) {
	if b, ok := tightest(bs, func(b Bound) int64 { return b.Free }); ok {
		return int(max(b.Free-Reserve(b.Free), 1<<20)), b.By
	}
	if memory != nil && *memory > 0 {
		return int(*memory / 2), "half of the memory of this computer"
	}
	return 8 << 30, "the default"
}

// HoldError reports a limit that exceeds what the process may use.
type HoldError struct {
	Want, Most int64 // bytes
	By         string
}

// Error states both sizes and what bounds the process.
func (e *HoldError) Error() string {
	return fmt.Sprintf("%s cannot be held: at most %s are possible, limited by %s", binary(e.Want), binary(e.Most), e.By)
}

// binary writes a size, rounded down.
func binary(n int64) string {
	unit, div := "MiB", float64(1<<20)
	if n >= 1<<30 {
		unit, div = "GiB", 1<<30
	}
	return fmt.Sprintf("%.1f %s", math.Floor(float64(n)/div*10)/10, unit)
}

// Holds returns a [HoldError] if the process cannot use so many bytes.
func Holds(n int64) error { return holds(system{"/"}.bounds(), n) }

// Most returns how many bytes this process could use if everything else gave way. It returns false
// if the system does not provide them.
func Most() (int64, bool) {
	b, ok := tightest(system{"/"}.bounds(), func(b Bound) int64 { return b.Most })
	return b.Most, ok
}

func holds(bs []Bound, n int64) error {
	if b, ok := tightest(bs, func(b Bound) int64 { return b.Most }); ok && n > b.Most {
		return &HoldError{n, b.Most, b.By}
	}
	return nil
}

// HeapGrowth returns by how many bytes the heap may grow without garbage collection.
func HeapGrowth() int64 {
	room := int64(2 << 30)
	if n, ok := Free(); ok {
		room = min(room, max(n/4, 16<<20))
	}
	return room
}

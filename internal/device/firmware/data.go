package firmware

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/opmeter/opmeter/internal/kernel/fixed"
)

// datum is a constant array of the program.
type datum struct {
	name  string
	width int    // of an element in bytes
	bytes []byte // little-endian
	note  string
	// input marks embedded inputs, which are not weights.
	input bool
}

// datum adds an array named by kind and number. Equal arrays are stored once.
func (g *generator) datum(kind string, number, width int, bytes []byte, note string) *datum {
	key := fmt.Sprintf("%d/%s", width, bytes)
	if kind == "input" {
		key = fmt.Sprintf("input %d", number)
	}
	if d := g.known[key]; d != nil {
		return d
	}
	name := fmt.Sprintf("model_%s%d", kind, number)
	for n := 2; g.taken(name); n++ {
		name = fmt.Sprintf("model_%s%d_%d", kind, number, n)
	}
	d := &datum{name: name, width: width, bytes: bytes, note: note, input: kind == "input"}
	g.known[key] = d
	g.data = append(g.data, d)
	return d
}

func (g *generator) taken(name string) bool {
	for _, d := range g.data {
		if d.name == name {
			return true
		}
	}
	return false
}

// integers adds an array of elements of the given width in bytes.
func integers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](g *generator, kind string, number, width int, v []T, note string) *datum {
	b := make([]byte, 0, len(v)*width)
	for _, x := range v {
		switch width {
		case 1:
			b = append(b, byte(x))
		case 2:
			b = binary.LittleEndian.AppendUint16(b, uint16(x))
		case 4:
			b = binary.LittleEndian.AppendUint32(b, uint32(x))
		default:
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		}
	}
	return g.datum(kind, number, width, b, note)
}

// multipliers adds the arrays of multipliers and of their shifts.
func (g *generator) multipliers(layer int, ms []fixed.Multiplier) (mul, shift *datum) {
	m, s := make([]int32, len(ms)), make([]int8, len(ms))
	for i, x := range ms {
		m[i], s[i] = x.M, int8(x.Shift)
	}
	return integers(g, "mul", layer, 4, m, "multipliers"), integers(g, "shift", layer, 1, s, "powers of two")
}

// ctype returns the unsigned C type of elements of a width: bits are written as hexadecimal
// digits, which fit no signed type.
func ctype(width int) string { return fmt.Sprintf("uint%d_t", 8*width) }

// write writes the array as C.
func (d *datum) write(w io.Writer) {
	if d.note != "" {
		fmt.Fprintf(w, "/* %s */\n", comment(d.note))
	}
	n := len(d.bytes) / d.width
	fmt.Fprintf(w, "const %s %s[%d] = {", ctype(d.width), d.name, max(n, 1))
	row := 24
	if d.width > 1 {
		row = 48 / d.width
	}
	buf := make([]byte, 0, 256)
	for i := range n {
		buf = buf[:0]
		if i%row == 0 {
			buf = append(buf, "\n   "...)
		}
		switch b := d.bytes[i*d.width:]; d.width {
		case 1:
			buf = fmt.Appendf(buf, " 0x%02x,", b[0])
		case 2:
			buf = fmt.Appendf(buf, " 0x%04x,", binary.LittleEndian.Uint16(b))
		case 4:
			buf = fmt.Appendf(buf, " 0x%08x,", binary.LittleEndian.Uint32(b))
		default:
			buf = fmt.Appendf(buf, " 0x%016xu,", binary.LittleEndian.Uint64(b))
		}
		_, _ = w.Write(buf) // to memory
	}
	if n == 0 {
		fmt.Fprint(w, " 0 ")
	}
	fmt.Fprint(w, "\n};\n\n")
}

// signedWeights converts a filter to int8 if all of it fits.
func signedWeights(v []int16) (narrow []int8, fits bool) {
	narrow = make([]int8, len(v))
	for i, x := range v {
		if narrow[i] = int8(x); int16(narrow[i]) != x {
			return nil, false
		}
	}
	return narrow, true
}

// Package npy reads and writes NumPy's .npy files: one dense tensor each.
//
// Text is read from arrays of type U and S and written as U. Structures and objects are refused: an
// object array would need to run code.
package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

const magic = "\x93NUMPY"

var descriptors = map[tensor.Type]string{
	tensor.Float16: "f2", tensor.Float32: "f4", tensor.Float64: "f8",
	tensor.Int8: "i1", tensor.Int16: "i2", tensor.Int32: "i4", tensor.Int64: "i8",
	tensor.Uint8: "u1", tensor.Uint16: "u2", tensor.Uint32: "u4", tensor.Uint64: "u8",
	tensor.Bool: "b1", tensor.Complex64: "c8", tensor.Complex128: "c16",
}

// ReadFile reads a file. afford, if not nil, must approve the memory of the elements before it is
// allocated.
func ReadFile(name string, afford func(t tensor.Type, shape []int) error) (*tensor.Tensor, error) {
	f, _, err := infile.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := read(f, afford)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// Parse reads the content of a file. The tensor does not share memory with data.
func Parse(data []byte) (*tensor.Tensor, error) { return read(bytes.NewReader(data), nil) }

// maxHeader bounds the text before the elements, which describes one tensor.
const maxHeader = 1 << 20

// read reads what the header declares, after checking afford and the size of the file.
func read(r io.ReadSeeker, afford func(t tensor.Type, shape []int) error) (*tensor.Tensor, error) {
	var begin [12]byte
	if _, err := io.ReadFull(r, begin[:10]); err != nil || string(begin[:6]) != magic {
		return nil, errors.New("not a .npy file")
	}
	n := int(binary.LittleEndian.Uint16(begin[8:]))
	switch begin[6] {
	case 1:
	case 2, 3:
		if _, err := io.ReadFull(r, begin[10:]); err != nil {
			return nil, errors.New("header is cut short")
		}
		n = int(binary.LittleEndian.Uint32(begin[8:]))
	default:
		return nil, fmt.Errorf("format version %d.%d is not known", begin[6], begin[7])
	}
	text := make([]byte, min(n, maxHeader))
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, errors.New("header is cut short")
	}
	if n > maxHeader {
		return nil, fmt.Errorf("header has %d bytes", n)
	}
	h, err := parseHeader(string(text))
	if err != nil {
		return nil, err
	}
	count, err := tensor.CheckShape(h.typ, h.shape)
	if err == nil && afford != nil {
		err = afford(h.typ, h.shape)
	}
	if err != nil {
		return nil, err
	}
	have, err := rest(r)
	if err != nil {
		return nil, err
	}
	if h.typ == tensor.String {
		return readText(r, h, count, have, afford)
	}
	if want := int64(h.typ.Bytes(count)); have != want {
		return nil, fmt.Errorf("%d bytes of elements, %s of %v needs %d", have, tensor.FormatShape(h.shape), h.typ, want)
	}
	t := tensor.New(h.typ, h.shape...)
	if _, err := io.ReadFull(r, t.Data); err != nil {
		return nil, err
	}
	if h.big {
		swap(t)
	}
	if h.fortran && len(h.shape) > 1 {
		w, src := h.typ.Bits()/8, bytes.Clone(t.Data)
		transpose(h.shape, func(to, from int) { copy(t.Data[to*w:(to+1)*w], src[from*w:]) })
	}
	return t, nil
}

// rest is the number of bytes after the current position of r.
func rest(r io.Seeker) (int64, error) {
	at, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	end, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	_, err = r.Seek(at, io.SeekStart)
	return end - at, err
}

type header struct {
	typ     tensor.Type
	shape   []int
	big     bool
	fortran bool
	// Text has elements of width bytes (S) or of width code points of four bytes (U).
	width int
	wide  bool
}

// parseHeader parses the literal of a Python dictionary with the keys descr, fortran_order and
// shape.
func parseHeader(s string) (h header, err error) {
	value := func(key string) (string, bool) {
		for _, q := range []string{"'", `"`} {
			if _, rest, ok := strings.Cut(s, q+key+q); ok {
				rest, ok = strings.CutPrefix(strings.TrimSpace(rest), ":")
				return strings.TrimSpace(rest), ok
			}
		}
		return "", false
	}
	descr, ok := value("descr")
	if !ok || len(descr) < 2 || descr[0] != '\'' && descr[0] != '"' {
		return h, errors.New("header has no simple descr")
	}
	descr, _, _ = strings.Cut(descr[1:], descr[:1])
	order := byte('|')
	if descr != "" && strings.IndexByte("<>=|", descr[0]) >= 0 {
		order, descr = descr[0], descr[1:]
	}
	h.big = order == '>'
	for t, d := range descriptors {
		if d == descr {
			h.typ = t
		}
	}
	if h.typ == tensor.Invalid {
		h.textType(descr)
	}
	if descr == "O" {
		return h, errors.New("holds Python objects, which are not read: save text with numpy.save(file, x.astype('U'))")
	}
	if h.typ == tensor.Invalid {
		return h, fmt.Errorf("element type %q is not read", descr)
	}
	f, ok := value("fortran_order")
	if !ok {
		return h, errors.New("header has no fortran_order")
	}
	h.fortran = strings.HasPrefix(f, "True")
	shape, ok := value("shape")
	end := strings.IndexByte(shape, ')')
	if !ok || !strings.HasPrefix(shape, "(") || end < 0 {
		return h, errors.New("header has no shape")
	}
	h.shape = []int{}
	for _, d := range strings.Split(shape[1:end], ",") {
		if d = strings.TrimSuffix(strings.TrimSpace(d), "L"); d == "" {
			continue
		}
		n, err := strconv.Atoi(d)
		if err != nil || n < 0 {
			return h, fmt.Errorf("dimension %q in the header", d)
		}
		h.shape = append(h.shape, n)
	}
	return h, nil
}

// swap converts big-endian elements. Complex numbers are two elements each.
func swap(t *tensor.Tensor) {
	w := t.Type.Bits() / 8
	if t.Type == tensor.Complex64 || t.Type == tensor.Complex128 {
		w /= 2
	}
	for i := 0; i+w <= len(t.Data); i += w {
		slices.Reverse(t.Data[i : i+w])
	}
}

// transpose calls move with the position of each element in row-major order, and with its position
// in column-major order.
func transpose(shape []int, move func(to, from int)) {
	rank := len(shape)
	stride := make([]int, rank) // in the file
	n := 1
	for i, d := range shape {
		stride[i] = n
		n *= d
	}
	at := make([]int, rank)
	for i := range n {
		from := 0
		for k, x := range at {
			from += x * stride[k]
		}
		move(i, from)
		for k := rank - 1; k >= 0; k-- {
			if at[k]++; at[k] < shape[k] {
				break
			}
			at[k] = 0
		}
	}
}

// Write writes t in format version 1.0.
func Write(w io.Writer, t *tensor.Tensor) error {
	d, ok := descriptors[t.Type]
	width := 0
	if t.Type == tensor.String {
		if width, ok = textWidth(t); ok {
			d = "U" + strconv.Itoa(width)
		}
	}
	if !ok {
		return fmt.Errorf("a .npy file cannot hold %v", t.Type)
	}
	order := "<"
	if t.Type.Bits() == 8 {
		order = "|"
	}
	dims := make([]string, len(t.Shape))
	for i, n := range t.Shape {
		dims[i] = strconv.Itoa(n)
	}
	tail := ""
	if len(dims) == 1 {
		tail = ","
	}
	h := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': (%s%s), }", order, d, strings.Join(dims, ", "), tail)
	// The elements are aligned to 64 bytes, after a line feed.
	h += strings.Repeat(" ", 63-(10+len(h))%64) + "\n"
	head := append([]byte(magic), 1, 0)
	head = binary.LittleEndian.AppendUint16(head, uint16(len(h)))
	if _, err := w.Write(append(head, h...)); err != nil {
		return err
	}
	if t.Type == tensor.String {
		return writeText(w, t.Strings, width)
	}
	_, err := w.Write(t.Data)
	return err
}

// WriteFile writes t to a file atomically.
func WriteFile(name string, t *tensor.Tensor) error {
	return atomicfile.Stream(name, func(w io.Writer) error { return Write(w, t) })
}

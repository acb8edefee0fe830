package npy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// maxText bounds the bytes of a written array of text: every element takes the space of the
// longest one.
const maxText = 1 << 30

// textType sets the type of text that descr names: U or S and a width.
func (h *header) textType(descr string) {
	digits, wide := strings.CutPrefix(descr, "U")
	digits, narrow := strings.CutPrefix(digits, "S")
	n, err := strconv.Atoi(digits)
	if wide == narrow || err != nil || n < 1 || n > tensor.MaxBytes/4 {
		return
	}
	h.typ, h.width, h.wide = tensor.String, n, wide
}

// readText reads count elements of text from have bytes.
func readText(r io.Reader, h header, count int, have int64, afford func(tensor.Type, []int) error) (*tensor.Tensor, error) {
	each := int64(h.width)
	if h.wide {
		each *= 4
	}
	if int64(count) > have/each || int64(count)*each != have {
		return nil, fmt.Errorf("%d bytes of elements, %s of text needs %d bytes for each", have, tensor.FormatShape(h.shape), each)
	}
	if have > tensor.MaxBytes {
		return nil, fmt.Errorf("%d bytes of text", have)
	}
	if afford != nil {
		if err := afford(tensor.Uint8, []int{int(have)}); err != nil {
			return nil, err
		}
	}
	t := tensor.New(tensor.String, h.shape...)
	in := bufio.NewReader(r)
	for i := range t.Strings {
		var err error
		if t.Strings[i], err = h.element(in); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	if h.fortran && len(h.shape) > 1 {
		src := slices.Clone(t.Strings)
		transpose(h.shape, func(to, from int) { t.Strings[to] = src[from] })
	}
	return t, nil
}

// element reads an element of text without the zeros that fill it up.
func (h *header) element(in *bufio.Reader) (string, error) {
	var text []byte
	size, order := 1, binary.ByteOrder(binary.LittleEndian)
	if h.wide {
		size = 4
	}
	if h.big {
		order = binary.BigEndian
	}
	zeros := 0 // not yet in text
	for range h.width {
		var b [4]byte
		if _, err := io.ReadFull(in, b[:size]); err != nil {
			return "", err
		}
		if b == [4]byte{} {
			zeros++
			continue
		}
		text = append(text, make([]byte, zeros)...)
		zeros = 0
		if !h.wide {
			text = append(text, b[0])
			continue
		}
		u := order.Uint32(b[:])
		if u > utf8.MaxRune || !utf8.ValidRune(rune(u)) {
			return "", fmt.Errorf("code point %#x is not Unicode", u)
		}
		text = utf8.AppendRune(text, rune(u))
	}
	if !utf8.Valid(text) {
		return "", errors.New("bytes that are not UTF-8: save the array as type U")
	}
	return string(text), nil
}

// textWidth returns the code points of the longest element, at least 1. It is false if an array of
// type U cannot hold the elements: bytes that are not UTF-8, zeros at the end, or too large.
func textWidth(t *tensor.Tensor) (int, bool) {
	width := 1
	for _, s := range t.Strings {
		if !utf8.ValidString(s) || strings.HasSuffix(s, "\x00") {
			return 0, false
		}
		width = max(width, utf8.RuneCountInString(s))
	}
	return width, len(t.Strings) <= maxText/4/width
}

// writeText writes elements of type U.
func writeText(w io.Writer, elements []string, width int) error {
	out := bufio.NewWriter(w)
	for _, s := range elements {
		n := 0
		for _, r := range s {
			if err := binary.Write(out, binary.LittleEndian, uint32(r)); err != nil {
				return err
			}
			n++
		}
		for range 4 * (width - n) {
			if err := out.WriteByte(0); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// Holds reports whether a file can hold the elements of t without a loss.
func Holds(t *tensor.Tensor) bool {
	if t.Type == tensor.String {
		_, ok := textWidth(t)
		return ok
	}
	_, ok := descriptors[t.Type]
	return ok
}

package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// TestHeaders has what NumPy and others write, and what they do not.
func TestHeaders(t *testing.T) {
	t.Parallel()
	eight := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	for _, tt := range []struct {
		header string
		body   []byte
		want   *tensor.Tensor
		text   string
	}{
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", eight, tensor.From(tensor.Int32, []int{2}, []int32{0x04030201, 0x08070605}), ""},
		{`{"shape": (1, 2), "fortran_order": False, "descr": "=u2"}`, eight[:4], tensor.From(tensor.Uint16, []int{1, 2}, []uint16{0x0201, 0x0403}), ""},
		{"{'descr':'u1','fortran_order':False,'shape':(2L,3L)}", eight[:6], tensor.From(tensor.Uint8, []int{2, 3}, eight[:6]), ""},
		{"{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3)}", eight[:6], tensor.From(tensor.Int8, []int{2, 3}, []int8{1, 3, 5, 2, 4, 6}), ""},
		{"{'descr': '|i1', 'fortran_order': True, 'shape': (2, 2, 2)}", eight, tensor.From(tensor.Int8, []int{2, 2, 2}, []int8{1, 5, 3, 7, 2, 6, 4, 8}), ""},
		{"{'descr': '|i1', 'fortran_order': True, 'shape': (3,)}", eight[:3], tensor.From(tensor.Int8, []int{3}, []int8{1, 2, 3}), ""},
		{"{'descr': '<i2', 'fortran_order': True, 'shape': (1, 2)}", eight[:4], tensor.From(tensor.Int16, []int{1, 2}, []int16{0x0201, 0x0403}), ""},
		{"{'descr': '>i4', 'fortran_order': False, 'shape': (1,)}", eight[:4], tensor.From(tensor.Int32, []int{1}, []int32{0x01020304}), ""},
		{"{'descr': '>c8', 'fortran_order': False, 'shape': ()}", []byte{0x3f, 0x80, 0, 0, 0x40, 0, 0, 0}, tensor.From(tensor.Complex64, []int{}, []complex64{1 + 2i}), ""},
		{"{'descr': '>f8', 'fortran_order': False, 'shape': (1,)}", []byte{0x3f, 0xf0, 0, 0, 0, 0, 0, 0}, tensor.From(tensor.Float64, []int{1}, []float64{1}), ""},
		{"{'descr': '>i2', 'fortran_order': True, 'shape': (0, 5)}", nil, tensor.New(tensor.Int16, 0, 5), ""},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (2,)}", eight[:7], nil, "7 bytes of elements, 2 of int32 needs 8"},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", eight[:5], nil, "5 bytes of elements, 1 of int32 needs 4"},
		{"{'fortran_order': False, 'shape': (1,)}", eight, nil, "header has no simple descr"},
		{"{'descr': i4, 'fortran_order': False, 'shape': (1,)}", eight, nil, "header has no simple descr"},
		{"{'descr' '<i4', 'fortran_order': False, 'shape': (1,)}", eight, nil, "header has no simple descr"},
		{"'descr':'", eight, nil, "header has no simple descr"},
		{"{'descr': '', 'fortran_order': False, 'shape': (1,)}", eight, nil, `element type "" is not read`},
		{"{'descr': '<U2', 'fortran_order': False, 'shape': (2,)}", []byte("a\x00\x00\x00\xac\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), texts([]int{2}, "a€", ""), ""},
		{"{'descr': '>U1', 'fortran_order': False, 'shape': ()}", []byte{0, 1, 0xf6, 0}, texts([]int{}, "😀"), ""},
		{"{'descr': '|S2', 'fortran_order': True, 'shape': (2, 2)}", []byte("a\x00b\x00c\x00\x00d"), texts([]int{2, 2}, "a", "c", "b", "\x00d"), ""},
		{"{'descr': '<U2', 'fortran_order': False, 'shape': (0, 3)}", nil, tensor.New(tensor.String, 0, 3), ""},
		{"{'descr': '<U2', 'fortran_order': False, 'shape': (2,)}", eight, nil, "8 bytes of elements, 2 of text needs 8 bytes for each"},
		{"{'descr': '<U1', 'fortran_order': False, 'shape': (2,)}", []byte{97, 0, 0, 0, 0, 0xd8, 0, 0}, nil, "element 1: code point 0xd800 is not Unicode"},
		{"{'descr': '|S1', 'fortran_order': False, 'shape': (1,)}", []byte{0xff}, nil, "element 0: bytes that are not UTF-8"},
		{"{'descr': '<U0', 'fortran_order': False, 'shape': (99999999,)}", nil, nil, `element type "U0" is not read`},
		{"{'descr': '<U99999999999', 'fortran_order': False, 'shape': (0,)}", nil, nil, `element type "U99999999999" is not read`},
		{"{'descr': '<US4', 'fortran_order': False, 'shape': (1,)}", eight, nil, `element type "US4" is not read`},
		{"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", eight, nil, "holds Python objects, which are not read: save text with numpy.save(file, x.astype('U'))"},
		{"{'descr': '<i4', 'shape': (1,)}", eight, nil, "header has no fortran_order"},
		{"{'descr': '<i4', 'fortran_order': False}", eight, nil, "header has no shape"},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': 1}", eight, nil, "header has no shape"},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (1", eight, nil, "header has no shape"},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (x,)}", eight, nil, `dimension "x" in the header`},
		{"{'descr': '<i4', 'fortran_order': False, 'shape': (2, -1)}", eight, nil, `dimension "-1" in the header`},
	} {
		got, err := Parse(file(tt.header, tt.body...))
		if tt.text != "" {
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%s: %v, want %q", tt.header, err, tt.text)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", tt.header, err, diff)
		}
	}
}

func texts(shape []int, s ...string) *tensor.Tensor {
	t := tensor.New(tensor.String, shape...)
	copy(t.Strings, s)
	return t
}

// TestText writes arrays of text as NumPy does, and refuses what it would change.
func TestText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		x    *tensor.Tensor
		head string
	}{
		{texts([]int{2, 2}, "a", "", "€ü", "a\x00b"), "{'descr': '<U3', 'fortran_order': False, 'shape': (2, 2), }"},
		{texts([]int{2}, "", ""), "{'descr': '<U1', 'fortran_order': False, 'shape': (2,), }"},
		{texts(nil, "\xff"), ""},
		{texts(nil, "a\x00"), ""},
		{texts([]int{1 << 10}, strings.Repeat("x", 1<<18+1)), ""},
	} {
		var b bytes.Buffer
		err := Write(&b, tt.x)
		if holds := tt.head != ""; Holds(tt.x) != holds || (err == nil) != holds {
			t.Fatalf("%.9q: held is %v: %v", tt.x.Strings, Holds(tt.x), err)
		}
		if err != nil {
			continue
		}
		if !strings.Contains(b.String(), tt.head) {
			t.Errorf("%q: no header %s in %q", tt.x.Strings, tt.head, b.String())
		}
		got, err := Parse(b.Bytes())
		if diff := cmp.Diff(tt.x, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", tt.x.Strings, err, diff)
		}
	}
}

// TestVersions: since version 2 the length has four bytes. What is too long for one tensor is
// refused.
func TestVersions(t *testing.T) {
	t.Parallel()
	text := "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}"
	wide := func(version byte, n uint32, text string) []byte {
		return append(binary.LittleEndian.AppendUint32(append([]byte(magic), version, 0), n), text...)
	}
	pad := func(n int) string { return text + strings.Repeat(" ", n-len(text)) }
	for _, tt := range []struct {
		name string
		data []byte
		text string
	}{
		{"2", append(wide(2, uint32(len(text)), text), 7), ""},
		{"3", append(wide(3, uint32(len(text)), text), 7), ""},
		{"0", append(wide(0, uint32(len(text)), text), 7), "format version 0.0 is not known"},
		{"4", append(wide(4, uint32(len(text)), text), 7), "format version 4.0 is not known"},
		{"longest", append(wide(2, maxHeader, pad(maxHeader)), 7), ""},
		{"too long", append(wide(2, maxHeader+1, pad(maxHeader+1)), 7), "header has 1048577 bytes"},
		{"cut", wide(2, uint32(len(text)+1), text), "header is cut short"},
		{"length cut", []byte(magic + "\x02\x00\x01\x00\x00"), "header is cut short"},
		{"magic cut", []byte(magic + "\x01\x00\x01"), "not a .npy file"},
		{"another magic", append([]byte("\x93NUMPI\x01\x00"), 0, 0, 0, 0), "not a .npy file"},
	} {
		x, err := Parse(tt.data)
		if (err == nil) != (tt.text == "") || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.text)
		}
		if err == nil && (x.Len() != 1 || x.Data[0] != 7) {
			t.Errorf("%s: %v", tt.name, x.Data)
		}
	}
}

// TestAfford asks before any memory is taken, and reads nothing that is refused.
func TestAfford(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.npy")
	want := tensor.From(tensor.Int16, []int{1, 2}, []int16{-1, 300})
	if err := WriteFile(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(path, func(typ tensor.Type, shape []int) error {
		if typ != tensor.Int16 || !cmp.Equal(shape, []int{1, 2}) {
			t.Errorf("asked for %v of %v", shape, typ)
		}
		return nil
	})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	dear := errors.New("too dear")
	if _, err := ReadFile(path, func(tensor.Type, []int) error { return dear }); !errors.Is(err, dear) || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("%v", err)
	}
	// A file that promises a gigabyte and does not have it takes none.
	huge := file("{'descr': '<f4', 'fortran_order': False, 'shape': (268435456,)}", 1, 2, 3, 4)
	if err := os.WriteFile(path, huge, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path, nil); err == nil || !strings.Contains(err.Error(), "4 bytes of elements, 268435456 of float32 needs 1073741824") {
		t.Errorf("%v", err)
	}
	if _, err := ReadFile(path+"x", nil); err == nil {
		t.Error("no file is read")
	}
}

// TestWritten spells headers as NumPy does.
func TestWritten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		x    *tensor.Tensor
		want string
	}{
		{tensor.New(tensor.Float32, 2, 3), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"},
		{tensor.New(tensor.Uint8, 4), "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }"},
		{tensor.New(tensor.Complex128), "{'descr': '<c16', 'fortran_order': False, 'shape': (), }"},
		{tensor.New(tensor.Bool, 0), "{'descr': '|b1', 'fortran_order': False, 'shape': (0,), }"},
	} {
		var b bytes.Buffer
		if err := Write(&b, tt.x); err != nil {
			t.Fatal(err)
		}
		n := int(binary.LittleEndian.Uint16(b.Bytes()[8:]))
		head := string(b.Bytes()[10 : 10+n])
		if strings.TrimSpace(head) != tt.want || !strings.HasSuffix(head, "\n") || (10+n)%64 != 0 || b.Len() != 10+n+len(tt.x.Data) {
			t.Errorf("%q of %d bytes, file of %d", head, n, b.Len())
		}
	}
	if err := Write(&bytes.Buffer{}, tensor.New(tensor.Int4, 2)); err == nil || err.Error() != "a .npy file cannot hold int4" {
		t.Error(err)
	}
	full := fmt.Errorf("full")
	for n := range 2 {
		if err := Write(&failing{after: n, err: full}, tensor.New(tensor.Int8, 2)); !errors.Is(err, full) {
			t.Errorf("write %d fails: %v", n, err)
		}
	}
}

type failing struct {
	after int
	err   error
}

func (f *failing) Write(b []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, f.err
	}
	return len(b), nil
}

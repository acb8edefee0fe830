package npy

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for typ := range descriptors {
		for _, shape := range [][]int{{}, {3}, {2, 3}, {2, 0, 4}} {
			want := tensor.New(typ, shape...)
			for i := range want.Data {
				want.Data[i] = byte(i + 1)
			}
			var b bytes.Buffer
			if err := Write(&b, want); err != nil {
				t.Fatal(err)
			}
			if n := b.Len() - len(want.Data); n%64 != 0 {
				t.Errorf("%v: elements start at byte %d", typ, n)
			}
			got, err := Parse(b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%v %v: %s", typ, shape, diff)
			}
		}
	}
}

func file(header string, body ...byte) []byte {
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	return append(append(b, header...), body...)
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		data   []byte
		want   *tensor.Tensor
		errors string
	}{
		{
			name: "big-endian column-major",
			data: file("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 2), }\n", 0, 1, 0, 2, 0, 3, 0, 4),
			want: tensor.From(tensor.Int16, []int{2, 2}, []int16{1, 3, 2, 4}),
		},
		{name: "empty", errors: "not a .npy file"},
		{name: "long header", data: []byte(magic + "\x01\x00\xff\xff"), errors: "cut short"},
		{name: "object", data: file("{'descr': '|O', 'fortran_order': False, 'shape': (), }\n"), errors: "Python objects"},
		{name: "structure", data: file("{'descr': [('a', 'i4')], 'fortran_order': False, 'shape': (), }\n"), errors: "descr"},
		{name: "short", data: file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", 1, 2, 3), errors: "2 of float32 needs 8"},
		{name: "huge", data: file("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }\n"), errors: "too large"},
		{name: "negative", data: file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }\n"), errors: "dimension"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(tc.data)
			if tc.errors != "" {
				if err == nil || !strings.Contains(err.Error(), tc.errors) {
					t.Fatalf("error is %v, want %q", err, tc.errors)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file("{'descr': '>c8', 'fortran_order': True, 'shape': (1, 1), }\n", make([]byte, 8)...))
	f.Add(file("{'descr': '<U1', 'fortran_order': True, 'shape': (1, 1), }\n", 97, 0, 0, 0))
	f.Add(file("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }\n", 0, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Parse(data)
		if err != nil {
			return
		}
		if x.Type == tensor.String {
			if len(x.Strings) != x.Len() {
				t.Errorf("%d elements for %v", len(x.Strings), x.Shape)
			}
			return
		}
		if len(x.Data) != x.Type.Bytes(x.Len()) {
			t.Errorf("%d bytes for %v of %v", len(x.Data), x.Shape, x.Type)
		}
	})
}

package protoread

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestReader(t *testing.T) {
	t.Parallel()
	var b []byte
	b = protowire.AppendTag(b, 1, protowire.VarintType)
	b = protowire.AppendVarint(b, math.MaxUint64)
	b = protowire.AppendTag(b, 2, protowire.Fixed32Type)
	b = protowire.AppendFixed32(b, math.Float32bits(1.5))
	b = protowire.AppendTag(b, 3, protowire.BytesType)
	b = protowire.AppendBytes(b, []byte{8, 5, 16, 0x96, 1}) // 1: 5, 2: 150; as integers 8 5 16 150
	b = protowire.AppendTag(b, 4, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(2.5))
	r := NewReader(b)
	var offsets []int64
	next := func() {
		t.Helper()
		if !r.Next() {
			t.Fatal(r.Err())
		}
		offsets = append(offsets, r.Offset())
	}
	next()
	if v := r.Int(); v != -1 {
		t.Errorf("integer %d", v)
	}
	next()
	if v := r.Float(); v != 1.5 {
		t.Errorf("float %v", v)
	}
	next()
	if v := r.Ints(nil); !cmp.Equal(v, []int64{8, 5, 16, 150}) {
		t.Errorf("packed integers %v", v)
	}
	m := r.Message()
	if !m.Next() || m.Int() != 5 || m.Offset() != r.Offset()+1 || !m.Next() || m.Int() != 150 || m.Next() || m.Err() != nil {
		t.Errorf("nested message: %v", m.Err())
	}
	next()
	if v := r.Doubles(nil); !cmp.Equal(v, []float64{2.5}) {
		t.Errorf("double %v", v)
	}
	if r.Next() || r.Err() != nil {
		t.Error(r.Err())
	}
	if diff := cmp.Diff([]int64{1, 12, 18, 24}, offsets); diff != "" {
		t.Error(diff)
	}
}

func TestReaderErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, want string
		data       []byte
		read       func(r *Reader)
		offset     int64
	}{
		{name: "bad tag", data: []byte{0x80}, want: "bad field tag"},
		{name: "field 0", data: []byte{0x00}, want: "bad field tag"},
		{name: "endless varint", data: []byte{8, 0x80, 0x80}, want: "cut short", offset: 1},
		{name: "short fixed32", data: []byte{13, 1, 2}, want: "cut short", offset: 1},
		{name: "short bytes", data: []byte{10, 5, 1}, want: "claims 5 bytes where 1 are left", offset: 1},
		{name: "huge length", data: []byte{10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, want: "claims", offset: 1},
		{name: "group", data: []byte{11, 12}, want: "wire type 3"},
		{name: "integer as bytes", data: []byte{8, 1}, read: func(r *Reader) { r.Bytes() }, want: "not bytes"},
		{name: "bytes as integer", data: []byte{10, 0}, read: func(r *Reader) { r.Int() }, want: "not an integer"},
		{name: "odd floats", data: []byte{10, 3, 1, 2, 3}, read: func(r *Reader) { r.Floats(nil) }, want: "multiple of 4", offset: 2},
		{name: "odd doubles", data: []byte{10, 3, 1, 2, 3}, read: func(r *Reader) { r.Doubles(nil) }, want: "multiple of 8", offset: 2},
		{name: "bad packed integer", data: []byte{10, 2, 1, 0x80}, read: func(r *Reader) { r.Ints(nil) }, want: "packed", offset: 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := NewReader(tt.data)
			for r.Next() {
				if tt.read != nil {
					tt.read(&r)
				}
			}
			var e *Error
			if !errors.As(r.Err(), &e) || !strings.Contains(e.Msg, tt.want) || e.Offset != tt.offset {
				t.Errorf("got %v, want %q at %d", r.Err(), tt.want, tt.offset)
			}
		})
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	var b []byte
	for range MaxDepth + 5 {
		b = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), b)
	}
	depth := 0
	var walk func(r Reader) error
	walk = func(r Reader) error {
		depth++
		for r.Next() {
			if err := walk(r.Message()); err != nil {
				return err
			}
		}
		return r.Err()
	}
	if err := walk(NewReader(b)); err == nil || !strings.Contains(err.Error(), "deeper") || depth > MaxDepth+2 {
		t.Errorf("error %v at depth %d", err, depth)
	}
}

package flatbuffer

import (
	"encoding/binary"
	"strings"
	"testing"
)

// sample is a table with a byte, a string and a broken vector of tables.
func sample() []byte {
	b := make([]byte, 0, 80)
	u16 := func(v ...uint16) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint16(b, x)
		}
	}
	u32 := func(v ...uint32) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, x)
		}
	}
	u32(20)
	b = append(b, "TEST"...)
	u16(10, 16, 12, 4, 8) // vtable at 8: size, table size, three fields
	u16(0)
	u32(12, 12, 16) // table at 20
	b = append(b, 7, 0, 0, 0)
	u32(2) // string at 36
	b = append(b, "hi\x00\x00"...)
	u32(1, 0xfffffff0) // vector at 44, whose element leads nowhere
	return b
}

func TestReader(t *testing.T) {
	t.Parallel()
	r := NewReader(sample())
	root := r.Root("Root", "TEST")
	if got := root.Uint8(0, "kind", 0); got != 7 {
		t.Errorf("byte is %d, want 7", got)
	}
	if got := root.String(1, "name"); got != "hi" {
		t.Errorf("string is %q, want hi", got)
	}
	if got := root.Int32(5, "absent", -3); got != -3 {
		t.Errorf("absent field is %d, want the default", got)
	}
	if got := root.Tables(2, "kids").Len(); got != 1 {
		t.Errorf("vector has %d elements, want 1", got)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	root.Tables(2, "kids").At(0)
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "Root.kids[0] at byte 48: offset") {
		t.Errorf("error is %v, want one that names Root.kids[0]", err)
	}
	if got := root.String(1, "name"); got != "" {
		t.Errorf("string after an error is %q", got)
	}
}

// TestReaderBroken cuts and changes every byte: errors are fine, panics are not.
func TestReaderBroken(t *testing.T) {
	t.Parallel()
	read := func(b []byte) {
		r := NewReader(b)
		root := r.Root("Root", "")
		root.Uint8(0, "kind", 0)
		root.String(1, "name")
		v := root.Tables(2, "kids")
		for i := range v.Len() {
			v.At(i).Ints(1, "x")
		}
	}
	good := sample()
	for n := range good {
		read(good[:n])
		for _, x := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			b := append([]byte(nil), good...)
			b[n] = x
			read(b)
		}
	}
}

func TestReaderBudget(t *testing.T) {
	t.Parallel()
	b := sample()
	r := NewReader(b)
	root := r.Root("Root", "")
	for range 1 << 16 {
		root.String(1, "name")
	}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "too often") {
		t.Errorf("error is %v, want the budget's", err)
	}
}

package profile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestContainersThatLie changes what the header says of sizes, with the checksum of the
// head mended: each bound has its last value that is not refused for it.
func TestContainersThatLie(t *testing.T) {
	t.Parallel()
	good, err := Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	head := int(le.Uint16(good[10:]))
	packed, length := le.Uint64(good[16:]), le.Uint64(good[24:])
	if len(good) != headerBytes+head+int(packed) {
		t.Fatalf("%d bytes, head of %d, body of %d", len(good), head, packed)
	}
	u64 := func(at int, v uint64) func(b []byte) { return func(b []byte) { le.PutUint64(b[at:], v) } }
	for _, tt := range []struct {
		name   string
		change func(b []byte)
		want   string
	}{
		{"as it is", func([]byte) {}, ""},
		{"another version", func(b []byte) { le.PutUint16(b[8:], 3) }, "container version 3; this version reads 2"},
		{"an older version", func(b []byte) { le.PutUint16(b[8:], 1) }, "container version 1"},
		{"body in the file, a byte more", u64(16, packed+1), fmt.Sprintf("cut off: %d bytes of a body of %d", packed, packed+1)},
		{"body in the file, a byte less", u64(16, packed-1), "damaged: the checksum does not match"},
		{"no body in the file", u64(16, 0), "damaged: the checksum does not match"},
		{"most in the file", u64(16, MaxBytes), fmt.Sprintf("cut off: %d bytes of a body of %d", packed, MaxBytes)},
		{"more in the file than there may be", u64(16, MaxBytes+1), "says it holds 1073741825 bytes, more than 1073741824"},
		{"body, a byte more", u64(24, length+1), "columns say they have 0 bytes, there are 1"},
		{"body, a byte less", u64(24, length-1), "bytes are text"},
		{"a small body that shrinks much", u64(24, 64<<20), "columns say they have"},
		{"a large body that shrinks much", u64(24, 64<<20+1), fmt.Sprintf("says that %d bytes hold %d", packed, 64<<20+1)},
		{"more than a body may have", u64(24, MaxBytes+1), "says it holds 1073741825 bytes, more than 1073741824"},
		{"the largest number", u64(24, 1<<64-1), "says it holds 18446744073709551615 bytes"},
		{"less than the length of a text", u64(24, 7), "EOF"},
		{"nothing", u64(24, 0), "EOF"},
	} {
		p, err := Unmarshal(rewritten(good, tt.change))
		switch {
		case tt.want == "" && (err != nil || p == nil):
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || p != nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	// The head: its length, its end, what follows the body.
	long := bytes.Clone(good)
	le.PutUint16(long[10:], maxHead+1)
	if _, err := Unmarshal(long); err == nil || !strings.Contains(err.Error(), "says its head has 16385 bytes, more than 16384") {
		t.Error(err)
	}
	le.PutUint16(long[10:], maxHead)
	if _, err := Unmarshal(long); err == nil || !strings.Contains(err.Error(), "cut off within its head of 16384 bytes") {
		t.Error(err)
	}
	for n, want := range map[int]string{0: "empty", 7: "cut off: 7 bytes of a header of 64", 63: "cut off: 63 bytes", 64: fmt.Sprintf("cut off within its head of %d bytes", head), headerBytes + head - 1: "cut off within its head", headerBytes + head: "cut off: 0 bytes of a body"} {
		if _, err := Unmarshal(good[:n]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v, want %q", n, err, want)
		}
	}
	if _, err := Unmarshal(append(bytes.Clone(good), 0)); err == nil || !strings.Contains(err.Error(), "something follows its end") {
		t.Error(err)
	}
	spoilt := bytes.Clone(good)
	spoilt[headerBytes]++
	if _, err := Unmarshal(spoilt); err == nil || !strings.Contains(err.Error(), "checksum of the head") {
		t.Error(err)
	}
	for text, want := range map[string]string{"\x89OPM\n\x1a\n....": "line ends were changed", "\x88OPM\r\n\x1a\n...": "line ends were changed", "PK\x03\x04....": "magic number"} {
		if _, err := Unmarshal([]byte(text)); !errors.Is(err, ErrNotProfile) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

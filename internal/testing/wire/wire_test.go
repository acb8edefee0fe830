package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"
)

func sample(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// What arrives is what the list of faults says, redone here from the list alone: nothing
// changes elsewhere. Corrupted bytes differ from what was sent.
func TestApply(t *testing.T) {
	t.Parallel()
	in := sample(20000)
	for seed := range uint64(30) {
		f := Faults{Seed: seed, Corrupt: 0.01, Cut: 0.004, Duplicate: 0.004, Reorder: 0.004}
		out, places := f.Apply(in)
		if len(places) < 100 {
			t.Fatalf("seed %d: %d faults, about 400 are expected", seed, len(places))
		}
		kinds := map[FaultKind]int{}
		pos, o := int64(0), 0
		same := func(want []byte) {
			t.Helper()
			if o+len(want) > len(out) || !bytes.Equal(out[o:o+len(want)], want) {
				t.Fatalf("seed %d: the bytes that arrive at %d are not those that were sent", seed, o)
			}
			o += len(want)
		}
		for _, p := range places {
			kinds[p.Kind]++
			if p.At < pos || p.Len < 1 || p.At+int64(p.Len) > int64(len(in)) {
				t.Fatalf("seed %d: %v after %d", seed, p, pos)
			}
			same(in[pos:p.At])
			span := in[p.At : p.At+int64(p.Len)]
			switch p.Kind {
			case Corrupted:
				if out[o] == span[0] {
					t.Fatalf("seed %d: %v: the same byte", seed, p)
				}
				o++
			case Duplicated:
				same(span)
				same(span)
			case Reordered:
				got := out[o : o+p.Len]
				o += p.Len
				if !rotated(got, span) {
					t.Fatalf("seed %d: %v: no two blocks in the other order", seed, p)
				}
			}
			pos = p.At + int64(p.Len)
		}
		same(in[pos:])
		if o != len(out) {
			t.Fatalf("seed %d: %d bytes more than were sent", seed, len(out)-o)
		}
		if len(kinds) != 4 {
			t.Errorf("seed %d: kinds %v", seed, kinds)
		}
		again, list := f.Apply(in)
		if !bytes.Equal(again, out) || !slices.Equal(list, places) {
			t.Errorf("seed %d: another result the second time", seed)
		}
	}
	if out, places := (Faults{Seed: 1}).Apply(in); !bytes.Equal(out, in) || places != nil {
		t.Error("a wire without faults changes what is sent")
	}
}

// rotated reports whether got is span with its first bytes behind the others.
func rotated(got, span []byte) bool {
	for k := 1; k < len(span); k++ {
		if bytes.Equal(got, append(slices.Clone(span[k:]), span[:k]...)) {
			return true
		}
	}
	return false
}

// A writer with faults is the same wire for as long as blocks are whole.
func TestWriter(t *testing.T) {
	t.Parallel()
	in := sample(5000)
	f := Faults{Seed: 3, Corrupt: 0.02}
	want, places := f.Apply(in)
	var got bytes.Buffer
	w, list := f.Writer(&got)
	for i := 0; i < len(in); i += 123 {
		if _, err := w.Write(in[i:min(i+123, len(in))]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got.Bytes(), want) || !slices.Equal(list(), places) {
		t.Error("pieces have other faults than the whole")
	}
}

// wires are the ways to a device of this package, as a file would be read.
func wires(t *testing.T, l Line, d Device) map[string]io.ReadWriteCloser {
	path, _ := l.Open(t, d)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := l.TCP(t, d)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]io.ReadWriteCloser{"pty": f, "tcp": c, "memory": l.Memory(t, d)}
}

// Every byte value gets through both ways, and a plug that is pulled ends the reading.
func TestBothWays(t *testing.T) {
	t.Parallel()
	all := sample(256)
	echo := func(w io.Writer, r io.Reader) {
		b := make([]byte, len(all))
		if _, err := io.ReadFull(r, b); err == nil {
			fmt.Fprintf(w, "%s", b)
		}
	}
	for name, f := range wires(t, Line{UnplugAfter: int64(len(all))}, echo) {
		if _, err := f.Write(all); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := make([]byte, len(all))
		n, err := io.ReadFull(f, got)
		// A terminal forgets what was not read when its plug is pulled.
		if name != "pty" && (err != nil || !bytes.Equal(got, all)) {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
		if !bytes.Equal(got[:n], all[:n]) {
			t.Errorf("%s: other bytes", name)
		}
		if _, err := f.Read(got); err == nil {
			t.Errorf("%s: the plug is out and something comes", name)
		}
		f.Close()
	}
}

// A flood ends with its wire, also where nobody reads it.
func TestFloodEnds(t *testing.T) {
	t.Parallel()
	for name, f := range wires(t, Line{}, Flood([]byte("data\n"))) {
		b := make([]byte, 5)
		if _, err := io.ReadFull(f, b); err != nil || string(b) != "data\n" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		if name == "memory" {
			f.Close()
		}
	}
}

// A plug that is pulled ends a device that waits for its host, and a host that waits for
// its device.
func TestUnplugSilent(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	path, unplug := Open(t, func(_ io.Writer, r io.Reader) {
		defer close(ended)
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, ErrUnplugged) {
			t.Errorf("the device reads %v", err)
		}
	})
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	go unplug()
	if n, err := f.Read(make([]byte, 1)); err == nil {
		t.Errorf("the host reads %d bytes", n)
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("the device goes on")
	}
}

// A terminal at another speed than the device's gives nothing that the device sent.
func TestWrongSpeed(t *testing.T) {
	t.Parallel()
	path, _ := Line{Baud: 921600}.Open(t, Play([]byte("hello\n")))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 64)
	n, err := f.Read(b) // a terminal begins at 38400 baud
	if err != nil || n == 0 || bytes.Contains(b[:n], []byte("hello")) {
		t.Errorf("%q, %v", b[:n], err)
	}
}

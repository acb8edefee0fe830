package flash_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/device/mltk/flash"
)

func TestParts(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]flash.Part{
		"EFR32MG24B310F1536IM48":  {"EFR32MG24B310F1536IM48", 0x08000000, 1536 << 10},
		"efr32mg23b310f512im48":   {"EFR32MG23B310F512IM48", 0x08000000, 512 << 10},
		"EFR32MG12P332F1024GL125": {"EFR32MG12P332F1024GL125", 0, 1024 << 10},
		"EFM32GG11B820F2048GL192": {"EFM32GG11B820F2048GL192", 0, 2048 << 10},
	} {
		if got, err := flash.ParsePart(number); err != nil || got != want {
			t.Errorf("%s: %+v %v", number, got, err)
		}
	}
	for _, bad := range []string{"", "EFR32", "STM32L4R5", "EFR32MG24B310F999999999IM48"} {
		if p, err := flash.ParsePart(bad); err == nil {
			t.Errorf("%q is %+v", bad, p)
		}
	}
	if p, ok := flash.Platform("BRD2601B"); !ok || p.Base != 0x08000000 || p.Bytes != 1536<<10 {
		t.Errorf("%+v", p)
	}
	if _, ok := flash.Platform("brd9999a"); ok {
		t.Error("a board that is not known")
	}
}

// s37 writes S-records of 32 bytes with addresses of four.
func s37(address uint32, data []byte) []byte {
	var b strings.Builder
	b.WriteString("S00600004844521B\r\n")
	for i := 0; i < len(data); i += 32 {
		part := data[i:min(i+32, len(data))]
		r := append([]byte{byte(len(part) + 5)}, binary.BigEndian.AppendUint32(nil, address+uint32(i))...)
		r = append(r, part...)
		sum := byte(0)
		for _, c := range r {
			sum += c
		}
		fmt.Fprintf(&b, "S3%X%02X\r\n", r, ^sum)
	}
	b.WriteString("S70508000000F2\r\n")
	return []byte(b.String())
}

func TestSegments(t *testing.T) {
	t.Parallel()
	p, _ := flash.Platform("brd2601b")
	data := bytes.Repeat([]byte{1, 2, 3}, 1000)
	got, err := flash.Segments("a.s37", s37(p.Base+0x1000, data), p)
	if err != nil || len(got) != 1 || got[0] != (flash.Segment{Address: p.Base + 0x1000, Bytes: 3000}) {
		t.Errorf("%+v %v", got, err)
	}
	i := flash.Image{Address: 0x0800fff8, Data: data}
	got, err = flash.Segments("a.hex", i.Hex(), p)
	if err != nil || len(got) != 1 || got[0] != (flash.Segment{Address: 0x0800fff8, Bytes: 3000}) {
		t.Errorf("what is written as Intel HEX: %+v %v", got, err)
	}
	if got, err = flash.Segments("a.bin", data, p); err != nil || got[0] != (flash.Segment{Address: p.Base, Bytes: 3000}) {
		t.Errorf("%+v %v", got, err)
	}
	bad := s37(p.Base, data)
	bad[40]++
	for name, b := range map[string][]byte{"a.s37": bad, "b.s37": []byte("hello\n"), "c.s37": nil, "d.hex": []byte(":0100\n"), "e.elf": data, "f.hex": []byte(":0100000005FB\n")} {
		if x, err := flash.Segments(name, b, p); err == nil {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// TestHex compares with records that were written down by hand.
func TestHex(t *testing.T) {
	t.Parallel()
	i := flash.Image{Address: 0x0800fffe, Data: []byte{0x11, 0x22, 0x33}}
	want := ":020000040800F2\r\n:02FFFE001122CE\r\n:020000040801F1\r\n:0100000033CC\r\n:00000001FF\r\n"
	if got := string(i.Hex()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	p, _ := flash.Platform("brd2601b")
	i, err := flash.NewImage(make([]byte, 1000), p)
	if err != nil || i.Address != 0x08180000-1004 || len(i.Data) != 1004 || !bytes.Equal(i.Data[1000:], []byte{0xe8, 3, 0, 0}) {
		t.Fatalf("%#x %d %v", i.Address, len(i.Data), err)
	}
	for _, c := range []struct {
		s    flash.Segment
		fits bool
	}{
		{flash.Segment{Address: p.Base, Bytes: i.Address - p.Base}, true},
		{flash.Segment{Address: p.Base, Bytes: i.Address - p.Base + 1}, false},
		{flash.Segment{Address: p.End() - 1, Bytes: 1}, false},
		{flash.Segment{Address: 0, Bytes: 10}, false},
		{flash.Segment{Address: p.End(), Bytes: 1}, false},
		{flash.Segment{Address: 0x0FE00000, Bytes: 16}, true},
	} {
		if err := i.Check([]flash.Segment{c.s}, p); (err == nil) != c.fits {
			t.Errorf("%+v: %v", c.s, err)
		}
	}
	if _, err := flash.NewImage(make([]byte, p.Bytes-3), p); err == nil {
		t.Error("a model that is too large")
	}
	_, isOverlap := errors.AsType[*flash.OverlapError](i.Check([]flash.Segment{{Address: p.Base, Bytes: p.Bytes}}, p))
	if !isOverlap {
		t.Error("want an OverlapError")
	}
}

// standIn is a commander that writes down its arguments and flashes into a file.
const standIn = `#!/bin/sh
dir=$(dirname "$0")
echo "$@" >> "$dir/calls"
case "$1" in
device)
	if [ "$2" = info ]; then
		printf 'Part Number    : EFR32MG24B310F1536IM48\nDie Revision   : A1\nFlash Size     : 1536 kB\n'
	fi
	;;
flash)
	address=
	for a in "$@"; do
		if [ "$last" = --address ]; then address=$a; fi
		last=$a
	done
	if [ -n "$address" ]; then
		dd if="$last" of="$dir/flash.img" bs=1 seek=$((address - 0x08000000)) conv=notrunc 2>/dev/null
	else
		cp "$last" "$dir/firmware"
	fi
	;;
esac
if [ -f "$dir/broken" ]; then echo "ERROR: Could not open J-Link connection"; exit 255; fi
`

// NewStandIn makes a commander in a folder.
func newStandIn(t *testing.T) (c *flash.Commander, dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	dir = t.TempDir()
	c = &flash.Commander{Path: filepath.Join(dir, "commander"), Serial: "440139581"}
	if err := os.WriteFile(c.Path, []byte(standIn), 0o700); err != nil {
		t.Fatal(err)
	}
	return c, dir
}

// TestCommander flashes with a stand-in, and looks at every byte.
func TestCommander(t *testing.T) {
	t.Parallel()
	c, dir := newStandIn(t)
	ctx := context.Background()
	p, err := c.Info(ctx)
	if err != nil || p.Number != "EFR32MG24B310F1536IM48" || p.Bytes != 1536<<10 || p.Base != 0x08000000 {
		t.Fatalf("%+v %v", p, err)
	}
	model := make([]byte, 4321)
	for i := range model {
		model[i] = byte(i * 31)
	}
	firmware := filepath.Join(t.TempDir(), "f.s37")
	if err := os.WriteFile(firmware, s37(p.Base, model[:500]), 0o600); err != nil {
		t.Fatal(err)
	}
	i, err := flash.NewImage(model, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{c.Firmware(ctx, p, firmware), c.Model(ctx, p, i), c.Reset(ctx, p)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "flash.img"))
	if err != nil {
		t.Fatal(err)
	}
	n := len(got)
	if n != 1536<<10 || binary.LittleEndian.Uint32(got[n-4:]) != 4321 || !bytes.Equal(got[n-4-4321:n-4], model) || len(bytes.Trim(got[:n-4-4321], "\x00")) != 0 {
		t.Errorf("%d bytes of flash memory, the last are %s", n, hex.EncodeToString(got[n-8:]))
	}
	if f, err := os.ReadFile(filepath.Join(dir, "firmware")); err != nil || !bytes.Equal(f, s37(p.Base, model[:500])) {
		t.Error("the firmware is another", err)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(calls)), "\n")
	probe := " --serialno 440139581"
	want := []string{
		"device info --device efr32" + probe,
		"flash --force --halt --device " + p.Number + probe + " " + firmware,
		fmt.Sprintf("flash --force --halt --device %s --binary --address 0x%08X%s ", p.Number, 0x08180000-4325, probe),
		"device reset --device " + p.Number + probe,
	}
	for k, w := range want {
		if k >= len(lines) || !strings.HasPrefix(lines[k], w) {
			t.Fatalf("calls %q, want %q", lines, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Reset(ctx, p); err == nil || !strings.Contains(err.Error(), "J-Link") {
		t.Errorf("what the commander says: %v", err)
	}
}

func FuzzSegments(f *testing.F) {
	p, _ := flash.Platform("brd2601b")
	f.Add(s37(0x08000000, []byte{1, 2, 3}), true)
	f.Add(flash.Image{Address: 5, Data: []byte{1, 2, 3}}.Hex(), false)
	f.Fuzz(func(t *testing.T, b []byte, s bool) {
		name := "a.hex"
		if s {
			name = "a.s37"
		}
		got, err := flash.Segments(name, b, p)
		if err != nil {
			return
		}
		for k, x := range got {
			if x.Bytes == 0 || uint64(x.Address)+uint64(x.Bytes) > 1<<32 || k > 0 && x.Address < got[k-1].Address {
				t.Fatalf("%+v", got)
			}
		}
	})
}

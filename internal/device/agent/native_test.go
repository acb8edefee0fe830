package agent

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/testing/material"
)

const firmware = "../../../firmware"

// tool is a program that a test needs.
func tool(t *testing.T, name string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	if err != nil {
		material.Skip(t, name+" is missing: install "+map[string]string{"cc": "gcc", "c++": "g++", "arm-none-eabi-gcc": "gcc-arm-none-eabi", "arm-none-eabi-size": "binutils-arm-none-eabi", "arm-none-eabi-nm": "binutils-arm-none-eabi", "qemu-system-arm": "qemu-system-arm"}[name])
	}
	return p
}

// warnings are those that the header is free of.
var warnings = []string{"-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"}

// compile runs a compiler in a folder of the test's own.
func compile(t *testing.T, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(tool(t, program), args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// write makes a file with its folders.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func rules(runs int) device.Rules { return device.Rules{Runs: runs} }

// caller makes the calls of firmware/test/drive.c from the same numbers.
type caller struct {
	state uint32
	b     *board
	open  []uint16
}

func (c *caller) pick(n uint32) uint32 {
	c.state ^= c.state << 13
	c.state ^= c.state >> 17
	c.state ^= c.state << 5
	return c.state % n
}

func (c *caller) text() *string {
	kind := c.pick(16)
	var size uint32
	if c.pick(8) == 0 {
		size = c.pick(300)
	} else {
		size = c.pick(12)
	}
	if kind == 0 {
		return nil
	}
	s := make([]byte, size)
	for i := range s {
		switch {
		case kind < 4:
			s[i] = byte(1 + c.pick(255))
		case kind < 8:
			s[i] = "\xE2\x82\x82"[i%3]
		default:
			s[i] = byte('a' + c.pick(26))
		}
	}
	return new(string(s))
}

func plain(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (c *caller) call() {
	b := c.b
	kind := c.pick(20)
	if c.pick(4) == 0 {
		b.clock += uint64(c.pick(1000000))
	} else {
		b.clock += uint64(c.pick(50))
	}
	switch kind {
	case 0, 1:
		b.inferenceBegin()
		c.open = nil
	case 2:
		b.inferenceEnd()
		c.open = nil
	case 3, 4, 5, 6, 7:
		s := c.text()
		var index uint16
		switch {
		case c.pick(16) == 0:
			index = uint16(c.pick(65536))
		case c.pick(4) == 0:
			index = b.begun
		default:
			index = uint16(c.pick(12))
		}
		if len(c.open) < 64 {
			c.open = append(c.open, index)
		}
		b.opBegin(index, s)
	case 8, 9, 10, 11, 12, 13:
		var index uint16
		if n := len(c.open); n > 0 && c.pick(32) != 0 {
			index = c.open[n-1]
			c.open = c.open[:n-1]
		} else {
			index = uint16(c.pick(65536))
		}
		b.opEnd(index)
	case 14, 15:
		s := c.text()
		v := uint64(c.pick(0xFFFFFFFF))
		b.counter(plain(s), v<<c.pick(33))
	case 16:
		s := c.text()
		b.memory(plain(s), c.pick(0xFFFFFFFF))
	case 17:
		b.text(plain(c.text()))
	case 18:
		s := c.text()
		index := uint16(c.pick(65536))
		var size uint32
		if c.pick(2) == 0 {
			size = c.pick(400)
		} else {
			size = c.pick(4)
		}
		p := make([]byte, size)
		for i := range p {
			if c.pick(4) != 0 {
				p[i] = byte(c.pick(256))
			}
		}
		b.data(plain(s), index, p)
	default:
		b.done()
	}
}

// sequence is one start of the agent and what follows.
func (c *caller) sequence() {
	b := c.b
	name, where, model := c.text(), c.text(), c.text()
	b.hz = 0
	if c.pick(3) != 0 {
		b.hz = c.pick(0xFFFFFFFF)
	}
	b.unit = uint8(c.pick(4))
	b.num, b.den = max(1, c.pick(3)), max(1, c.pick(3))
	b.name, b.board, b.model = name, where, model
	c.open = nil
	b.start()
	for n := c.pick(80); n > 0; n-- {
		c.call()
	}
}

// TestNativeFrames compares what the C code sends for random calls with what the format demands,
// under the sanitizers of addresses and of undefined behaviour.
func TestNativeFrames(t *testing.T) {
	t.Parallel()
	exe := filepath.Join(t.TempDir(), "drive")
	compile(t, "cc", append(append([]string{"-std=c99", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"}, warnings...),
		"-I", firmware, filepath.Join(firmware, "test", "drive.c"), "-o", exe)...)
	const seed, sequences = 20261122, 20000
	cmd := exec.Command(exe, fmt.Sprint(seed), fmt.Sprint(sequences))
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	in := bufio.NewReaderSize(pipe, 1<<20)
	var want bytes.Buffer
	c := &caller{state: seed, b: newBoard(func(p []byte) { want.Write(p) })}
	got := make([]byte, 0, 1<<16)
	total := 0
	for i := range sequences {
		want.Reset()
		c.sequence()
		got = got[:want.Len()]
		n, err := io.ReadFull(in, got)
		if !bytes.Equal(got[:n], want.Bytes()) || err != nil {
			at := 0
			for at < n && got[at] == want.Bytes()[at] {
				at++
			}
			_ = cmd.Process.Kill()
			t.Fatalf("sequence %d differs at byte %d of %d (%v):\n got % x\nwant % x\n%s", i, at, want.Len(), err,
				got[max(0, at-40):min(n, at+60)], want.Bytes()[max(0, at-40):min(want.Len(), at+60)], complaint.String())
		}
		total += n
	}
	if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
		t.Errorf("%d bytes more than there should be: %v", len(rest), err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, complaint.String())
	}
	t.Logf("%d sequences, %d bytes", sequences, total)
}

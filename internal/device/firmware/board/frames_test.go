package board

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// frame is one of the agent: what docs/reference/agent.md calls type, sequence number, content.
type frame struct {
	kind    byte
	content []byte
	text    string // what came between frames, with kind 0
}

// Types of frames that tests look at.
const (
	kindHello  = 1
	kindOp     = 5
	kindEnd    = 6
	kindMemory = 8
	kindData   = 10
)

// unframe takes what stood between two zeros.
func unframe(piece []byte) frame {
	var out []byte
	for i := 0; i < len(piece); {
		n := int(piece[i])
		if i+n > len(piece) {
			return frame{text: string(piece)}
		}
		out = append(out, piece[i+1:i+n]...)
		if i += n; i < len(piece) {
			out = append(out, 0)
		}
	}
	if len(out) < 7 || crc32.ChecksumIEEE(out[:len(out)-4]) != binary.LittleEndian.Uint32(out[len(out)-4:]) {
		return frame{text: string(piece)}
	}
	return frame{kind: out[0], content: out[3 : len(out)-4]}
}

// numbers reads the numbers of a content that has nothing else.
func (f *frame) numbers() (list []uint64) {
	for rest := f.content; len(rest) > 0; {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil
		}
		list, rest = append(list, v), rest[n:]
	}
	return list
}

// emulate runs a program under QEMU and gives its frames to a function until that has
// seen enough.
func emulate(t *testing.T, b *Board, elf string, see func(f frame) (enough bool)) {
	t.Helper()
	args, err := b.Emulate(elf)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = c.Wait() }()
	for r := bufio.NewReader(out); ; {
		piece, err := r.ReadBytes(0)
		if err != nil {
			if errors.Is(err, io.EOF) && ctx.Err() != nil {
				err = ctx.Err()
			}
			t.Fatalf("%s ended: %v", b.Name, err)
		}
		if piece = piece[:len(piece)-1]; len(piece) > 0 && see(unframe(piece)) {
			return
		}
	}
}

// need skips a test where one of the programs is missing.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			material.Skip(t, p+" is not installed")
		}
	}
}

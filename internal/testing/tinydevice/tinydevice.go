// Package tinydevice is a made-up board with the firmware of MLPerf Tiny: it answers its
// commands. Only tests import it.
package tinydevice

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Board is what a board runs.
type Board struct {
	Model   string
	Input   int           // bytes that the model takes
	Buffer  int           // bytes that the board has for it, 0 for enough
	Latency time.Duration // of an inference, by the board's clock
	Results string        // "0.1,0.9"
	Energy  bool          // built for the measurement of energy
	Clock   uint64        // of the board in microseconds at the start
	// Sleep waits for as long as inferences take; else they take no time of this computer.
	Sleep bool
	// Got is the input that came last.
	Got []byte
	// Drop leaves out the answer to a command, for a board that does not answer.
	Drop func(command string) bool
}

// Run is the board as a device on a wire.
func (b *Board) Run(w io.Writer, r io.Reader) {
	in := bufio.NewReader(r)
	mode := "performance"
	if b.Energy {
		mode = "energy"
	}
	if _, err := fmt.Fprintf(w, "m-timestamp-mode-%s\r\nm-lap-us-%d\r\nm-init-done\r\nm-ready\r\n", mode, b.Clock); err != nil {
		return
	}
	var size int
	for {
		c, err := in.ReadString('%')
		if err != nil {
			return
		}
		c = strings.TrimSuffix(c, "%")
		if b.Drop != nil && b.Drop(c) {
			continue
		}
		out := b.answer(c, &size) + "m-ready\r\n"
		if _, err := io.WriteString(w, out); err != nil {
			return
		}
	}
}

func (b *Board) answer(c string, size *int) string {
	f := strings.Fields(c)
	if len(f) == 0 {
		return "e-[Unknown command: ]\r\n"
	}
	switch f[0] {
	case "name":
		return "m-name-dut-[Made up]\r\n"
	case "profile":
		return fmt.Sprintf("m-profile-[ULPMark for tinyML Firmware V0.0.1]\r\nm-model-[%s]\r\n", b.Model)
	case "db":
		return b.load(f[1:], size)
	case "infer":
		return b.infer(f[1:])
	case "results":
		return fmt.Sprintf("m-results-[%s]\r\n", b.Results)
	}
	return fmt.Sprintf("e-[Unknown command: %s]\r\n", f[0])
}

func (b *Board) load(f []string, size *int) string {
	if len(f) == 2 && f[0] == "load" {
		*size = number(f[1])
		if b.Buffer > 0 && *size > b.Buffer {
			return fmt.Sprintf("Supplied buffer size %d exceeds maximum of %d\n", *size, b.Buffer)
		}
		b.Got = nil
		return fmt.Sprintf("m-[Expecting %d bytes]\r\n", *size)
	}
	if len(f) != 1 {
		return "e-[Command 'db' requires a subcommand]\r\n"
	}
	x, err := hex.DecodeString(f[0])
	if err != nil {
		return "e-[Invalid hex digit]\r\n"
	}
	for _, c := range x {
		if len(b.Got) < *size {
			if b.Got = append(b.Got, c); len(b.Got) == *size {
				return "m-load-done\r\n"
			}
		}
	}
	return ""
}

func (b *Board) infer(f []string) string {
	n, warm := 1, 10
	if len(f) > 0 {
		n = number(f[0])
	}
	if len(f) > 1 {
		warm = number(f[1])
	}
	if n <= 0 {
		return "e-[Inference iterations must be >0]\r\n"
	}
	var s strings.Builder
	took := time.Duration(n) * b.Latency
	if b.Sleep {
		time.Sleep(took)
	}
	fmt.Fprintf(&s, "m-warmup-start-%d\r\nm-warmup-done\r\nm-infer-start-%d\r\n", warm, n)
	if !b.Energy {
		fmt.Fprintf(&s, "m-lap-us-%d\r\n", uint32(b.Clock))
	}
	b.Clock += uint64(took.Microseconds())
	if !b.Energy {
		fmt.Fprintf(&s, "m-lap-us-%d\r\n", uint32(b.Clock))
	}
	fmt.Fprintf(&s, "m-infer-done\r\nm-results-[%s]\r\n", b.Results)
	return s.String()
}

// number is 0 for what is none, as the firmware's atoi has it.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

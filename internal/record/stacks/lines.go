package stacks

import (
	"bufio"
	"fmt"
	"io"
)

// maxLine bounds a line of a text.
const maxLine = 4 << 20

// Lines calls f for each line of a text, without its line ending. It stops with an error that
// names the line if a line is too long, and with the error of f if f fails.
func Lines(from io.Reader, f func(line []byte) error) error {
	s := bufio.NewScanner(from)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	n := 0
	for s.Scan() {
		n++
		if err := f(s.Bytes()); err != nil {
			return err
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}

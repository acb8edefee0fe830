package stacks

import (
	"bufio"
	"fmt"
	"io"
)

// maxLine bounds a line of a text.
const maxLine = 4 << 20

// Lines calls f for each line of a text, without its end. A line that is too long ends it with an error that
// says which one; so does an error of f.
func Lines(from io.Reader, progress func(int64), f func(line []byte) error) error {
	s := bufio.NewScanner(from)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	n, at := 0, int64(0)
	for s.Scan() {
		n++
		if at += int64(len(s.Bytes()) + 1); progress != nil && at > 1<<20 {
			progress(at)
			at = 0
		}
		if err := f(s.Bytes()); err != nil {
			return err
		}
	}
	if progress != nil {
		progress(at)
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}

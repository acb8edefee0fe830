package stacks

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/opmeter/opmeter/internal/record"
)

// maxLine bounds a line of a text.
const maxLine = 4 << 20

// Lines calls use for each line of a file, without its line ending. It stops with an error that
// names the line if a line is too long, and when the context ends.
func Lines(ctx context.Context, f *record.File, use func(line []byte)) error {
	return f.With(func(r io.Reader) error {
		s := bufio.NewScanner(r)
		s.Buffer(make([]byte, 0, 64<<10), maxLine)
		n := 0
		for ; s.Scan(); n++ {
			use(s.Bytes())
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if err := s.Err(); err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		return nil
	})
}

// Package lines reads files that grow by a line at a time, as journals and studies do: a line of
// bounded length that is whole, or the end. It imports the standard library only.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Read returns a line of at most so many bytes without its end; [io.EOF] where none is whole, with
// what there is of one.
func Read(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		case errors.Is(err, io.EOF):
			return line, err
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > most:
			return nil, fmt.Errorf("longer than %d bytes", most)
		}
	}
}

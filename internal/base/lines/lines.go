// Package lines reads line-based files that grow, such as journals and study files: complete
// lines of bounded length. It imports the standard library only.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Read returns a line of at most the given length without its line ending. It returns [io.EOF]
// and the incomplete rest if no complete line follows.
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

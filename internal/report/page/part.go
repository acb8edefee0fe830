package page

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// pieceBytes bounds the gzipped bytes of one element. A multiple of three, so that
// the base64 text of each piece can be decoded separately: 8 MiB of text.
const pieceBytes = 6 << 20

// part writes data gzipped and in base64 into elements that the browser does not
// run, as many as it takes.
func part(w *bufio.Writer, name string, level int, write func(io.Writer) error) error {
	e := &elements{w: w, name: name, room: pieceBytes}
	e.open()
	z, err := gzip.NewWriterLevel(e, level)
	if err != nil {
		return err
	}
	if err := write(z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return e.close()
}

// elements is a writer that begins another element when one is full. Errors of w
// are sticky and come out at its Flush.
type elements struct {
	w    *bufio.Writer
	name string
	room int
	b    io.WriteCloser
}

func (e *elements) open() {
	fmt.Fprintf(e.w, `<script type="application/octet-stream" data-part="%s">`, e.name)
	e.b = base64.NewEncoder(base64.StdEncoding, e.w)
}

func (e *elements) close() error {
	if err := e.b.Close(); err != nil {
		return err
	}
	_, err := e.w.WriteString("</script>\n")
	return err
}

func (e *elements) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		if e.room == 0 {
			if err := e.close(); err != nil {
				return written, err
			}
			e.open()
			e.room = pieceBytes
		}
		n, err := e.b.Write(p[:min(len(p), e.room)])
		written += n
		e.room -= n
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

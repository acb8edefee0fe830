package port

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/opmeter/opmeter/internal/base/infile"
)

// reading is a read-only way: a file or standard input.
type reading struct {
	r    io.Reader
	done context.CancelFunc
}

func (r *reading) read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		return n, nil // an error comes again
	}
	return 0, err
}

func (r *reading) write([]byte) (int, error) { return 0, ErrReadOnly }
func (r *reading) interrupt()                {}
func (r *reading) setSpeed(int) error        { return ErrNoSpeed }
func (r *reading) quit()                     { r.done() }

func (r *reading) close() error {
	if c, ok := r.r.(*recorded); ok {
		return c.Close()
	}
	return nil
}

// recorded is a file that is opened and closed here.
type recorded struct{ io.ReadCloser }

// openFile opens a recording, which must be a regular file.
func openFile(a Address) (way, error) {
	f, _, err := infile.Open(a.Name)
	if err == nil {
		return &reading{r: &recorded{f}, done: func() {}}, nil
	}
	e := &OpenError{Address: a, Cause: Failed, Err: err}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		e.Err = p.Err // the address has the path
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Cause, e.Advice = Missing, "check the path; --record FILE makes such a file"
	case errors.Is(err, fs.ErrPermission):
		e.Cause, e.Advice = Permission, "you may not read this file"
	}
	if _, ok := errors.AsType[*infile.KindError](err); ok {
		e.Advice = "a device is named without file:, a pipe is read with - from standard input"
	}
	return nil, e
}

// newInput reads standard input, nil for an empty one. It may be a terminal or a pipe without a
// writer, whose read cannot be interrupted: it runs in a separate goroutine, which is abandoned
// when the port is closed.
func newInput(r io.Reader) way {
	if r == nil {
		r = eof{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	in := &input{pieces: make(chan []byte), ctx: ctx}
	go in.pump(r)
	return &reading{r: in, done: cancel}
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// input passes on what another goroutine reads.
type input struct {
	ctx    context.Context
	pieces chan []byte // closed at the end
	err    error       // set before that
	rest   []byte
}

func (in *input) pump(r io.Reader) {
	defer close(in.pieces)
	for in.ctx.Err() == nil {
		p := make([]byte, pieceSize)
		n, err := r.Read(p)
		if n > 0 {
			select {
			case in.pieces <- p[:n]:
			case <-in.ctx.Done():
				return
			}
		}
		if err != nil {
			in.err = err
			return
		}
	}
}

func (in *input) Read(p []byte) (int, error) {
	for len(in.rest) == 0 {
		select {
		case <-in.ctx.Done():
			return 0, fs.ErrClosed
		case b, ok := <-in.pieces:
			if !ok {
				if in.err == nil {
					return 0, fs.ErrClosed
				}
				return 0, in.err
			}
			in.rest = b
		}
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

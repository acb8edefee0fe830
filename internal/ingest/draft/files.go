package draft

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/opmeter/opmeter/internal/ingest"
)

// EachFile reads files one after the other, each for itself. Errors of files are
// joined; runs that are right come beside them.
func EachFile(ctx context.Context, in *ingest.Input, read func(f *ingest.File) ([]*ingest.Run, error)) ([]*ingest.Run, error) {
	var runs []*ingest.Run
	var errs []error
	for _, f := range in.Files {
		if err := ctx.Err(); err != nil {
			return runs, errors.Join(append(errs, err)...)
		}
		rs, err := read(f)
		runs = append(runs, rs...)
		if err != nil {
			errs = append(errs, Fault(f, err))
		}
	}
	return runs, errors.Join(errs...)
}

// Fault says which file an error is of.
func Fault(f *ingest.File, err error) error {
	if _, ok := errors.AsType[*ingest.FileError](err); ok || err == nil {
		return err
	}
	return &ingest.FileError{Path: f.Path, Err: err}
}

// At says which line of a file an error is of.
func At(f *ingest.File, line int, err error) error {
	return &ingest.FileError{Path: f.Path, Place: fmt.Sprintf("line %d", line), Err: err}
}

// ErrNothing is wrapped where a file was recognised and holds nothing that could be read.
var ErrNothing = errors.New("is recognised, and holds no operator, time or size of a run")

// Open opens a file whose bytes are reported as they are read.
func Open(f *ingest.File, in *ingest.Input) (io.ReadCloser, error) {
	r, err := f.Open()
	if err != nil {
		return nil, &ingest.FileError{Path: f.Path, Err: err}
	}
	if in.Progress == nil {
		return r, nil
	}
	return &told{r, in.Progress}, nil
}

type told struct {
	io.ReadCloser
	of func(int64)
}

func (t *told) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	if n > 0 {
		t.of(int64(n))
	}
	return n, err
}

// Whole reads a whole file of at most so many bytes.
func Whole(f *ingest.File, in *ingest.Input, most int64) ([]byte, error) {
	b, err := f.Read(most)
	if in.Progress != nil {
		in.Progress(int64(len(b)))
	}
	return b, err
}

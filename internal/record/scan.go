package record

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/record/textscan"
)

// With opens the file, calls read and closes the file.
func (f *File) With(read func(r io.Reader) error) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	return read(r)
}

// Lines calls use with each line of a text file, see [textscan.Scanner]. The error names the line.
func (f *File) Lines(use func(line string)) error {
	return f.With(func(r io.Reader) error {
		s := textscan.NewScanner(r)
		for s.Scan() {
			use(s.Text())
		}
		if err := s.Err(); err != nil {
			return &FileError{Path: f.Path, Place: fmt.Sprintf("line %d", s.Number()), Err: err}
		}
		return nil
	})
}

// ScanJSON calls use with the values of a JSON file, see [jsonscan.Each]. It stops when the
// context ends.
func (f *File) ScanJSON(ctx context.Context, o jsonscan.Options, use func(key string, value []byte)) (res jsonscan.Result, err error) {
	err = f.With(func(r io.Reader) error {
		res, err = jsonscan.Each(r, o, func(key string, value []byte) error {
			use(key, value)
			return ctx.Err()
		})
		return err
	})
	return res, err
}

// maxDocuments limits the JSON documents of a file that are read.
const maxDocuments = 1000

// EachJSON calls use with each document of a JSON file of at most the given bytes. fault is an
// error in its text; v then holds the values before it, and the file ends there.
func (f *File) EachJSON(most int64, use func(v *jsontree.Value, fault error)) error {
	text, err := f.Read(most)
	if err != nil {
		return err
	}
	more := true
	for n := 0; more; n++ {
		v, rest, fault := jsontree.ParseFirst(text)
		if n == maxDocuments {
			fault = fmt.Errorf("more than %d documents", maxDocuments)
		}
		use(v, fault)
		text = rest
		more = fault == nil && len(text) > 0 && (text[0] == '{' || text[0] == '[')
	}
	return nil
}

// MoreDocuments is the reason for which the documents after the first one of a file are left out,
// where a format has one in a file.
const MoreDocuments = "documents after the first one, which are of other runs: put each into a file of its own"

// ParseJSON reads a JSON file of at most the given bytes. err is an error of reading. fault is an
// error in the text; v then holds the values before it.
func (f *File) ParseJSON(most int64) (v *jsontree.Value, fault, err error) {
	text, err := f.Read(most)
	if err != nil {
		return nil, nil, err
	}
	v, rest, fault := jsontree.ParseFirst(text)
	if fault == nil && len(rest) > 0 && (rest[0] == '{' || rest[0] == '[') {
		fault = errors.New(MoreDocuments)
	}
	return v, fault, nil
}

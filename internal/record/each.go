package record

import (
	"context"
	"errors"

	"github.com/opmeter/opmeter/internal/measure/runlog"
)

// EachFile reads the files of in separately, one after the other. Errors of files are joined; the
// runs that were read are returned as well.
func EachFile(ctx context.Context, in *Input, read func(f *File) ([]*runlog.Run, error)) ([]*runlog.Run, error) {
	var runs []*runlog.Run
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

// RunsPerFile returns a [Format].Read that reads files separately, see [EachFile].
func RunsPerFile(read func(ctx context.Context, in *Input, f *File) ([]*runlog.Run, error)) func(context.Context, *Input) ([]*runlog.Run, error) {
	return func(ctx context.Context, in *Input) ([]*runlog.Run, error) {
		return EachFile(ctx, in, func(f *File) ([]*runlog.Run, error) { return read(ctx, in, f) })
	}
}

// RunPerFile is [RunsPerFile] for formats with one run per file.
func RunPerFile(read func(ctx context.Context, f *File) (*runlog.Run, error)) func(context.Context, *Input) ([]*runlog.Run, error) {
	return RunsPerFile(func(ctx context.Context, _ *Input, f *File) ([]*runlog.Run, error) {
		r, err := read(ctx, f)
		if r == nil {
			return nil, err
		}
		return []*runlog.Run{r}, err
	})
}

// Groups collects files that belong to one run. name returns the name of a file's group, create
// makes a group for its first file, and read adds a file. Groups are in the order of their first
// files. After an error the other files are still read.
func Groups[T any](ctx context.Context, files []*File, name func(f *File) string, create func(f *File) *T, read func(to *T, f *File) error) (groups []*T, errs []error) {
	by := map[string]*T{}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return groups, append(errs, err)
		}
		key := name(f)
		if by[key] == nil {
			by[key] = create(f)
			groups = append(groups, by[key])
		}
		if err := read(by[key], f); err != nil {
			errs = append(errs, Fault(f, err))
		}
	}
	return groups, errs
}

// Fault wraps err in a [FileError] for f, unless it already is one.
func Fault(f *File, err error) error {
	if _, ok := errors.AsType[*FileError](err); ok || err == nil {
		return err
	}
	return &FileError{Path: f.Path, Err: err}
}

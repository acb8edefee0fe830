// Package record says what it takes to read the records of other tools: files as
// they come ([Find]), formats that recognise their own by content ([Format]), and
// the formats that read them into runs (package runlog).
//
// Packages below it read one family of formats each; package all lists them. None
// of them knows how a profile is shown or which model the record is of:
// internal/source/join finds the model's operators.
package record

import (
	"context"
	"fmt"
	"io"

	"github.com/opmeter/opmeter/internal/measure/runlog"
)

// Sure says how surely a file belongs to a format, by its beginning and its name.
type Sure int

// Levels of sureness. A format that has only the shape of the text to go by answers
// Maybe, one that sees keys or magic numbers that nothing else has answers Certain.
const (
	No Sure = iota
	Maybe
	Likely
	Certain
)

// Format is one kind of record.
type Format struct {
	// Name is a word for the command line and for [profile.Model].Format, in lower case.
	Name string
	// Title names the tool and its record, for people.
	Title string
	// Files says which files these are and how they are made.
	Files string
	// Gives lists what such a record can say: keys of quantities, and the words of
	// [Parts].
	Gives []string
	// Match says how surely a file is of the format. It looks at no more than name and
	// head.
	Match func(f *File) Sure
	// Folder gives the folder that stands for one of several in which a tool puts the
	// files of one run, nil where it uses one.
	Folder func(dir string) string
	// Read reads the files that were found to be of the format. Files of one run become
	// one run, several runs several. A file that is of no use is an error of its own
	// ([FileError]), joined with the others; runs that are right come beside it.
	Read func(ctx context.Context, in *Input) ([]*runlog.Run, error)
	// Original writes what the tool itself makes of its records, with its figures, files
	// and layouts; nil where opmeter cannot.
	Original func(ctx context.Context, in *Input) ([]Output, error)
	// Commands lists the commands that the record holds, a line each; nil where it has none.
	Commands func(ctx context.Context, in *Input, w io.Writer) error
	// Check looks for what the commands do wrong and writes a line for each finding; nil
	// where nothing can be found.
	Check func(ctx context.Context, in *Input, w io.Writer) (found int, err error)
}

// Surest is the format that is surest of a file, the first of several that are as sure; nil
// where none is.
func Surest(formats []*Format, f *File) *Format {
	var best *Format
	sure := No
	for _, x := range formats {
		if s := x.Match(f); s > sure {
			best, sure = x, s
		}
	}
	return best
}

// Output is a file that [Format].Original makes.
type Output struct {
	// Name of the file, without a folder.
	Name string
	Data []byte
}

// Parts are words that [Format].Gives may hold beside keys of quantities.
var Parts = []string{"timeline", "memory", "shapes", "options", "samples", "phases", "machine"}

// Input is what a format is to read.
type Input struct {
	// Files are those of one folder or archive, in the order of their names.
	Files []*File
	Options
}

// Options says what the user knows and a record does not tell.
type Options struct {
	// Arch names the chip, "" to take it from the data.
	Arch string
	// Clocks holds frequencies in hertz by the name of the unit, "" for the one clock
	// that ticks are of.
	Clocks map[string]float64
}

// FileError says what is wrong with a file, where and what was expected.
type FileError struct {
	// Path of the file, with the place inside an archive.
	Path string
	// Place in the file, such as "byte 12" or "line 3"; "" for the whole.
	Place string
	Err   error
}

// Error names file, place and reason.
func (e *FileError) Error() string {
	if e.Place != "" {
		return fmt.Sprintf("%s: %s: %v", e.Path, e.Place, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *FileError) Unwrap() error { return e.Err }

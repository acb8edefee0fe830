package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/base/mapped"
)

// external returns slices of external data files, each mapped once.
type external struct {
	dir      string // "" refuses all
	optional bool   // missing files give no elements
	files    map[string]*mapped.File
	seen     map[extent]bool
	bytes    int64 // of all extents
}

// extent is a range of bytes of a data file.
type extent struct {
	location       string
	offset, length int64
}

// slice finds the elements of a tensor of want bytes. A checksum is not verified: that would read
// all of the data.
func (x *external) slice(entries []rawEntry, want int) ([]byte, error) {
	location, offset, length := "", int64(0), int64(-1)
	for _, e := range entries {
		var err error
		switch e.key {
		case "location":
			location = string(e.value)
		case "offset":
			offset, err = size(e.value)
		case "length":
			length, err = size(e.value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.key, err)
		}
	}
	data, err := x.file(location)
	absent := x.optional && errors.Is(err, fs.ErrNotExist)
	if err != nil && !absent {
		return nil, err
	}
	if length >= 0 && length != int64(want) {
		return nil, fmt.Errorf("length %d, but the tensor takes %d bytes", length, want)
	}
	if e := (extent{location, offset, int64(want)}); !x.seen[e] {
		if x.seen == nil {
			x.seen = map[extent]bool{}
		}
		x.seen[e] = true
		x.bytes += e.length
	}
	if absent {
		return nil, nil
	}
	if offset > int64(len(data)) || int64(want) > int64(len(data))-offset {
		return nil, fmt.Errorf("%q has %d bytes, but the tensor needs %d at %d", location, len(data), want, offset)
	}
	return data[offset : offset+int64(want) : offset+int64(want)], nil
}

func size(b []byte) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%.40q is not a size", b)
	}
	return n, nil
}

// file maps a data file. The location must stay in the model's folder: a model must not access
// other files. A symbolic link there may lead elsewhere, as in the cache of a model hub, to a file
// of the link's owner; see [follow].
func (x *external) file(location string) ([]byte, error) {
	if location == "" {
		return nil, errors.New("no location")
	}
	if x.dir == "" {
		return nil, fmt.Errorf("%q is not available: the model was not opened from a folder", location)
	}
	slash := strings.ReplaceAll(location, `\`, "/")
	if strings.HasPrefix(slash, "/") || !filepath.IsLocal(filepath.FromSlash(slash)) || hasDotDot(slash) {
		return nil, fmt.Errorf("location %q leads outside the model's folder", location)
	}
	name := filepath.Clean(filepath.FromSlash(location))
	if m := x.files[name]; m != nil {
		return m.Data, nil
	}
	root, err := os.OpenRoot(x.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// Opening a pipe or a device may block or have side effects, so check first.
	st, err := root.Stat(name)
	if err != nil {
		return x.follow(root, name, location)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("location %q is not a regular file", location)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("location %q: %w", location, cause(err))
	}
	return x.add(f, name, location)
}

// follow maps the data file that a link in the model's folder leads to. The link and its target
// must have the same owner: then whoever placed the link had the right to the file. A location
// that is missing is an error too.
func (x *external) follow(root *os.Root, name, location string) ([]byte, error) {
	link, err := firstLink(root, name)
	if err != nil {
		return nil, fmt.Errorf("location %q: %w", location, cause(err))
	}
	target, err := filepath.EvalSymlinks(filepath.Join(x.dir, name))
	if p := (*fs.PathError)(nil); err != nil && !errors.As(err, &p) {
		// The only other error of links is that there are too many.
		return nil, fmt.Errorf("location %q is a link that leads back to itself, or through too many others: put the file there", location)
	}
	if err != nil {
		return nil, fmt.Errorf("location %q: %w", location, cause(err))
	}
	f, st, err := infile.Open(target)
	if err != nil {
		return nil, fmt.Errorf("location %q is a link: %w", location, err)
	}
	if !st.Mode().IsRegular() || !sameOwner(link, st) {
		f.Close()
		return nil, fmt.Errorf("location %q is a link to a file of another owner: copy the file into the model's folder", location)
	}
	return x.add(f, name, location)
}

// firstLink describes the first part of a path below a folder that is a symbolic link.
func firstLink(root *os.Root, name string) (fs.FileInfo, error) {
	for i := 0; i <= len(name); i++ {
		if i < len(name) && !os.IsPathSeparator(name[i]) {
			continue
		}
		if st, err := root.Lstat(name[:i]); err != nil || st.Mode()&fs.ModeSymlink != 0 {
			return st, err
		}
	}
	return root.Lstat(name)
}

// add maps an open data file and takes ownership of it.
func (x *external) add(f *os.File, name, location string) ([]byte, error) {
	m, err := mapped.Map(f, filepath.Join(x.dir, name))
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("location %q: %w", location, cause(err))
	}
	if x.files == nil {
		x.files = map[string]*mapped.File{}
	}
	x.files[name] = m
	return m.Data, nil
}

func hasDotDot(slash string) bool {
	for p := range strings.SplitSeq(slash, "/") {
		if p == ".." {
			return true
		}
	}
	return false
}

// cause drops the path from file system errors.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// paths returns the mapped data files, sorted.
func (x *external) paths() []string {
	var out []string
	for name := range x.files {
		out = append(out, filepath.Join(x.dir, name))
	}
	slices.Sort(out)
	return out
}

// fileBytes is the size of the data files.
func (x *external) fileBytes() (n int64) {
	for _, f := range x.files {
		n += int64(len(f.Data))
	}
	return n
}

// check reports whether a data file has changed since it was mapped.
func (x *external) check() error {
	for _, f := range x.files {
		if err := f.Check(); err != nil {
			return err
		}
	}
	return nil
}

func (x *external) close() error {
	var errs []error
	for _, f := range x.files {
		errs = append(errs, f.Close())
	}
	x.files = nil
	return errors.Join(errs...)
}

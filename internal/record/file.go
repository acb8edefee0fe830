package record

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/opmeter/opmeter/internal/base/infile"
)

// Limits of the search for files.
const (
	// HeadBytes is the size of the beginning of a file that formats see.
	HeadBytes = 64 << 10
	// MaxFileBytes limits the size of a file after decompression.
	MaxFileBytes = 64 << 30
	maxFiles     = 20_000 // in a folder or archive, including subfolders
	maxFolders   = 16     // nested folders
	maxPackings  = 4      // such as a .json.gz within a .tar.gz
)

// File is one input file; it is decompressed while it is read.
type File struct {
	// Path is the file as the user named it, followed by "!" and the place inside an archive.
	Path string
	// Dir and Name are the folder and the last part of Path. Name has no compression suffix (.gz,
	// .zst).
	Dir, Name string
	// Head is the beginning, at most [HeadBytes]; Whole means that it is the entire file.
	Head  []byte
	Whole bool
	// Progress receives the number of bytes read. Each byte counts once, however often the file
	// is read. It may be nil. Several goroutines may call it.
	Progress func(bytes int64)

	open     func() (io.ReadCloser, error)
	reported atomic.Int64 // bytes already reported to Progress
}

// Open opens the decompressed file at its beginning. Reading beyond [MaxFileBytes] is an error.
func (f *File) Open() (io.ReadCloser, error) {
	if f.Whole { // a small file was already read
		return &readCloser{Reader: &progressReader{r: bytes.NewReader(f.Head), f: f}, close: func() error { return nil }}, nil
	}
	r, err := f.open()
	if err != nil {
		return nil, err
	}
	l := &limited{r: r, left: MaxFileBytes}
	return &readCloser{Reader: &progressReader{r: l, f: f}, close: r.Close}, nil
}

// progressReader reports bytes that are read for the first time to the Progress callback of a file.
type progressReader struct {
	r  io.Reader
	f  *File
	at int64
}

func (t *progressReader) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	t.at += int64(n)
	t.f.report(t.at)
	return n, err
}

// report reports that the file was read up to offset at.
func (f *File) report(at int64) {
	for f.Progress != nil {
		known := f.reported.Load()
		if at <= known {
			return
		}
		if f.reported.CompareAndSwap(known, at) {
			f.Progress(at - known)
			return
		}
	}
}

// Read returns the whole file. A file longer than most bytes is a [FileError].
func (f *File) Read(most int64) ([]byte, error) {
	if f.Whole {
		f.report(int64(len(f.Head)))
		return f.Head, nil
	}
	r, err := f.Open()
	if err != nil {
		return nil, &FileError{Path: f.Path, Err: err}
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if int64(len(b)) > most {
		return nil, &FileError{Path: f.Path, Err: &infile.SizeError{Most: most}}
	}
	if err != nil {
		return b, &FileError{Path: f.Path, Place: fmt.Sprintf("byte %d", len(b)), Err: err}
	}
	return b, nil
}

// Bytes returns a file whose content is already in memory.
func Bytes(name string, data []byte) *File {
	return &File{
		Path: name, Dir: path.Dir(filepath.ToSlash(name)), Name: path.Base(filepath.ToSlash(name)),
		Head: data[:min(len(data), HeadBytes)], Whole: len(data) <= HeadBytes,
		open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

// Find lists the files at a path: the file itself, all files in a folder and its subfolders, or
// the files of a zip or tar archive. Compressed files (gzip, zstd) are replaced by their content.
// A file that cannot be opened is a [FileError] among the faults.
func Find(name string) (files []*File, faults []error, err error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	w := &finder{}
	if st.IsDir() {
		w.folder(name, 0)
	} else {
		w.file(name)
	}
	if len(w.files) == 0 && len(w.faults) == 1 && !st.IsDir() {
		return nil, nil, w.faults[0]
	}
	return w.files, w.faults, nil
}

type finder struct {
	files  []*File
	faults []error
	full   bool
}

func (w *finder) fault(name string, err error) {
	w.faults = append(w.faults, &FileError{Path: name, Err: withoutPath(err)})
}

// withoutPath removes the path from an error, since the [FileError] has it.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// hasSpace reports whether the limit on the number of files allows one more.
func (w *finder) hasSpace(name string) bool {
	if len(w.files) < maxFiles {
		return true
	}
	if !w.full {
		w.full = true
		w.fault(name, fmt.Errorf("more than %d files; those that follow are left out", maxFiles))
	}
	return false
}

func (w *finder) folder(name string, depth int) {
	entries, err := os.ReadDir(name)
	if err != nil {
		w.fault(name, err)
	}
	for _, e := range entries {
		at := filepath.Join(name, e.Name())
		switch {
		case w.full:
			return
		case e.IsDir() && depth+1 >= maxFolders:
			w.fault(at, fmt.Errorf("folders nest deeper than %d; this one is left out", maxFolders))
		case e.IsDir():
			w.folder(at, depth+1)
		default:
			w.file(at)
		}
	}
}

// file adds a file of the file system.
func (w *finder) file(name string) {
	if !w.hasSpace(name) {
		return
	}
	w.addFile(name, func() (io.ReadCloser, error) {
		f, _, err := infile.Open(name)
		return f, err
	}, 0)
}

// addFile adds a file, decompressing it and descending into archives.
func (w *finder) addFile(name string, open func() (io.ReadCloser, error), packings int) {
	head, whole, err := begin(open)
	if err != nil && len(head) == 0 {
		w.fault(name, err)
		return
	}
	if unpack := decompressor(head); unpack != nil && packings < maxPackings {
		w.addFile(name, func() (io.ReadCloser, error) {
			r, err := open()
			if err != nil {
				return nil, err
			}
			return unpack(r)
		}, packings+1)
		return
	}
	switch {
	case isZip(head) && packings == 0 && w.zip(name):
		return
	case isZip(head) && packings > 0 && strings.HasSuffix(strings.ToLower(trimCompression(name)), ".zip"):
		w.fault(name, errors.New("is a zip archive in another file, which is not opened: unpack it, and import what is in it"))
		return
	case isTar(head) && packings < maxPackings:
		w.tar(name, open, packings)
		return
	}
	slash := filepath.ToSlash(name)
	f := &File{Path: name, Dir: path.Dir(slash), Name: trimCompression(path.Base(slash)), Head: head, Whole: whole, open: open}
	if i := strings.LastIndexByte(slash, '!'); i >= 0 {
		f.Dir, f.Name = slash[:i+1]+path.Dir(slash[i+1:]), trimCompression(path.Base(slash[i+1:]))
	}
	w.files = append(w.files, f)
}

// trimCompression removes a compression suffix from a name.
func trimCompression(name string) string {
	for _, end := range []string{".gz", ".zst", ".zstd"} {
		if s, ok := strings.CutSuffix(strings.ToLower(name), end); ok && s != "" {
			return name[:len(s)]
		}
	}
	return name
}

// begin reads the beginning of a file.
func begin(open func() (io.ReadCloser, error)) (head []byte, whole bool, err error) {
	r, err := open()
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, HeadBytes+1))
	if len(b) > HeadBytes {
		return bytes.Clone(b[:HeadBytes]), false, nil
	}
	return bytes.Clone(b), err == nil, err
}

// decompressor returns the decompressor for a file that begins with head, nil if there is no
// compression.
func decompressor(head []byte) func(io.ReadCloser) (io.ReadCloser, error) {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return func(r io.ReadCloser) (io.ReadCloser, error) {
			z, err := gzip.NewReader(bufio.NewReaderSize(r, 256<<10))
			if err != nil {
				return nil, errors.Join(fmt.Errorf("gzip: %w", err), r.Close())
			}
			return &readCloser{Reader: z, close: r.Close}, nil
		}
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return func(r io.ReadCloser) (io.ReadCloser, error) {
			z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
			if err != nil {
				return nil, errors.Join(fmt.Errorf("zstd: %w", err), r.Close())
			}
			return &readCloser{Reader: z, close: func() error { z.Close(); return r.Close() }}, nil
		}
	}
	return nil
}

func isZip(head []byte) bool { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }

func isTar(head []byte) bool { return len(head) >= 262 && string(head[257:262]) == "ustar" }

// workbook is a file that spreadsheets of the Office Open XML format have.
const workbook = "xl/workbook.xml"

// zip adds the files of a zip archive. It returns false for a spreadsheet, which is one file to its
// readers.
func (w *finder) zip(name string) bool {
	z, err := newArchive(func() (archiveFile, fs.FileInfo, error) { return infile.Open(name) })
	if err != nil {
		w.fault(name, fmt.Errorf("zip: %w", err))
		return true
	}
	defer func() { _ = z.release() }() // it was only read
	if slices.ContainsFunc(z.dir.File, func(e *zip.File) bool { return e.Name == workbook }) {
		return false
	}
	for i, e := range z.dir.File {
		if e.FileInfo().IsDir() {
			continue
		}
		at := name + "!" + e.Name
		if !w.hasSpace(at) {
			return true
		}
		w.addFile(at, func() (io.ReadCloser, error) { return z.entry(i) }, 1)
	}
	return true
}

// maxTarFiles limits the files of a tar archive: reaching an entry means reading all entries
// before it.
const maxTarFiles = 256

func (w *finder) tar(name string, open func() (io.ReadCloser, error), packings int) {
	r, err := open()
	if err != nil {
		w.fault(name, err)
		return
	}
	defer r.Close()
	t := tar.NewReader(r)
	for i := 0; ; i++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			w.fault(name, fmt.Errorf("tar: %w", err))
			return
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		at := name + "!" + h.Name
		if i >= maxTarFiles {
			w.fault(at, fmt.Errorf("more than %d files in a tar archive; those that follow are left out", maxTarFiles))
			return
		}
		if !w.hasSpace(at) {
			return
		}
		w.addFile(at, func() (io.ReadCloser, error) { return openTarred(open, i) }, packings+1)
	}
}

// openTarred opens the i-th entry of a tar archive.
func openTarred(open func() (io.ReadCloser, error), i int) (io.ReadCloser, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	t := tar.NewReader(r)
	for ; i >= 0; i-- {
		if _, err := t.Next(); err != nil {
			return nil, errors.Join(fmt.Errorf("tar: %w", err), r.Close())
		}
	}
	return &readCloser{Reader: t, close: r.Close}, nil
}

type readCloser struct {
	io.Reader
	close func() error
}

func (c *readCloser) Close() error { return c.close() }

// limited fails once left bytes were read.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, &infile.SizeError{Most: MaxFileBytes}
	}
	n, err := l.r.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err
}

package tflite

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter/internal/base/mapped"
	"github.com/opmeter/opmeter/internal/model/graph"
)

// MaxArchiveModel bounds the unpacked size of a model in an archive, in bytes. Archives hold
// models for microcontrollers, and unlike a mapped file they are completely in memory.
const MaxArchiveModel = 256 << 20

// maxRatio is the maximum compression ratio of DEFLATE.
const maxRatio = 1032

// Open reads a model file, or the model in an MLTK archive (.mltk.zip) or .litertlm container. The
// path "archive.zip!member" names the member itself. The file stays mapped until the model's Close
// is called.
//
// Constants must be read under [mapped.Guard].
func Open(name string) (*graph.Model, error) {
	file, member, _ := strings.Cut(name, "!")
	f, err := mapped.Open(file)
	if err != nil {
		return nil, &Error{File: name, Offset: -1, Err: cause(err)}
	}
	if len(f.Data) == 0 {
		return nil, errors.Join(&Error{File: name, Offset: -1, Err: errors.New("the file is empty")}, f.Close())
	}
	var m *graph.Model
	err = mapped.Guard(func() (err error) { m, err = open(f.Data, name, file, member); return err })
	if c, ok := errors.AsType[*mapped.ChangedError](err); ok {
		err = &Error{File: name, Offset: -1, Err: c}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	m.Close, m.Check = f.Close, f.Check
	return m, nil
}

// open reads the model in a file's content, or in the archive if it is one.
func open(data []byte, name, file, member string) (*graph.Model, error) {
	// the latter is an empty archive
	if bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.HasPrefix(data, []byte("PK\x05\x06")) {
		model, found, err := unpack(data, filepath.Base(file), member)
		if err != nil {
			return nil, &Error{File: name, Offset: -1, Err: err}
		}
		return contained(model, file+"!"+found)
	}
	if HasLMMark(data) {
		return openLM(data, file, member)
	}
	if member != "" {
		return nil, &Error{File: name, Offset: -1, Err: errors.New("not an archive")}
	}
	return Parse(data, file)
}

// contained reads a model that is not a separate file.
func contained(data []byte, name string) (*graph.Model, error) {
	m, err := Parse(data, name)
	if m != nil {
		m.Content = data
	}
	return m, err
}

// cause drops the path from file system errors.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// openLM reads a model in a .litertlm container.
func openLM(data []byte, file, member string) (*graph.Model, error) {
	model, found, note, err := unpackLM(data, filepath.Base(file), member)
	if err != nil {
		return nil, &Error{File: file, Offset: -1, Err: err}
	}
	m, err := contained(model, file+"!"+found)
	if m != nil {
		m.Notes = append(m.Notes, note)
	}
	return m, err
}

// ParseArchive reads the model in an MLTK archive or in a .litertlm container that is in memory.
func ParseArchive(data []byte, name string) (*graph.Model, error) {
	if HasLMMark(data) {
		return openLM(data, name, "")
	}
	model, member, err := unpack(data, filepath.Base(name), "")
	if err != nil {
		return nil, &Error{File: name, Offset: -1, Err: err}
	}
	return contained(model, name+"!"+member)
}

// unpack returns a member of an archive. Without a name it returns the model named like the
// archive, otherwise the only one that is not the float variant.
func unpack(data []byte, archive, member string) ([]byte, string, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, "", err
	}
	want := strings.TrimSuffix(strings.TrimSuffix(archive, ".zip"), ".mltk") + ".tflite"
	var found *zip.File
	var models []string
	for _, f := range z.File {
		switch base := path.Base(f.Name); {
		case member != "" && f.Name == member, member == "" && base == want:
			found = f
		case strings.HasSuffix(base, ".tflite") && !strings.HasSuffix(base, ".float32.tflite"):
			models = append(models, f.Name)
		}
		if found != nil {
			break
		}
	}
	switch {
	case found != nil:
	case member != "":
		return nil, "", fmt.Errorf("archive has no member %q", member)
	case len(models) == 0:
		return nil, "", errors.New("archive has no .tflite model")
	case len(models) > 1:
		return nil, "", fmt.Errorf("archive has %d models (%s); name one as %s!MEMBER", len(models), strings.Join(models[:min(len(models), 4)], ", "), archive)
	default:
		return unpack(data, archive, models[0])
	}
	model, err := content(found)
	if err != nil {
		return nil, "", fmt.Errorf("member %q: %w", found.Name, err)
	}
	return model, found.Name, nil
}

// content reads a member. It first checks the declared size, and that the content begins like a
// model.
func content(f *zip.File) ([]byte, error) {
	switch n, packed := f.UncompressedSize64, f.CompressedSize64; {
	case n > MaxArchiveModel:
		return nil, fmt.Errorf("has %d bytes, at most %d are unpacked", n, MaxArchiveModel)
	case n > maxRatio*(packed+1):
		return nil, fmt.Errorf("is said to have %d bytes, which %d cannot hold", n, packed)
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	model := make([]byte, f.UncompressedSize64) // allocates no physical memory until written
	head := model[:min(len(model), 8)]
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	// for small files the reader reports more detail
	if len(model) > 1<<20 && string(head[4:]) != "TFL3" {
		return nil, errors.New("is not a TFLite model: \"TFL3\" is expected at byte 4")
	}
	if _, err := io.ReadFull(r, model[len(head):]); err != nil {
		return nil, err
	}
	// The reader verifies the checksum at the end, and that nothing follows.
	if n, err := r.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		return nil, cmp.Or(err, errors.New("is longer than the archive's directory says"))
	}
	return model, nil
}

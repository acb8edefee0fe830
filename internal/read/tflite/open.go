package tflite

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/opmeter/opmeter/internal/graph"
)

// MaxArchiveModel bounds a model that is unpacked from an archive, in bytes.
const MaxArchiveModel = 2 << 30

// Open reads a model file, or the model in an MLTK archive (.mltk.zip). A path
// "archive.zip!member" names the member itself. The file stays mapped until the
// model's Close is called.
//
// A file that is cut short while it is mapped faults on access. Open turns that
// into an error; whoever reads constants later should do so with
// [debug.SetPanicOnFault] set and recover.
func Open(name string) (*graph.Model, error) {
	file, member, _ := strings.Cut(name, "!")
	data, unmap, err := mapFile(file)
	if err != nil {
		return nil, &Error{File: name, Offset: -1, Err: err}
	}
	shown := file
	m, err := guarded(func() (*graph.Model, error) {
		model := data
		if bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.HasPrefix(data, []byte("PK\x05\x06")) { // the latter has no members
			var err error
			if model, member, err = unpack(data, filepath.Base(file), member); err != nil {
				return nil, &Error{File: name, Offset: -1, Err: err}
			}
			shown = file + "!" + member
		} else if member != "" {
			return nil, &Error{File: name, Offset: -1, Err: errors.New("not an archive")}
		}
		return Parse(model, shown)
	})
	if err != nil {
		return nil, errors.Join(err, unmap())
	}
	m.Close = unmap
	return m, nil
}

// ParseArchive reads the model in an MLTK archive that is in memory.
func ParseArchive(data []byte, name string) (*graph.Model, error) {
	model, member, err := unpack(data, filepath.Base(name), "")
	if err != nil {
		return nil, &Error{File: name, Offset: -1, Err: err}
	}
	return Parse(model, name+"!"+member)
}

// guarded turns a memory fault into an error.
func guarded(fn func() (*graph.Model, error)) (m *graph.Model, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if e := recover(); e != nil {
			fault, ok := e.(interface{ Addr() uintptr })
			if !ok {
				panic(e)
			}
			m, err = nil, fmt.Errorf("the file changed while it was read (fault at %#x)", fault.Addr())
		}
	}()
	return fn()
}

// unpack returns a member of an archive. Without a name it takes the model that
// is called like the archive, otherwise the only one that is not the float twin.
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
	r, err := found.Open()
	if err != nil {
		return nil, "", fmt.Errorf("member %q: %w", found.Name, err)
	}
	defer r.Close() //nolint:errcheck // read only
	var buf bytes.Buffer
	if n, err := io.Copy(&buf, io.LimitReader(r, MaxArchiveModel+1)); err != nil {
		return nil, "", fmt.Errorf("member %q: %w", found.Name, err)
	} else if n > MaxArchiveModel {
		return nil, "", fmt.Errorf("member %q is larger than %d bytes", found.Name, int64(MaxArchiveModel))
	}
	return buf.Bytes(), found.Name, nil
}

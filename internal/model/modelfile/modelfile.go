// Package modelfile opens a model file of any supported format.
package modelfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/base/hugepages"
	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/model/gguf"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/netspec"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tflite"
)

// Endings are those of model files, which are not descriptions.
var Endings = []string{".tflite", ".onnx", ".gguf", ".litertlm", ".mltk.zip"}

// HasEnding reports whether a file has the ending of a model.
func HasEnding(path string) bool {
	low := strings.ToLower(path)
	return slices.ContainsFunc(Endings, func(e string) bool { return strings.HasSuffix(low, e) })
}

// File is the file of a path, which may name a model inside: "archive.zip!member".
func File(path string) string {
	file, _, inside := strings.Cut(path, "!")
	if _, err := os.Lstat(path); inside && err != nil {
		return file
	}
	return path
}

// Open reads a file with one of the [Endings], or builds the network that a .yaml file describes.
// "archive.zip!member" is a model inside a file.
// For model files the content decides, not the name: a TFLite file has its identifier at byte 4,
// an archive begins with "PK", and a protobuf message that is not ONNX is rejected by its reader.
// Errors name the file.
func Open(path string) (*graph.Model, error) { return open(path, onnx.Open) }

// OpenShapes is [Open] for a model whose external data may be missing: see [graph.Model].Absent.
func OpenShapes(path string) (*graph.Model, error) { return open(path, onnx.OpenShapes) }

func open(path string, openONNX func(string) (*graph.Model, error)) (*graph.Model, error) {
	hugepages.EnlargeHeap()
	f, st, err := infile.Open(File(path))
	if e, ok := errors.AsType[*infile.KindError](err); ok {
		return nil, fmt.Errorf("%s: is %s, a model file (%s) was expected", path, e.Kind, strings.Join(Endings, ", "))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st.Size() == 0 {
		return nil, fmt.Errorf("%s: the file is empty, a model (%s) was expected", path, strings.Join(Endings, ", "))
	}
	if IsDescription(path) {
		return described(path)
	}
	head, err := readHead(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case hasTFLiteMark(head), tflite.HasLMMark(head):
		return tflite.Open(path)
	case hasGGUFMark(head):
		return gguf.Open(path)
	case bytes.HasPrefix(head, []byte("PK")):
		m, err := tflite.Open(path)
		return m, orForeign(err, path, head)
	case isText(head) || !looksLikeProtobuf(head):
		return nil, notModel(path, head)
	}
	m, err := openONNX(path)
	if err != nil && strings.EqualFold(filepath.Ext(path), ".tflite") {
		return nil, notModel(path, head)
	}
	return m, orForeign(err, path, head)
}

// orForeign is the error of a reader, or where the file is of another known kind, what it is.
func orForeign(err error, name string, head []byte) error {
	if err == nil || foreign(name, head) == "" {
		return err
	}
	return notModel(name, head)
}

// headBytes is the number of bytes needed to identify a file.
const headBytes = 512

// readHead returns the first bytes of a file, fewer than headBytes if it is shorter.
func readHead(r io.Reader) ([]byte, error) {
	head := make([]byte, headBytes)
	n, err := io.ReadFull(r, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}

// hasTFLiteMark reports whether a file has the identifier of TFLite.
func hasTFLiteMark(head []byte) bool { return len(head) >= 8 && string(head[4:8]) == "TFL3" }

// hasGGUFMark reports whether a file begins like those of llama.cpp.
func hasGGUFMark(head []byte) bool { return bytes.HasPrefix(head, []byte("GGUF")) }

// isText reports whether a file begins like text: an ONNX message has field tags and lengths,
// which are control characters.
func isText(head []byte) bool {
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		switch {
		case r == utf8.RuneError && n == 1 && utf8.FullRune(head):
			return false
		case r == utf8.RuneError && n == 1:
			return true // a character that continues after the head
		case r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f:
			return false
		}
		head = head[n:]
	}
	return true
}

// Parse reads a model from memory. The name is used like that of a file.
func Parse(name string, data []byte) (*graph.Model, error) {
	head := data[:min(len(data), headBytes)]
	switch {
	case len(data) == 0:
		return nil, fmt.Errorf("%s: is empty, a model (%s) was expected", name, strings.Join(Endings, ", "))
	case IsDescription(name):
		m, err := netspec.Read(bytes.NewReader(data), name)
		if err != nil {
			return nil, err
		}
		return encoded(m, name)
	case bytes.HasPrefix(head, []byte("PK")), tflite.HasLMMark(head):
		m, err := tflite.ParseArchive(data, name)
		return m, orForeign(err, name, head)
	case hasTFLiteMark(head):
		return withContent(data)(tflite.Parse(data, name))
	case hasGGUFMark(head):
		return gguf.Parse(data, name)
	case isText(head) || !looksLikeProtobuf(head):
		return nil, notModel(name, head)
	}
	m, err := withContent(data)(onnx.Parse(data, name, ""))
	if err != nil && strings.EqualFold(filepath.Ext(name), ".tflite") {
		return nil, notModel(name, head)
	}
	return m, orForeign(err, name, head)
}

// notModel is the error for a file that is not a model: what it is and what to do, as far as known.
func notModel(name string, head []byte) error {
	if what := foreign(name, head); what != "" {
		return fmt.Errorf("%s: is %s", name, what)
	}
	if isText(head) {
		return fmt.Errorf("%s: is text and not a model (%s); a description of a network ends in .yaml", name, strings.Join(Endings, ", "))
	}
	head = head[:min(len(head), 8)]
	return fmt.Errorf("%s: neither a TFLite nor an ONNX model: it begins with % x, expected \"TFL3\" at byte 4 or an ONNX message", name, head)
}

// IsDescription reports whether a file describes a network to build.
func IsDescription(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		return true
	}
	return false
}

// described builds a model and reads it back, so that it equals the file that "opmeter build"
// writes.
func described(path string) (*graph.Model, error) {
	m, err := netspec.File(path)
	if err != nil {
		return nil, err
	}
	return encoded(m, path)
}

func encoded(m *graph.Model, path string) (*graph.Model, error) {
	data, err := tflite.Encode(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return withContent(data)(tflite.Parse(data, path))
}

// withContent stores the content of a model that is not a separate file.
func withContent(data []byte) func(*graph.Model, error) (*graph.Model, error) {
	return func(m *graph.Model, err error) (*graph.Model, error) {
		if m != nil {
			m.Content = data
		}
		return m, err
	}
}

// looksLikeProtobuf reports whether the first byte can begin an ONNX ModelProto: a tag of one of
// its fields (1 to 26) with a matching wire type.
func looksLikeProtobuf(head []byte) bool {
	if len(head) == 0 {
		return false
	}
	field, wire := head[0]>>3, head[0]&7
	if head[0] >= 0x80 {
		return len(head) > 1 && wire == 2 // fields above 15 take two bytes
	}
	return field >= 1 && field <= 15 && (wire == 0 || wire == 2)
}

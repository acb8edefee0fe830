package host

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter/internal/graph"
)

func hash(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// HashFile returns the SHA-256 of a file. For a member of an archive
// ("a.zip!b.tflite") it is that of the archive.
func HashFile(path string) (string, error) {
	path, _, _ = strings.Cut(path, "!")
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// modelName is the file's base name without its endings, or the graph's own name
// for a model that has no file.
func modelName(m *graph.Model) string {
	name := m.Path
	if _, member, ok := strings.Cut(name, "!"); ok {
		name = member
	}
	name = filepath.Base(name)
	for _, end := range []string{".tflite", ".onnx", ".yaml", ".yml"} {
		name = strings.TrimSuffix(name, end)
	}
	if name == "" || name == "." {
		name = m.Name
	}
	if name == "" {
		name = "model"
	}
	return name
}

package host

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"strings"
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

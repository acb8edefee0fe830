package profile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/opmeter/opmeter/internal/atomicfile"
	"github.com/opmeter/opmeter/internal/jsonx"
)

// Extension is the usual ending of saved profile files.
const Extension = ".opmeter"

// A saved profile is a header of 52 bytes and one Zstandard frame:
//
//	0   8  magic: 0x89 'O' 'P' 'M' CR LF 0x1A LF (shows text-mode damage)
//	8   2  version of the container, little-endian, 1
//	10  2  reserved, 0
//	12  8  length of the JSON text, little-endian
//	20 32  SHA-256 of the JSON text
//	52     the JSON text, compressed
const (
	fileMagic   = "\x89OPM\r\n\x1a\n"
	fileVersion = 1
	headerBytes = 52
)

// ErrNotProfile is wrapped by the errors of [Read] for data that is neither a
// saved profile nor JSON text.
var ErrNotProfile = errors.New("not a saved profile")

// Write saves p in a file. The file appears whole or not at all.
func Write(path string, p *Profile) error {
	b, err := Marshal(p)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return atomicfile.Write(path, b)
}

// Read reads a saved profile, or a profile as JSON text. A file that is cut or
// damaged gives an error and no profile.
func Read(path string) (*Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, MaxBytes)
	}
	p, err := Unmarshal(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// Marshal makes the content of a saved profile file.
func Marshal(p *Profile) ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	text, err := jsonx.Marshal(p)
	if err != nil {
		return nil, err
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("profile has %d bytes of text, more than %d", len(text), MaxBytes)
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Close() }()
	out := make([]byte, headerBytes, headerBytes+len(text)/4)
	copy(out, fileMagic)
	binary.LittleEndian.PutUint16(out[8:], fileVersion)
	binary.LittleEndian.PutUint64(out[12:], uint64(len(text)))
	sum := sha256.Sum256(text)
	copy(out[20:], sum[:])
	return w.EncodeAll(text, out), nil
}

// Unmarshal reads the content of a saved profile file or JSON text.
func Unmarshal(b []byte) (*Profile, error) {
	if isJSON(b) {
		return decode(bytes.TrimPrefix(b, []byte("\ufeff")))
	}
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: empty", ErrNotProfile)
	}
	if n := min(len(b), len(fileMagic)); string(b[:n]) != fileMagic[:n] {
		if len(b) > 4 && string(b[1:4]) == "OPM" {
			return nil, fmt.Errorf("%w: line ends were changed on the way (copied as text)", ErrNotProfile)
		}
		return nil, fmt.Errorf("%w: does not begin with its magic number", ErrNotProfile)
	}
	if len(b) < headerBytes {
		return nil, fmt.Errorf("cut off: %d bytes of a header of %d", len(b), headerBytes)
	}
	if v := binary.LittleEndian.Uint16(b[8:]); v != fileVersion {
		return nil, fmt.Errorf("container version %d; this version reads %d", v, fileVersion)
	}
	size := binary.LittleEndian.Uint64(b[12:])
	if size > MaxBytes {
		return nil, fmt.Errorf("says it holds %d bytes, more than %d", size, MaxBytes)
	}
	// Profiles shrink to a twentieth or so. A thousandth is a decompression bomb.
	if size > 64<<20 && size > 1000*uint64(len(b)) {
		return nil, fmt.Errorf("says that %d bytes hold %d bytes of text", len(b), size)
	}
	r, err := zstd.NewReader(bytes.NewReader(b[headerBytes:]), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxBytes), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// Growing while reading, not by the header's word: a damaged length must not
	// cost memory.
	text, err := io.ReadAll(io.LimitReader(r, int64(size)+1))
	if err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("cut off after %d bytes", len(b))
		}
		return nil, fmt.Errorf("damaged: %w", err)
	}
	if uint64(len(text)) != size {
		return nil, fmt.Errorf("damaged: holds %d bytes of text, says %d", len(text), size)
	}
	if sum := sha256.Sum256(text); !bytes.Equal(sum[:], b[20:headerBytes]) {
		return nil, errors.New("damaged: the checksum does not match")
	}
	return decode(text)
}

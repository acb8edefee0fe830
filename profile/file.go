package profile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
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
	return atomicfile.Stream(path, func(w io.Writer) error {
		if err := p.Save(w); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

// Read reads a saved profile, or a profile as JSON text. A file that is cut or
// damaged gives an error and no profile.
func Read(path string) (*Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, withName(path, err)
	}
	defer f.Close()
	size := int64(MaxBytes) // of a pipe: not known
	if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
		size = st.Size()
	}
	p, err := read(bufio.NewReaderSize(f, 1<<16), size)
	if err != nil {
		return nil, withName(path, err)
	}
	return p, nil
}

// withName begins an error with the file's name, once.
func withName(path string, err error) error {
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Marshal makes the content of a saved profile file.
func Marshal(p *Profile) ([]byte, error) {
	var b bytes.Buffer
	if err := p.Save(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Unmarshal reads the content of a saved profile file or JSON text.
func Unmarshal(b []byte) (*Profile, error) {
	return read(bufio.NewReader(bytes.NewReader(b)), int64(len(b)))
}

// tally counts and hashes text on its way.
type tally struct {
	w   io.Writer
	sum hash.Hash
	n   int64
}

func (t *tally) Write(b []byte) (int, error) {
	if t.n += int64(len(b)); t.n > MaxBytes {
		return 0, fmt.Errorf("profile has more than %d bytes of text", MaxBytes)
	}
	t.sum.Write(b)
	return t.w.Write(b)
}

// Save writes the content of a saved profile file. The header holds length and
// checksum of what follows: into a writer that cannot go back, unlike that of
// [Write], the compressed text is held until both are known.
func (p *Profile) Save(w io.Writer) error {
	if err := p.Validate(); err != nil {
		return err
	}
	header := make([]byte, headerBytes)
	copy(header, fileMagic)
	binary.LittleEndian.PutUint16(header[8:], fileVersion)
	file, direct := w.(atomicfile.Patcher)
	var held bytes.Buffer
	body := io.Writer(&held)
	if direct {
		if _, err := w.Write(header); err != nil {
			return err
		}
		body = w
	}
	z, err := zstd.NewWriter(body, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	text := &tally{w: z, sum: sha256.New()}
	if err := errors.Join(jsonx.MarshalWriteLine(text, p), z.Close()); err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(header[12:], uint64(text.n))
	text.sum.Sum(header[20:20])
	if direct {
		return file.Patch(0, header)
	}
	if _, err = w.Write(header); err != nil {
		return err
	}
	_, err = held.WriteTo(w)
	return err
}

// read takes the content of a file of the given size.
func read(r *bufio.Reader, size int64) (*Profile, error) {
	head, err := r.Peek(1024)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if isJSON(head) {
		return Decode(r)
	}
	head = head[:min(len(head), headerBytes)]
	if len(head) == 0 {
		return nil, fmt.Errorf("%w: empty", ErrNotProfile)
	}
	if n := min(len(head), len(fileMagic)); string(head[:n]) != fileMagic[:n] {
		if len(head) > 4 && string(head[1:4]) == "OPM" {
			return nil, fmt.Errorf("%w: line ends were changed on the way (copied as text)", ErrNotProfile)
		}
		return nil, fmt.Errorf("%w: does not begin with its magic number", ErrNotProfile)
	}
	if len(head) < headerBytes {
		return nil, fmt.Errorf("cut off: %d bytes of a header of %d", len(head), headerBytes)
	}
	if v := binary.LittleEndian.Uint16(head[8:]); v != fileVersion {
		return nil, fmt.Errorf("container version %d; this version reads %d", v, fileVersion)
	}
	length := binary.LittleEndian.Uint64(head[12:])
	if length > MaxBytes {
		return nil, fmt.Errorf("says it holds %d bytes, more than %d", length, MaxBytes)
	}
	// Profiles shrink to a twentieth or so. A thousandth is a decompression bomb.
	if length > 64<<20 && length > 1000*uint64(size) {
		return nil, fmt.Errorf("says that %d bytes hold %d bytes of text", size, length)
	}
	sum := bytes.Clone(head[20:])
	if _, err := r.Discard(headerBytes); err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(MaxBytes), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	seen := &tally{w: io.Discard, sum: sha256.New()}
	text := io.TeeReader(io.LimitReader(z, int64(length)+1), seen)
	p, wrong := decode(text)
	// Damage explains whatever the decoder did not like.
	if _, err := io.Copy(io.Discard, text); err != nil {
		if uint64(seen.n) == length && bytes.Equal(seen.sum.Sum(nil), sum) {
			return nil, errors.New("damaged: something follows its end")
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("cut off after %d bytes", size)
		}
		return nil, fmt.Errorf("damaged: %w", err)
	}
	if uint64(seen.n) != length {
		return nil, fmt.Errorf("damaged: holds %d bytes of text, says %d", seen.n, length)
	}
	if !bytes.Equal(seen.sum.Sum(nil), sum) {
		return nil, errors.New("damaged: the checksum does not match")
	}
	return p, wrong
}

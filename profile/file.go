package profile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/opmeter/opmeter/internal/atomicfile"
	"github.com/opmeter/opmeter/internal/columnar"
	"github.com/opmeter/opmeter/internal/jsonx"
)

// Extension is the usual ending of saved profile files.
const Extension = ".opmeter"

// A saved profile is a header of 64 bytes, a head for lists, and one Zstandard
// frame with the body:
//
//	0   8  magic: 0x89 'O' 'P' 'M' CR LF 0x1A LF (shows text-mode damage)
//	8   2  version of the container, little-endian like all numbers, 2
//	10  2  reserved, 0
//	12  4  length of the head
//	16  4  CRC-32C of the head
//	20  4  reserved, 0
//	24  8  length of the body before compression
//	32 32  SHA-256 of the body before compression
//	64     the head, JSON text ([Head])
//	...    the body, compressed
//
// The body is the length of a JSON text (8 bytes), that text, and the columns that
// it lists, one after the other (package columnar).
const (
	fileMagic   = "\x89OPM\r\n\x1a\n"
	fileVersion = 2
	headerBytes = 64
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

// Read reads a saved profile, a profile as JSON text, or the journal of a run that
// was killed, whose profile says where it ends. A file that is cut or
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

// body is the JSON text of a saved profile.
type body struct {
	Profile *Profile       `json:"profile"`
	Columns []columnar.Ref `json:"columns"`
}

// Save writes the content of a saved profile file. The header holds length and
// checksum of what follows: into a writer that cannot go back, unlike that of
// [Write], the compressed text is held until both are known.
func (p *Profile) Save(w io.Writer) error {
	if err := p.Validate(); err != nil {
		return err
	}
	head, err := jsonx.Marshal(HeadOf(p))
	if err != nil {
		return err
	}
	if len(head) > maxHead {
		return fmt.Errorf("the head has %d bytes, more than %d", len(head), maxHead)
	}
	begin := make([]byte, headerBytes, headerBytes+len(head))
	copy(begin, fileMagic)
	binary.LittleEndian.PutUint16(begin[8:], fileVersion)
	binary.LittleEndian.PutUint32(begin[12:], uint32(len(head)))
	binary.LittleEndian.PutUint32(begin[16:], crc32.Checksum(head, castagnoli))
	begin = append(begin, head...)
	file, direct := w.(atomicfile.Patcher)
	var held bytes.Buffer
	rest := io.Writer(&held)
	if direct {
		if _, err := w.Write(begin); err != nil {
			return err
		}
		rest = w
	}
	length, sum, err := p.pack(rest)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(begin[24:], uint64(length))
	copy(begin[32:], sum)
	if direct {
		return file.Patch(0, begin[:headerBytes])
	}
	if _, err = w.Write(begin); err != nil {
		return err
	}
	_, err = held.WriteTo(w)
	return err
}

// pack writes the compressed body and returns its length before compression and
// its checksum.
func (p *Profile) pack(w io.Writer) (length int64, sum []byte, err error) {
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return 0, nil, err
	}
	q := p.Detached()
	columns := q.split()
	text, err := jsonx.Marshal(&body{q, columns.Refs})
	if err != nil {
		return 0, nil, err
	}
	out := &tally{w: z, sum: sha256.New()}
	_, err = out.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	if err == nil {
		_, err = out.Write(text)
	}
	if err == nil {
		err = columns.WriteTo(out)
	}
	if err := errors.Join(err, z.Close()); err != nil {
		return 0, nil, err
	}
	return out.n, out.sum.Sum(nil), nil
}

// read takes the content of a file of the given size.
func read(r *bufio.Reader, size int64) (*Profile, error) {
	begin, err := r.Peek(1024)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if isJSON(begin) {
		if name, _, ok := jsonx.FirstString(begin); ok && name == "journal" {
			return readJournal(r)
		}
		return Decode(r)
	}
	h, err := parseHeader(begin)
	if err != nil {
		return nil, err
	}
	// Profiles shrink to a twentieth or so. A thousandth is a decompression bomb.
	if h.length > 64<<20 && h.length > 1000*uint64(size) {
		return nil, fmt.Errorf("says that %d bytes hold %d bytes of text", size, h.length)
	}
	if _, err := r.Discard(headerBytes); err != nil {
		return nil, err
	}
	head := make([]byte, h.head)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, fmt.Errorf("cut off within its head of %d bytes", h.head)
	}
	if _, err := h.decode(head); err != nil {
		return nil, err
	}
	return h.body(r, size)
}

// body reads what follows the head.
func (h *header) body(r io.Reader, size int64) (*Profile, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(MaxBytes), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	seen := &tally{w: io.Discard, sum: sha256.New()}
	text := io.TeeReader(io.LimitReader(z, int64(h.length)+1), seen)
	p, wrong := unpack(text, h.length)
	// Damage explains whatever the decoder did not like.
	if _, err := io.Copy(io.Discard, text); err != nil {
		if uint64(seen.n) == h.length && bytes.Equal(seen.sum.Sum(nil), h.sum) {
			return nil, errors.New("damaged: something follows its end")
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("cut off after %d bytes", size)
		}
		return nil, fmt.Errorf("damaged: %w", err)
	}
	if uint64(seen.n) != h.length {
		return nil, fmt.Errorf("damaged: holds %d bytes of text, says %d", seen.n, h.length)
	}
	if !bytes.Equal(seen.sum.Sum(nil), h.sum) {
		return nil, errors.New("damaged: the checksum does not match")
	}
	return p, wrong
}

// unpack reads a body of the given length.
func unpack(r io.Reader, length uint64) (*Profile, error) {
	var n [8]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint64(n[:])
	if size > length-8 {
		return nil, fmt.Errorf("says that %d of its %d bytes are text", size, length)
	}
	b := body{Profile: &Profile{}}
	text := &io.LimitedReader{R: r, N: int64(size)}
	if err := jsonx.UnmarshalRead(text, &b); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if b.Profile == nil || b.Profile.Schema != SchemaV1 {
		return nil, fmt.Errorf("profile: schema is not %q", SchemaV1)
	}
	var entries uint64
	for _, ref := range b.Columns {
		if ref.Length < 0 || uint64(ref.Length) > length {
			return nil, fmt.Errorf("column %v says it has %d entries", ref.Path, ref.Length)
		}
		entries += uint64(ref.Length) * uint64(ref.Type.Width())
	}
	if entries != length-8-size {
		return nil, fmt.Errorf("columns say they have %d bytes, there are %d", entries, length-8-size)
	}
	if err := b.Profile.join(b.Columns, bufio.NewReaderSize(r, 1<<16)); err != nil {
		return nil, err
	}
	if err := b.Profile.Validate(); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if b.Profile.Layers == nil {
		b.Profile.Layers = []Layer{} // as written: the list is always there
	}
	return b.Profile, nil
}

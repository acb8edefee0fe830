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

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/columnar"
	"github.com/opmeter/opmeter/internal/base/jsonx"
)

// Extension is the usual ending of saved profile files.
const Extension = ".opmeter"

// A saved profile is a header of 64 bytes, a head for lists, and one Zstandard
// frame with the body:
//
//	0   8  magic: 0x89 'O' 'P' 'M' CR LF 0x1A LF (shows text-mode damage)
//	8   2  version of the container, little-endian like all numbers, 2
//	10  2  length of the head
//	12  4  CRC-32C of header and head without these four bytes
//	16  8  length of the body in the file
//	24  8  length of the body before compression
//	32 32  SHA-256 of the body in the file
//	64     the head, JSON text ([Head])
//	...    the body, compressed
//
// The body is the length of a JSON text (8 bytes), that text, and the columns that
// it lists, one after the other (package columnar).
const (
	fileMagic   = "\x89OPM\r\n\x1a\n"
	fileVersion = 2
	headerBytes = 64
	sumAt       = 12
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
	p, err := read(bufio.NewReaderSize(f, 1<<16))
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
	return read(bufio.NewReader(bytes.NewReader(b)))
}

// bounds fails when more is written than a profile may hold.
type bounds struct {
	w io.Writer
	n int64
}

func (t *bounds) Write(b []byte) (int, error) {
	if t.n += int64(len(b)); t.n > MaxBytes {
		return 0, fmt.Errorf("profile has more than %d bytes", MaxBytes)
	}
	return t.w.Write(b)
}

// tally counts and hashes what is written.
type tally struct {
	sum hash.Hash
	n   int64
}

func (t *tally) Write(b []byte) (int, error) {
	t.n += int64(len(b))
	return t.sum.Write(b)
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
	_, head := fitHead(p)
	if head == nil {
		return errors.New("the head cannot be written")
	}
	begin := make([]byte, headerBytes, headerBytes+len(head))
	copy(begin, fileMagic)
	binary.LittleEndian.PutUint16(begin[8:], fileVersion)
	binary.LittleEndian.PutUint16(begin[10:], uint16(len(head)))
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
	packed := &tally{sum: sha256.New()}
	length, err := p.pack(io.MultiWriter(rest, packed))
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(begin[16:], uint64(packed.n))
	binary.LittleEndian.PutUint64(begin[24:], uint64(length))
	copy(begin[32:headerBytes], packed.sum.Sum(nil))
	binary.LittleEndian.PutUint32(begin[sumAt:], headSum(begin))
	if direct {
		return file.Patch(0, begin[:headerBytes])
	}
	if _, err = w.Write(begin); err != nil {
		return err
	}
	_, err = held.WriteTo(w)
	return err
}

// pack writes the compressed body and returns its length before compression.
func (p *Profile) pack(w io.Writer) (length int64, err error) {
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return 0, err
	}
	q := p.Detached()
	columns := q.split()
	text, err := jsonx.Marshal(&body{q, columns.Refs})
	out := &bounds{w: z}
	if err == nil {
		_, err = out.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	}
	if err == nil {
		_, err = out.Write(text)
	}
	if err == nil {
		_, err = columns.WriteTo(out)
	}
	return out.n, errors.Join(err, z.Close())
}

// read takes the content of a file.
func read(r *bufio.Reader) (*Profile, error) {
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
	head := make([]byte, headerBytes+h.head)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, fmt.Errorf("cut off within its head of %d bytes", h.head)
	}
	if _, err := h.decode(head); err != nil {
		return nil, err
	}
	return h.body(r)
}

// Profiles shrink to a twentieth or so, columns of one figure to less. What is said
// to shrink to a thousandth is a decompression bomb, unless it is small anyhow.
const (
	bombRatio  = 1000
	smallBody  = 64 << 20
	smallText  = 16 << 20 // text takes many times its size when it is decoded
	headOfBody = 8        // bytes of the length of the text
)

// body reads what follows the head.
func (h *header) body(r *bufio.Reader) (*Profile, error) {
	if h.length > smallBody && h.length/bombRatio > h.packed {
		return nil, fmt.Errorf("says that %d bytes hold %d", h.packed, h.length)
	}
	seen := &tally{sum: sha256.New()}
	packed := io.TeeReader(io.LimitReader(r, int64(h.packed)), seen)
	p, wrong := h.decompress(packed)
	// Damage explains whatever the decoder did not like.
	if _, err := io.Copy(io.Discard, packed); err != nil {
		return nil, err
	}
	if uint64(seen.n) < h.packed {
		return nil, fmt.Errorf("cut off: %d bytes of a body of %d", seen.n, h.packed)
	}
	if !bytes.Equal(seen.sum.Sum(nil), h.sum) {
		return nil, errors.New("damaged: the checksum does not match")
	}
	if _, err := r.Peek(1); err == nil {
		return nil, errors.New("damaged: something follows its end")
	}
	return p, wrong
}

// decompress reads the body out of its frame and nothing beyond.
func (h *header) decompress(r io.Reader) (*Profile, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(MaxBytes), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, err
	}
	defer z.Close() // waits for what reads ahead
	p, err := h.unpack(io.LimitReader(z, int64(h.length)))
	if err != nil {
		return nil, err
	}
	if n, err := io.ReadFull(z, make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("holds more than the %d bytes that it says", h.length)
	}
	return p, nil
}

// unpack reads the body.
func (h *header) unpack(r io.Reader) (*Profile, error) {
	var n [headOfBody]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint64(n[:])
	length := h.length - headOfBody // there were as many
	if size > length {
		return nil, fmt.Errorf("says that %d of its %d bytes are text", size, length)
	}
	if size > smallText && size/bombRatio > h.packed {
		return nil, fmt.Errorf("says that %d bytes hold %d bytes of text", h.packed, size)
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
	if entries != length-size {
		return nil, fmt.Errorf("columns say they have %d bytes, there are %d", entries, length-size)
	}
	if err := b.Profile.join(b.Columns, bufio.NewReaderSize(r, 1<<16)); err != nil {
		return nil, err
	}
	b.Profile.currentBounds()
	if err := b.Profile.Validate(); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	b.Profile.complete()
	return b.Profile, nil
}

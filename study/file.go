package study

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/filelock"
	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/lines"
	"github.com/opmeter/opmeter/profile"
)

// V1 names the file format. Each record is a line with its length in bytes and its checksum
// (CRC-32C), both as eight hexadecimal digits, and its JSON. The first record names the format
// and the model.
const V1 = "opmeter/study/v1"

// Extension is the usual file name extension of studies.
const Extension = ".study"

// Limits of reading.
const (
	maxRecord = 64 << 20
	maxFile   = 1 << 30
	prefixLen = 18 // length, blank, checksum, blank
)

// ErrNotStudy reports that a file is not a study.
var ErrNotStudy = errors.New("is not an opmeter study")

// BusyError reports that another process works on the study.
type BusyError struct {
	Path string
	// PID is the other process, 0 where unknown.
	PID int
}

// Error names the file and the process.
func (e *BusyError) Error() string {
	if e.PID == 0 {
		return e.Path + ": another process works on this study"
	}
	return fmt.Sprintf("%s: process %d works on this study", e.Path, e.PID)
}

// ModelMismatchError reports that a study belongs to another model.
type ModelMismatchError struct {
	Path string
	// Of is the model of the study, Want the given one.
	Of, Want profile.Model
	// Layers says that the model is the same, but that its layers were identified differently.
	Layers bool
}

// Error names both models.
func (e *ModelMismatchError) Error() string {
	if e.Layers {
		return fmt.Sprintf("%s: the study was made by a version that identified the layers of %q differently", e.Path, e.Of.Name)
	}
	return fmt.Sprintf("%s: the study is of another model, %q with hash %.12s, not of %q with hash %.12s", e.Path, e.Of.Name, e.Of.SHA256, e.Want.Name, e.Want.SHA256)
}

// Damage is a part of a file that could not be read and was skipped.
type Damage struct {
	Offset, Bytes int64
	// Tail marks the end of the file, as left by a process that was killed while writing. It is
	// cut off when the study is opened to append.
	Tail bool
	// Err is what is wrong with a complete record.
	Err error
}

// String describes the damage.
func (d Damage) String() string {
	switch {
	case d.Tail:
		return fmt.Sprintf("the last record is incomplete (%d bytes at offset %d)", d.Bytes, d.Offset)
	case d.Err != nil:
		return fmt.Sprintf("a record of %d bytes at offset %d is invalid: %v", d.Bytes, d.Offset, d.Err)
	}
	return fmt.Sprintf("%d bytes at offset %d are damaged", d.Bytes, d.Offset)
}

// File is a study that is open to append. It is safe for concurrent use, by one process at a
// time.
type File struct {
	path   string
	mu     sync.Mutex
	f      *os.File
	size   int64 // of the complete records
	s      *state
	damage []Damage
	broken error
}

// Open opens a study to append. A missing or empty file, or one with only an incomplete first
// record, is started with of; nil never creates one. An existing study must belong to the same
// model with the same layers, else the error is a [ModelMismatchError]. It is a [BusyError] where
// another process has the study open.
func Open(path string, of *Study) (*File, error) {
	if st, err := os.Stat(path); err == nil {
		if kind := infile.Kind(st.Mode()); kind != "" {
			return nil, &fs.PathError{Op: "open", Path: path, Err: &infile.KindError{Kind: kind}}
		}
	}
	flags := os.O_RDWR | os.O_APPEND
	if of != nil {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, err
	}
	x := &File{path: path, f: f}
	if err := x.open(of); err != nil {
		_ = f.Close()
		return nil, err
	}
	return x, nil
}

func (x *File) open(of *Study) error {
	if err := x.lock(); errors.Is(err, filelock.ErrHeld) {
		return &BusyError{Path: x.path, PID: owner(x.path)}
	} else if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%s: %w", x.path, err)
	}
	var err error
	x.s, x.size, x.damage, err = readRecords(x.f)
	switch {
	case errors.Is(err, errBlank) && of != nil:
		if err := x.f.Truncate(0); err != nil {
			return err
		}
		x.s, x.size = newState(&begin{Study: V1, Created: of.Created, Model: of.Model, Layers: of.Layers}), 0
		if err := x.writeRecord(&stored{Begin: &begin{Study: V1, Created: of.Created, Model: of.Model, Layers: of.Layers}}); err != nil {
			return err
		}
	case errors.Is(err, errBlank):
		return fmt.Errorf("%s: %w", x.path, ErrNotStudy)
	case err != nil:
		return fmt.Errorf("%s: %w", x.path, err)
	}
	if of != nil {
		if err := x.s.checkModel(x.path, of); err != nil {
			return err
		}
	}
	if err := x.f.Truncate(x.size); err != nil {
		return err
	}
	return x.writeRecord(&stored{Opened: &opened{PID: os.Getpid(), At: time.Now().UTC().Truncate(time.Second)}})
}

// lock takes the lock. It waits for one that is held briefly: a killed process that is just
// ending, or one that is being started and still has the open files of its parent.
func (x *File) lock() (err error) {
	for range 10 {
		if err = filelock.Try(x.f); !errors.Is(err, filelock.ErrHeld) {
			return err
		}
		time.Sleep(25 * time.Millisecond)
	}
	return err
}

// checkModel refuses another model and other layers.
func (s *state) checkModel(path string, of *Study) error {
	e := &ModelMismatchError{Path: path, Of: s.Model, Want: of.Model}
	if !SameModel(&s.Model, &of.Model) {
		return e
	}
	same := func(a, b Layer) bool {
		return a.Graph == b.Graph && a.Node == b.Node && a.Input == b.Input && a.Rows == b.Rows && a.Cols == b.Cols
	}
	if !slices.EqualFunc(s.Layers, of.Layers, same) {
		e.Layers = true
		return e
	}
	return nil
}

// SameModel reports whether two descriptions are of one model, by the hashes that both have: of
// the file, and of the constants including external ones.
func SameModel(a, b *profile.Model) bool {
	for _, h := range [][2]string{{a.SHA256, b.SHA256}, {a.WeightsSHA256, b.WeightsSHA256}} {
		if h[0] != "" && h[1] != "" && h[0] != h[1] {
			return false
		}
	}
	return a.SHA256 != "" && a.SHA256 == b.SHA256 || a.WeightsSHA256 != "" && a.WeightsSHA256 == b.WeightsSHA256 && a.StructureSHA256 == b.StructureSHA256
}

// owner returns the process that opened a study last, 0 if unknown.
func owner(path string) int {
	f, _, err := infile.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	s, _, _, err := readRecords(f)
	if err != nil {
		return 0
	}
	return s.owner
}

// Study returns the current content. It must not be changed, and must not be read while a record
// is appended.
func (x *File) Study() *Study { return &x.s.Study }

// Path is the file.
func (x *File) Path() string { return x.path }

// Damage lists what could not be read when the study was opened.
func (x *File) Damage() []Damage { return x.damage }

// Append adds a record. When it returns without an error, the record survives a crash of the
// process and of the system. A record that does not fit is refused and changes nothing.
func (x *File) Append(r Record) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken != nil {
		return x.broken
	}
	s := &stored{Record: r}
	if err := x.s.apply(s); err != nil {
		return fmt.Errorf("%s: %w", x.path, err)
	}
	return x.writeRecord(s)
}

// writeRecord writes one record with a single system call.
func (x *File) writeRecord(s *stored) error {
	body, err := jsonx.Marshal(s)
	if err != nil {
		return fmt.Errorf("%s: %w", x.path, err)
	}
	if len(body) > maxRecord || x.size+int64(len(body)) > maxFile {
		return fmt.Errorf("%s: %w", x.path, &infile.SizeError{Most: maxFile})
	}
	text := frame(body)
	_, err = x.f.Write(text)
	if err == nil {
		err = x.f.Sync()
	}
	if err != nil {
		// A partial record in the middle would be taken for damage.
		if cut := x.f.Truncate(x.size); cut != nil {
			x.broken = fmt.Errorf("%s: %w", x.path, err)
		}
		return fmt.Errorf("%s: %w", x.path, err)
	}
	x.size += int64(len(text))
	return nil
}

// Close closes the study. Everything appended is already in the file.
func (x *File) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken == nil {
		x.broken = fmt.Errorf("%s: %w", x.path, fs.ErrClosed)
	}
	return x.f.Close()
}

// Read reads a study that another process may be working on, and lists what could not be read.
func Read(path string) (*Study, []Damage, error) {
	f, st, err := infile.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if st.Size() > maxFile {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: &infile.SizeError{Most: maxFile}}
	}
	s, _, damage, err := readRecords(f)
	if errors.Is(err, errBlank) {
		err = ErrNotStudy
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return &s.Study, damage, nil
}

// castagnoli is the checksum polynomial with hardware support.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame encodes a record as a line of the file.
func frame(body []byte) []byte {
	out := fmt.Appendf(make([]byte, 0, len(body)+prefixLen+1), "%08x %08x ", len(body), crc32.Checksum(body, castagnoli))
	return append(append(out, body...), '\n')
}

// unframe returns the record of a line, nil where length or checksum are wrong.
func unframe(line []byte) []byte {
	if len(line) < prefixLen || line[8] != ' ' || line[17] != ' ' {
		return nil
	}
	n, err := strconv.ParseUint(string(line[:8]), 16, 32)
	sum, err2 := strconv.ParseUint(string(line[9:17]), 16, 32)
	body := line[prefixLen:]
	if err != nil || err2 != nil || n != uint64(len(body)) || crc32.Checksum(body, castagnoli) != uint32(sum) {
		return nil
	}
	return body
}

func newState(b *begin) *state {
	return &state{Study: Study{Created: b.Created, Model: b.Model, Layers: b.Layers}, speeds: map[string]map[pointKey]int{}, losses: map[string]map[pointKey]int{}}
}

// errBlank reports that nothing was written yet, or only a part of the first record.
var errBlank = errors.New("is empty")

// isHeadPrefix reports whether a text is the beginning of a file's first record.
func isHeadPrefix(text []byte) bool {
	const first = `{"begin":{"study":"` + V1 + `"`
	if len(text) <= prefixLen {
		return !slices.ContainsFunc(text, func(c byte) bool { return !bytes.ContainsRune([]byte("0123456789abcdef "), rune(c)) })
	}
	text = text[prefixLen:]
	n := min(len(text), len(first))
	return string(text[:n]) == first[:n]
}

// readRecords reads all complete records. size is where they end.
func readRecords(r io.Reader) (s *state, size int64, damage []Damage, err error) {
	br := bufio.NewReaderSize(io.LimitReader(r, maxFile+1), 1<<16)
	at := int64(0)
	for {
		line, err := lines.Read(br, maxRecord+prefixLen)
		switch {
		case errors.Is(err, io.EOF) && s == nil && isHeadPrefix(line):
			return nil, 0, nil, errBlank
		case errors.Is(err, io.EOF) && s == nil:
			return nil, 0, nil, ErrNotStudy
		case errors.Is(err, io.EOF):
			if len(line) > 0 {
				damage = append(damage, Damage{Offset: at, Bytes: int64(len(line)), Tail: true})
			}
			return s, at, damage, nil
		case err != nil && s == nil:
			return nil, 0, nil, ErrNotStudy
		case err != nil:
			return nil, 0, nil, fmt.Errorf("record at %d: %w", at, err)
		}
		n := int64(len(line)) + 1
		if s == nil {
			if s, err = parseHead(line); err != nil {
				return nil, 0, nil, err
			}
		} else if err := s.applyLine(line); err != nil {
			d := Damage{Offset: at, Bytes: n}
			if !errors.Is(err, errDamaged) {
				d.Err = err
			}
			if k := len(damage); k > 0 && d.Err == nil && damage[k-1].Err == nil && damage[k-1].Offset+damage[k-1].Bytes == at {
				damage[k-1].Bytes += n
			} else if k < maxDamage {
				damage = append(damage, d)
			}
		}
		at += n
	}
}

// maxDamage bounds the list of damaged parts.
const maxDamage = 1000

// parseHead returns the state that the first record starts.
func parseHead(line []byte) (*state, error) {
	body := unframe(line)
	var r stored
	if body == nil || jsonx.Unmarshal(body, &r) != nil || r.Begin == nil {
		return nil, ErrNotStudy
	}
	if r.Begin.Study != V1 {
		return nil, fmt.Errorf("unsupported study format %q, this version reads %q", r.Begin.Study, V1)
	}
	for i := range r.Begin.Layers {
		if l := &r.Begin.Layers[i]; l.Rows < 0 || l.Cols < 0 || l.Rows > 0 && l.Cols > int(1<<40)/l.Rows {
			return nil, fmt.Errorf("layer %d: %d rows and %d columns", i, l.Rows, l.Cols)
		}
	}
	return newState(r.Begin), nil
}

// errDamaged reports that a line is not a record.
var errDamaged = errors.New("is damaged")

// applyLine applies the record of a line.
func (s *state) applyLine(line []byte) error {
	body := unframe(line)
	if body == nil {
		return errDamaged
	}
	var r stored
	if err := jsonx.Unmarshal(body, &r); err != nil {
		return err
	}
	return s.apply(&r)
}

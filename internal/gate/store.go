package gate

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/filelock"
	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/lines"
	"github.com/opmeter/opmeter/profile"
)

// Names within the folder of a store.
const (
	Folder        = ".opmeter"
	BaselineDir   = "baselines"
	IndexFile     = "index.jsonl"
	IgnoreFile    = "ignore.jsonl"
	PolicyFile    = "gate.yaml"
	attributes    = ".gitattributes"
	attributeText = "# Two branches append to these files: keep the lines of both.\n*.jsonl merge=union\n"
)

// Limits of the files of a store.
const (
	maxLine  = 1 << 20
	maxFile  = 256 << 20
	maxNotes = 10
)

// Kinds of entries.
const (
	Accepted = "accepted" // a baseline
	Ran      = "run"      // figures of a commit, for the history
)

// Record is a line of the index: the figures of one model on one target at one commit.
type Record struct {
	Kind string `json:"kind"`
	// Time is RFC 3339 in UTC.
	Time   string `json:"time"`
	Commit string `json:"commit,omitzero"`
	// Dirty says that the working tree differed from the commit.
	Dirty bool `json:"dirty,omitzero"`
	// Policy is the hash of the policy.
	Policy string `json:"policy,omitzero"`
	// Model is the file from the root of the repository, SHA256 its hash and Blob its object in git.
	// WeightsSHA256 is the hash of its weights, those in files beside it included.
	Model         string `json:"model"`
	SHA256        string `json:"sha256,omitzero"`
	WeightsSHA256 string `json:"weights_sha256,omitzero"`
	Blob          string `json:"blob,omitzero"`
	Target        string `json:"target"`
	Machine       string `json:"machine"`
	Settings      string `json:"settings"`
	// Version of opmeter.
	Version string `json:"version,omitzero"`
	// File is the saved profile of an accepted baseline from the folder of the index, FileSHA256
	// its hash.
	File       string `json:"file,omitzero"`
	FileSHA256 string `json:"file_sha256,omitzero"`
	// Figures are the exact figures by key, Outputs is the hash of the outputs.
	Figures map[string]float64 `json:"figures,omitzero"`
	Outputs string             `json:"outputs,omitzero"`
	// Measured are figures with noise, which compare on the machine On only.
	Measured map[string]float64 `json:"measured,omitzero"`
	On       string             `json:"on,omitzero"`
	Verdict  Verdict            `json:"verdict,omitzero"`
	Reason   string             `json:"reason,omitzero"`
}

// same reports whether two records are about the same thing.
func (r *Record) same(model, target, settings string) bool {
	return r.Model == model && r.Target == target && r.Settings == settings
}

func (r *Record) check() error {
	switch {
	case r.Kind != Accepted && r.Kind != Ran:
		return fmt.Errorf("kind is %q, want %s or %s", r.Kind, Accepted, Ran)
	case r.Model == "" || r.Target == "":
		return errors.New("has no model or target")
	}
	if _, err := time.Parse(time.RFC3339, r.Time); err != nil {
		return errors.New("time is not RFC 3339")
	}
	if r.File != "" && !filepath.IsLocal(filepath.FromSlash(r.File)) {
		return errors.New("file lies outside the folder")
	}
	for k, v := range r.Figures {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("figure %s is not a number", k)
		}
	}
	return nil
}

// Ignore acknowledges a known change of a figure.
type Ignore struct {
	Figure string `json:"figure"`
	// Model and Target are patterns as in a policy.
	Model  string `json:"model,omitzero"`
	Target string `json:"target,omitzero"`
	// Until is the last day on which it holds, in UTC.
	Until  string `json:"until"`
	Reason string `json:"reason"`
	Time   string `json:"time,omitzero"`
}

func (g *Ignore) check() error {
	if _, err := time.Parse(time.DateOnly, g.Until); err != nil {
		return fmt.Errorf("until is %q, want a date such as 2030-12-31", g.Until)
	}
	if g.Figure == "" || g.Reason == "" {
		return errors.New("has no figure or reason")
	}
	return nil
}

// holds reports whether it holds on a day.
func (g *Ignore) holds(now time.Time) bool {
	end, err := time.Parse(time.DateOnly, g.Until)
	return err == nil && now.UTC().Before(end.AddDate(0, 0, 1))
}

func (g *Ignore) about(model, target, figure string) bool {
	return g.Figure == figure && Matches(g.Model, model) && Matches(g.Target, target)
}

// Store is a folder with baselines.
type Store struct {
	Dir string
	// Records and Ignores are in the order of the files.
	Records []Record
	Ignores []Ignore
	// Notes name the lines that could not be read.
	Notes []string
}

// Open reads a folder; a missing one is empty. Damaged lines are left out and noted: a process that
// was killed leaves an incomplete one at the end.
func Open(dir string) (*Store, error) {
	s := &Store{Dir: dir}
	if err := readLines(s, filepath.Join(BaselineDir, IndexFile), func(r *Record) error {
		s.Records = append(s.Records, *r)
		return nil
	}); err != nil {
		return nil, err
	}
	err := readLines(s, IgnoreFile, func(g *Ignore) error {
		s.Ignores = append(s.Ignores, *g)
		return nil
	})
	return s, err
}

// checked is a line that says what is wrong with it.
type checked[T any] interface {
	*T
	check() error
}

// readLines reads the lines of a file.
func readLines[T any, P checked[T]](s *Store, name string, add func(P) error) error {
	f, st, err := infile.Open(filepath.Join(s.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if st.Size() > maxFile {
		return &fs.PathError{Op: "read", Path: f.Name(), Err: &infile.SizeError{Most: maxFile}}
	}
	bad := 0
	note := func(line int, format string, args ...any) {
		if bad++; bad <= maxNotes {
			s.Notes = append(s.Notes, fmt.Sprintf("%s:%d: left out: %s", filepath.ToSlash(name), line, fmt.Sprintf(format, args...)))
		}
	}
	r := bufio.NewReader(io.LimitReader(f, maxFile))
	for n := 1; ; n++ {
		line, err := lines.Read(r, maxLine)
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return fmt.Errorf("%s:%d: %w", f.Name(), n, err)
		}
		line = bytes.TrimSpace(line)
		v := P(new(T))
		switch {
		case len(line) == 0:
		case jsonx.Unmarshal(line, v) != nil && end:
			note(n, "incomplete, the process that wrote it was killed")
		case jsonx.Unmarshal(line, v) != nil:
			note(n, "not a record: %q", line[:min(len(line), 60)])
		default:
			if err := v.check(); err != nil {
				note(n, "%v", err)
			} else if err := add(v); err != nil {
				return err
			}
		}
		if end {
			if bad > maxNotes {
				s.Notes = append(s.Notes, fmt.Sprintf("%s: %d more damaged lines left out", filepath.ToSlash(name), bad-maxNotes))
			}
			return nil
		}
	}
}

// Last returns the last record of a kind about a model, nil for none.
func (s *Store) Last(kind, model, target, settings string) *Record {
	for i := len(s.Records) - 1; i >= 0; i-- {
		if r := &s.Records[i]; r.Kind == kind && r.same(model, target, settings) {
			return r
		}
	}
	return nil
}

// Profile returns the saved profile of a record. The note says why it is absent.
func (s *Store) Profile(r *Record) (p *profile.Profile, note string) {
	if r.File == "" {
		return nil, ""
	}
	path := filepath.Join(s.Dir, BaselineDir, filepath.FromSlash(r.File))
	data, err := infile.Read(path, maxFile)
	if err != nil {
		return nil, fmt.Sprintf("%s: not read: %v", r.File, err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != r.FileSHA256 {
		return nil, fmt.Sprintf("%s is not the file that the index names: the figures are those of the index", r.File)
	}
	if p, err = profile.Unmarshal(data); err != nil {
		return nil, fmt.Sprintf("%s: not read: %v", r.File, err)
	}
	return p, ""
}

// Add appends records to the index. Another process that appends waits.
func (s *Store) Add(records ...Record) error {
	return appendLines(filepath.Join(s.Dir, BaselineDir, IndexFile), records, nil)
}

// Accept saves profiles and appends their records. A process that is killed in between leaves the
// old index: its figures hold, and the new file does not have the hash that the index names.
func (s *Store) Accept(records []Record, profiles []*profile.Profile) error {
	dir := filepath.Join(s.Dir, BaselineDir)
	return appendLines(filepath.Join(dir, IndexFile), records, func() error {
		for i, p := range profiles {
			r := &records[i]
			r.File = strings.Join([]string{Slug(r.Model), Slug(r.Machine), Slug(r.Settings)}, "/") + profile.Extension
			path := filepath.Join(dir, filepath.FromSlash(r.File))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			b, err := profile.Marshal(p)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(b)
			r.FileSHA256 = hex.EncodeToString(sum[:])
			if err := atomicfile.Write(path, b); err != nil {
				return err
			}
		}
		return nil
	})
}

// Ignore appends an acknowledgement.
func (s *Store) Ignore(g Ignore) error {
	if err := g.check(); err != nil {
		return err
	}
	return appendLines(filepath.Join(s.Dir, IgnoreFile), []Ignore{g}, nil)
}

// Init makes the folder and tells git how to merge its files.
func (s *Store) Init() error {
	if err := os.MkdirAll(filepath.Join(s.Dir, BaselineDir), 0o755); err != nil {
		return err
	}
	path := filepath.Join(s.Dir, attributes)
	if _, err := os.Lstat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.Write(path, []byte(attributeText))
}

// appendLines appends values to a file, each as a line, while no other process does. before runs
// under the lock. The lines are written at once and reach the disk before it returns. An incomplete
// line at the end stays and is closed, so that nothing is lost.
func appendLines[T any](path string, values []T, before func() error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if st, err := os.Lstat(path); err == nil {
		if kind := infile.Kind(st.Mode()); kind != "" {
			return &fs.PathError{Op: "write", Path: path, Err: &infile.KindError{Kind: kind}}
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // releases the lock
	// Without locks the single write still keeps lines apart on most file systems.
	if err := filelock.Wait(f); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	var b []byte
	if n := st.Size(); n > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, n-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			b = append(b, '\n')
		}
	}
	for i := range values {
		line, err := jsonx.Marshal(&values[i])
		if err != nil {
			return err
		}
		if len(line) > maxLine {
			return fmt.Errorf("%s: a record of %d bytes is longer than %d", path, len(line), maxLine)
		}
		b = append(append(b, line...), '\n')
	}
	if _, err := f.Write(b); err != nil {
		return errors.Join(err, f.Truncate(st.Size())) // a full disk
	}
	return f.Sync()
}

// Slug makes a name that every file system takes. Different texts get different names.
func Slug(s string) string {
	const most = 60
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, s)
	out = strings.Trim(out, ".-")
	if out == s && len(s) <= most && !slices.Contains(reserved, strings.ToLower(strings.SplitN(s, ".", 2)[0])) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return strings.TrimPrefix(out[:min(len(out), most)]+"-"+hex.EncodeToString(sum[:4]), "-")
}

// reserved are names that Windows keeps for devices.
var reserved = []string{"con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9", ""}

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
	Folder      = ".opmeter"
	BaselineDir = "baselines"
	IndexFile   = "index.jsonl"
	IgnoreFile  = "ignore.jsonl"
	PolicyFile  = "gate.yaml"
	attributes  = ".gitattributes"
)

// attributeLines tell git how to merge the files of a store, and not to show lines of profiles.
var attributeLines = []string{
	"# Two branches append to these files: keep the lines of both.",
	"*.jsonl merge=union",
	"# Profiles are compressed: git neither shows, merges nor converts lines of them.",
	"*.opmeter -diff -merge -text",
}

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
	// Replaces are the IDs of the accepted records that this one replaces: two branches that accept
	// a model replace the same one, which tells their order apart from the order of the lines.
	Replaces []string `json:"replaces,omitzero"`
	// Removed says that the model was accepted to be absent.
	Removed bool `json:"removed,omitzero"`
}

// ID tells records apart.
func (r *Record) ID() string {
	b, err := jsonx.Marshal(r)
	if err != nil {
		b = []byte(r.Time + r.Model + r.Target)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
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
	// damaged has these lines of the index: they may name profiles.
	damaged strings.Builder
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
	note := func(line int, damaged []byte, format string, args ...any) {
		s.damaged.Write(damaged)
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
			note(n, line, "incomplete, the process that wrote it was killed")
		case jsonx.Unmarshal(line, v) != nil:
			note(n, line, "not a record: %q", line[:min(len(line), 60)])
		default:
			if err := v.check(); err != nil {
				note(n, line, "%v", err)
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

// Heads returns the accepted records about a model that no other one replaces, in the order of the
// lines: several where branches were merged that each accepted the model.
func (s *Store) Heads(model, target, settings string) []*Record {
	replaced, seen := map[string]bool{}, map[string]bool{}
	for i := range s.Records {
		for _, id := range s.Records[i].Replaces {
			replaced[id] = true
		}
	}
	var out []*Record
	for i := range s.Records {
		r := &s.Records[i]
		if r.Kind != Accepted || !r.same(model, target, settings) {
			continue
		}
		if id := r.ID(); !replaced[id] && !seen[id] {
			seen[id] = true
			out = append(out, r)
		}
	}
	return out
}

// Has reports whether a record is in the store.
func (s *Store) Has(r *Record) bool {
	id := r.ID()
	return slices.ContainsFunc(s.Records, func(o Record) bool { return o.ID() == id })
}

// Places lists model, target and settings of the accepted records about models that a function
// accepts, each once.
func (s *Store) Places(about func(model string) bool) (out [][3]string) {
	for i := range s.Records {
		r := &s.Records[i]
		at := [3]string{r.Model, r.Target, r.Settings}
		if r.Kind == Accepted && about(r.Model) && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}

// Profile returns the saved profile of a record. The note says why it is absent.
func (s *Store) Profile(r *Record) (p *profile.Profile, note string) {
	if r.File == "" {
		return nil, ""
	}
	path := filepath.Join(s.Dir, BaselineDir, filepath.FromSlash(r.File))
	data, err := infile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Sprintf("%s is absent, because a later baseline replaced it: the figures are those of the index", r.File)
	}
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
	return appendLines(filepath.Join(s.Dir, BaselineDir, IndexFile), records, s.attributes, nil)
}

// Accept saves profiles and appends their records, which replace the earlier ones about the same
// models. The profile of a removed model is nil. Files have the hash of their content in their
// names, so that two branches never change the same one. A process that is killed in between leaves
// the old index with its files; what it wrote is removed by the next one.
func (s *Store) Accept(records []Record, profiles []*profile.Profile) error {
	dir := filepath.Join(s.Dir, BaselineDir)
	before := func() error {
		now, err := Open(s.Dir) // another process may have appended since
		if err != nil {
			return err
		}
		for i, p := range profiles {
			r := &records[i]
			for _, old := range now.Heads(r.Model, r.Target, r.Settings) {
				r.Replaces = append(r.Replaces, old.ID())
			}
			if p == nil {
				continue
			}
			b, err := profile.Marshal(p)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(b)
			r.FileSHA256 = hex.EncodeToString(sum[:])
			r.File = strings.Join([]string{Slug(r.Model), Slug(r.Machine), Slug(r.Settings) + "-" + r.FileSHA256[:8]}, "/") + profile.Extension
			path := filepath.Join(dir, filepath.FromSlash(r.File))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := atomicfile.Write(path, b); err != nil {
				return err
			}
		}
		return s.attributes()
	}
	return appendLines(filepath.Join(dir, IndexFile), records, before, s.sweep)
}

// sweep removes profiles that no baseline names any more, and files that killed processes left. The
// caller has the lock of the index. What a damaged line names stays.
func (s *Store) sweep() error {
	now, err := Open(s.Dir)
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, at := range now.Places(func(string) bool { return true }) {
		for _, r := range now.Heads(at[0], at[1], at[2]) {
			used[r.File] = true
		}
	}
	damaged := now.damaged.String()
	return s.eachFile(func(path, name string) error {
		if used[name] || strings.Contains(damaged, name) {
			return nil
		}
		err := os.Remove(path)
		_ = os.Remove(filepath.Dir(path)) // if it is empty
		_ = os.Remove(filepath.Dir(filepath.Dir(path)))
		return err
	})
}

// eachFile calls a function with the profiles of the store and the temporary files of profiles.
func (s *Store) eachFile(do func(path, name string) error) error {
	dir := filepath.Join(s.Dir, BaselineDir)
	for _, pattern := range []string{"*" + profile.Extension, leftover} {
		files, err := filepath.Glob(filepath.Join(globEscaped(dir), "*", "*", pattern))
		if err != nil {
			return err
		}
		for _, path := range files {
			if st, err := os.Lstat(path); err != nil || !st.Mode().IsRegular() {
				continue
			}
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			if err := do(path, filepath.ToSlash(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// leftover are the temporary files that a killed process leaves, as package atomicfile names them.
const leftover = ".*" + profile.Extension + ".????????"

// globEscaped escapes what a pattern would take for more than a character.
func globEscaped(dir string) string {
	if filepath.Separator == '\\' {
		return dir // no escapes there
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// Clean removes temporary files that a killed process left. It waits for a process that writes now.
func (s *Store) Clean() error {
	left := false
	if err := s.eachFile(func(_, name string) error {
		left = left || strings.HasPrefix(filepath.Base(name), ".")
		return nil
	}); err != nil || !left {
		return err
	}
	f, err := os.Open(filepath.Join(s.Dir, BaselineDir, IndexFile))
	if err != nil {
		return err
	}
	defer f.Close() // releases the lock
	if err := filelock.Wait(f); err != nil {
		return err
	}
	return s.eachFile(func(path, name string) error {
		if strings.HasPrefix(filepath.Base(name), ".") {
			return os.Remove(path)
		}
		return nil
	})
}

// Ignore appends an acknowledgement.
func (s *Store) Ignore(g Ignore) error {
	if err := g.check(); err != nil {
		return err
	}
	return appendLines(filepath.Join(s.Dir, IgnoreFile), []Ignore{g}, s.attributes, nil)
}

// Init makes the folder and tells git how to merge its files.
func (s *Store) Init() error {
	if err := os.MkdirAll(filepath.Join(s.Dir, BaselineDir), 0o755); err != nil {
		return err
	}
	return s.attributes()
}

// attributes writes the rules for git that the folder lacks.
func (s *Store) attributes() error {
	path := filepath.Join(s.Dir, attributes)
	old, err := infile.Read(path, maxLine)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	have := strings.Split(strings.ReplaceAll(string(old), "\r\n", "\n"), "\n")
	text := strings.TrimRight(string(old), "\n")
	for i := 0; i+1 < len(attributeLines); i += 2 { // a comment and its rule
		if slices.Contains(have, attributeLines[i+1]) {
			continue
		}
		if text != "" {
			text += "\n"
		}
		text += attributeLines[i] + "\n" + attributeLines[i+1]
	}
	if text+"\n" == string(old) || text == string(old) {
		return nil
	}
	return atomicfile.Write(path, []byte(text+"\n"))
}

// appendLines appends values to a file, each as a line, while no other process does. before and
// after run under the lock, if they are not nil. The lines are written at once and reach the disk
// before it returns. An incomplete line at the end stays and is closed, so that nothing is lost.
func appendLines[T any](path string, values []T, before, after func() error) (err error) {
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
	if err := f.Sync(); err != nil || after == nil {
		return err
	}
	return after()
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

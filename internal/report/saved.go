package report

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// savedRow is a line of the list of saved profiles.
type savedRow struct {
	file string
	head *profile.Head // nil when it cannot be read
	note string
}

// Saved lists the saved profiles and journals in a folder and below it, by name, in
// format "table" (or "") or "csv". Of profiles it reads the heads alone. unread counts
// files that could not be read; they are listed with the reason. The error of a folder
// without any says so.
func Saved(w io.Writer, dir, format string, width int) (unread int, err error) {
	rows, err := savedIn(dir)
	if err != nil {
		return 0, err
	}
	if len(rows) == 0 {
		return 0, fmt.Errorf("%s: no %s or %s file inside", dir, profile.Extension, profile.JournalExtension)
	}
	for _, r := range rows {
		if r.head == nil {
			unread++
		}
	}
	if format == "csv" {
		return unread, savedCSV(w, rows)
	}
	return unread, savedTable(w, rows, width)
}

// savedIn reads the heads of the profiles in a folder.
func savedIn(dir string) ([]savedRow, error) {
	var rows []savedRow
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name := filepath.Base(path)
		if rel, e := filepath.Rel(dir, path); e == nil {
			name = filepath.ToSlash(rel)
		}
		if err != nil {
			if path == dir {
				return err
			}
			rows = append(rows, savedRow{file: name, note: "not read: " + plainReason(err)})
			if d != nil && d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		var h *profile.Head
		note := ""
		switch filepath.Ext(path) {
		case profile.Extension:
			if h, err = profile.ReadHead(path); err == nil {
				note = savedNote(h)
			}
		case profile.JournalExtension:
			if h, err = journalHead(path); err == nil {
				note = "journal of a run that did not end or is still running"
			}
		default:
			return nil
		}
		if err != nil {
			h, note = nil, "not read: "+plainReason(trimmedName(path, err))
		}
		rows = append(rows, savedRow{name, h, note})
		return nil
	})
	return rows, err
}

// plainReason is an error's text without the name of the file, which is next to it.
func plainReason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// trimmedName takes the file's name from the beginning of an error.
func trimmedName(path string, err error) error {
	if s, ok := strings.CutPrefix(err.Error(), path+": "); ok {
		return errors.New(s)
	}
	return err
}

// journalHead is the head of what a journal's first event describes.
func journalHead(path string) (*profile.Head, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var h *profile.Head
	err = profile.Events(bufio.NewReader(f), func(e profile.Event) bool {
		if e.Described != nil {
			h = profile.HeadOf(e.Described)
		}
		return false
	})
	if err == nil && h == nil {
		err = errors.New("ends before the description of the model")
	}
	return h, err
}

// savedNote says what a profile lacks.
func savedNote(h *profile.Head) string {
	var notes []string
	for _, c := range h.Incomplete {
		notes = append(notes, words.Missing(&profile.Missing{Cause: c}))
	}
	if n := h.Totals.UnsupportedLayers; n != nil && *n > 0 {
		notes = append(notes, words.Plural(*n, "layer")+" not supported")
	}
	return strings.Join(notes, "; ")
}

// cells are the columns of a row between the file's name and the note; exact writes
// plain numbers.
func (r *savedRow) cells(exact bool) []string {
	if r.head == nil {
		return make([]string, 5)
	}
	h := r.head
	out := []string{h.Model.Name, h.Target.ID, h.Created, "", ""}
	if v, ok := h.Totals.Latency.Best(); ok {
		out[3] = Duration(v)
		if exact {
			out[3] = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	if n := h.Totals.MACs; n != nil {
		out[4] = Count(*n)
		if exact {
			out[4] = strconv.FormatInt(*n, 10)
		}
	}
	return out
}

func savedCSV(w io.Writer, rows []savedRow) error {
	c := csv.NewWriter(w)
	// errors stay until Flush
	_ = c.Write([]string{"file", "model", "target", "created", "latency_s", "macs", "note"})
	for _, r := range rows {
		line := append([]string{r.file}, r.cells(true)...)
		line = append(line, r.note)
		for i := range line {
			if i != 4 && i != 5 {
				line[i] = text.Cell(line[i])
			}
		}
		_ = c.Write(line)
	}
	c.Flush()
	return c.Error()
}

func savedTable(w io.Writer, rows []savedRow, width int) error {
	const most = 44 // characters of a name
	lines := [][]string{{"file", "model", "target", "created", "latency", "MACs", "note"}}
	for _, r := range rows {
		line := append([]string{shorten(text.Clean(r.file), most)}, r.cells(false)...)
		for i := range line {
			line[i] = shorten(text.Clean(line[i]), most)
		}
		lines = append(lines, append(line, text.Clean(r.note)))
	}
	wide := make([]int, len(lines[0]))
	for _, l := range lines {
		for i, c := range l[:len(l)-1] {
			wide[i] = max(wide[i], text.Width(c))
		}
	}
	out := bufio.NewWriter(w)
	for _, l := range lines {
		parts := make([]string, len(l))
		for i, c := range l {
			parts[i] = c
			if i < len(l)-1 {
				parts[i] = pad(c, wide[i], i < 4)
			}
		}
		fmt.Fprintln(out, clip(strings.TrimRight(strings.Join(parts, "  "), " "), width))
	}
	unread := 0
	for _, r := range rows {
		if r.head == nil {
			unread++
		}
	}
	fmt.Fprint(out, words.Plural(int64(len(rows)), "profile"))
	if unread > 0 {
		fmt.Fprintf(out, ", %d not read", unread)
	}
	fmt.Fprintln(out)
	return out.Flush()
}

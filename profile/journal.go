package profile

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/lines"
)

// JournalV1 names the format of journals: lines of JSON, the first one saying so,
// then an event each. A line that was cut off is none.
const JournalV1 = "opmeter/journal/v1"

// JournalExtension is the usual ending of journals.
const JournalExtension = ".opmeter-journal"

// JournalShort is the ID of the finding that a run's journal lacks its last events.
const JournalShort = "run.journal"

// maxLine bounds a line of a journal that is read, 256 MiB.
const maxLine = 256 << 20

// Journal keeps events on disk as they come, so that a killed run leaves what it
// had: [Read] opens it as a profile that says where it ends.
type Journal struct {
	path string
	f    *os.File
}

type journalHead struct {
	Journal string `json:"journal"`
}

// NewJournal makes a journal in a file, which must not exist, and joins it to b:
// every event that b takes is appended before Send returns. b has taken none yet, and
// has no other journal.
func NewJournal(path string, b *Builder) (*Journal, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.p != nil || b.done || b.journal != nil {
		return nil, fmt.Errorf("%s: the journal is to begin with the first event and be the only one", path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	j := &Journal{path: path, f: f}
	if err := j.line(journalHead{JournalV1}); err != nil {
		return nil, errors.Join(err, j.Remove())
	}
	b.journal = func(e Event) error { return j.line(e) }
	return j, nil
}

// line appends one line with one call of the system, so that lines are whole.
func (j *Journal) line(v any) error {
	text, err := jsonx.Marshal(v)
	if err == nil {
		_, err = j.f.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", j.path, err)
	}
	return nil
}

// Remove closes and removes the journal, when its profile is safe elsewhere.
func (j *Journal) Remove() error {
	return errors.Join(j.f.Close(), os.Remove(j.path))
}

// Close closes the journal and leaves it where it is.
func (j *Journal) Close() error { return j.f.Close() }

// Events reads the events of a journal that are whole, in order. yield may return
// false to stop. The error is of what is damaged and names its line; an end in the
// middle of a line is none.
func Events(r io.Reader, yield func(Event) bool) error { return events(r, maxLine, yield) }

func events(r io.Reader, most int, yield func(Event) bool) error {
	br := bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		line, err := lines.Read(br, most)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if n == 1 {
			var h journalHead
			if err := jsonx.Unmarshal(line, &h); err != nil || h.Journal != JournalV1 {
				return fmt.Errorf("%w: not a journal of the kind %q", ErrNotProfile, JournalV1)
			}
			continue
		}
		var e Event
		if err := jsonx.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if !yield(e) {
			return nil
		}
	}
}

// readJournal makes the profile of a journal. What cannot be read or taken ends it:
// events after it may rest on what is missing. An event without a part that is
// known is of a later version and passed over.
func readJournal(r io.Reader) (*Profile, error) {
	b := NewBuilder()
	var refused error
	n, strange := 1, int64(0)
	damaged := Events(r, func(e Event) bool {
		n++
		if e == (Event{}) {
			strange++
			return true
		}
		if err := b.Send(e); err != nil {
			refused = fmt.Errorf("line %d: %w", n, err)
		}
		return refused == nil
	})
	err := cmp.Or(damaged, refused)
	p := b.Profile()
	switch {
	case p == nil && err != nil:
		return nil, fmt.Errorf("journal: %w", err)
	case p == nil:
		return nil, errors.New("journal: ends before the model was described")
	}
	if strange > 0 {
		p.Incomplete = append(p.Incomplete, Missing{Cause: ByRecord, Text: "journal: events that this version does not know", Want: &strange})
	}
	if err != nil {
		p.Incomplete = append(p.Incomplete, Missing{Cause: ByRecord, Text: "journal: " + err.Error()})
	}
	return p, nil
}

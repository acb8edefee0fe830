package sensiml

import (
	"bytes"
	"errors"
	"io"
)

// maxLine bounds a line. The firmware's buffers are of some thousand bytes, and it writes beyond
// them.
const maxLine = 1 << 20

// Decoder makes messages of the bytes of a device as they come: lines end in LF, CR or both in any
// order, NULs are nothing, and text before, between and behind objects is skipped. The zero value
// is ready.
type Decoder struct {
	line   []byte
	long   bool // the line is beyond the bound: skip to its end
	start  int64
	offset int64
	lines  int64

	rejected map[Reason]int64
	repaired int64
	messages int64

	// OnReject is told of everything that is not read, with the text, which it must not keep; nil
	// for nobody. Set it before the first bytes.
	OnReject func(why Reason, line int64, text []byte)
}

// Feed takes bytes and passes on the messages in them; yield may return false to leave the rest
// of these bytes away. Slices of a message are its own.
func (d *Decoder) Feed(p []byte, yield func(*Message) bool) {
	for len(p) > 0 {
		n := bytes.IndexAny(p, "\n\r")
		part := p
		if n >= 0 {
			part = p[:n]
		}
		if len(d.line) == 0 && !d.long {
			d.start = d.offset
		}
		if !d.long {
			if len(d.line)+len(part) > maxLine {
				d.long, d.line = true, d.line[:0]
				d.reject(ReasonTooLong, part[:min(len(part), 100)])
			} else {
				for _, c := range part {
					if c != 0 {
						d.line = append(d.line, c)
					}
				}
			}
		}
		d.offset += int64(len(part))
		if n < 0 {
			return
		}
		d.offset++
		p = p[n+1:]
		if !d.endLine(yield) {
			return
		}
	}
}

// End says that no more bytes come: a line without an end is read as it is.
func (d *Decoder) End(yield func(*Message) bool) { d.endLine(yield) }

// Gap says that bytes were lost here: the line under way is none.
func (d *Decoder) Gap() {
	if len(d.line) > 0 || d.long {
		d.reject(ReasonCut, d.line)
	}
	d.line, d.long = d.line[:0], false
}

// Forget leaves the line under way out without counting it: nobody wants more.
func (d *Decoder) Forget() { d.line, d.long = d.line[:0], false }

func (d *Decoder) endLine(yield func(*Message) bool) bool {
	line, long := d.line, d.long
	d.line, d.long = d.line[:0], false
	if long || len(line) > 0 {
		d.lines++
	}
	if long || len(line) == 0 {
		return true
	}
	return d.objects(line, yield)
}

// objects finds the objects in a line. One that is damaged is left at its next bracket, so that a
// whole one behind a cut one is found.
func (d *Decoder) objects(line []byte, yield func(*Message) bool) bool {
	d.disabled(line, yield)
	text, whole := false, line
	for len(line) > 0 {
		at := bytes.IndexByte(line, '{')
		before := line
		if at >= 0 {
			before = line[:at]
		}
		text = text || len(bytes.TrimSpace(before)) > 0
		if at < 0 {
			break
		}
		line = line[at:]
		s := scanner{b: line}
		o, err := s.object()
		if err != nil {
			why := ReasonSyntax
			if errors.Is(err, errCut) {
				why = ReasonCut
			}
			d.reject(why, line)
			// What is left of it is not text of its own.
			next := bytes.IndexByte(line[1:], '{')
			if next < 0 {
				break
			}
			line = line[1+next:]
			continue
		}
		own := line[:s.at]
		line = line[s.at:]
		m, why := o.message()
		if m == nil {
			d.reject(why, own)
			continue
		}
		if !d.pass(m, yield) {
			return false
		}
	}
	if text {
		d.reject(ReasonText, whole)
	}
	return true
}

var (
	disabledBefore = []byte("Model ")
	disabledAfter  = []byte(" does not have profiling enabled")
)

// disabled looks for the text of a model without profiling.
func (d *Decoder) disabled(line []byte, yield func(*Message) bool) {
	end := bytes.Index(line, disabledAfter)
	if end < 0 {
		return
	}
	at := bytes.LastIndex(line[:end], disabledBefore)
	if at < 0 {
		return
	}
	n := 0
	digits := line[at+len(disabledBefore) : end]
	for _, c := range digits {
		if c < '0' || c > '9' || n >= maxModels {
			return
		}
		n = n*10 + int(c-'0')
	}
	if len(digits) > 0 && n < maxModels {
		d.pass(&Message{Kind: KindDisabled, Model: n}, yield)
	}
}

func (d *Decoder) pass(m *Message, yield func(*Message) bool) bool {
	m.Line, m.Offset = d.lines, d.start
	d.messages++
	if m.Repaired {
		d.repaired++
	}
	return yield(m)
}

func (d *Decoder) reject(why Reason, text []byte) {
	if d.rejected == nil {
		d.rejected = map[Reason]int64{}
	}
	d.rejected[why]++
	if d.OnReject != nil {
		d.OnReject(why, d.lines, text)
	}
}

// Rejected is how many lines or objects were not read, by reason. The caller must not change it.
func (d *Decoder) Rejected() map[Reason]int64 { return d.rejected }

// Repaired is the number of messages that had a comma too much.
func (d *Decoder) Repaired() int64 { return d.repaired }

// Messages is the number of messages.
func (d *Decoder) Messages() int64 { return d.messages }

// Bytes is the number of bytes taken.
func (d *Decoder) Bytes() int64 { return d.offset }

// Reader reads messages from a stream.
type Reader struct {
	d     Decoder
	r     io.Reader
	buf   []byte
	queue []*Message
	at    int
	err   error
	ended bool
}

// NewReader makes a reader of a stream, which may begin in the middle of a line.
func NewReader(r io.Reader) *Reader { return &Reader{r: r, buf: make([]byte, 32<<10)} }

// Scan moves to the next message, and reports false at the end of the stream or its error.
func (r *Reader) Scan() bool {
	for empty := 0; ; {
		if r.at+1 < len(r.queue) {
			r.at++
			return true
		}
		r.queue, r.at = r.queue[:0], -1
		if r.ended {
			return false
		}
		add := func(m *Message) bool { r.queue = append(r.queue, m); return true }
		n, err := r.r.Read(r.buf)
		r.d.Feed(r.buf[:n], add)
		switch {
		case err == nil && n == 0:
			if empty++; empty > 100 {
				err = io.ErrNoProgress
			}
		case n > 0:
			empty = 0
		}
		if err != nil {
			r.ended = true
			r.d.End(add)
			if !errors.Is(err, io.EOF) {
				r.err = err
			}
		}
	}
}

// Message is the one that Scan moved to.
func (r *Reader) Message() *Message { return r.queue[r.at] }

// Err is the error of the stream, nil at its end.
func (r *Reader) Err() error { return r.err }

// Decoder has the counts of what was read and rejected.
func (r *Reader) Decoder() *Decoder { return &r.d }

// Sure says how sure it is, from 0 to 100, that these bytes are of a knowledge pack, wherever in
// the stream they begin.
func Sure(head []byte) int {
	switch {
	case bytes.Contains(head, []byte(`"FeatureCycles"`)) && bytes.Contains(head, []byte(`"ModelNumber"`)):
		return 100
	case bytes.Contains(head, []byte(`"FeatureCycles":[`)) || bytes.Contains(head, []byte(`"FeatureTimes":[`)):
		return 98
	case bytes.Contains(head, []byte(`{"ModelNumber":`)), bytes.Contains(head, disabledAfter):
		return 95
	case bytes.Contains(head, []byte(`{"NumModels":`)):
		return 80
	}
	return 0
}

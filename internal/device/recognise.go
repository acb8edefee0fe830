package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/base/port"
)

// How many bytes are examined before a stream counts as unknown, and the confidence that a
// protocol needs.
const (
	lookBytes = 16 << 10 // at one speed; a protocol that is not sure by then is absent
	pause     = time.Second
	sure      = 80 // at once
	likely    = 30 // when nothing more comes, or enough has come
	askAfter  = 2 * time.Second
	// noise is how long bytes that are neither text nor of any protocol are received before
	// another speed is tried.
	noise = 3 * time.Second
)

// usualSpeeds are tried after the speeds of the protocols, in baud.
var usualSpeeds = []int{115200, 460800, 921600, 9600, 57600, 230400, 38400, 19200, 1000000, 2000000, 3000000, 1500000, 500000, 250000, 74880}

// Tried is the result of one speed.
type Tried struct {
	Speed int `json:"speed,omitzero"` // baud, 0 where the port has none
	Bytes int `json:"bytes"`
	// Protocols is the confidence, from 1 to 100, of protocols that were not sure enough.
	Protocols map[string]int `json:"protocols,omitzero"`
}

// Seen is the result of listening to a port.
type Seen struct {
	// Protocol is the name of the recognised protocol, "" for none.
	Protocol string `json:"protocol,omitzero"`
	// Speed is the speed at which it was recognised, or the last one; 0 if the port has none.
	Speed int `json:"speed,omitzero"`
	// Bytes is the number of bytes received at it, Text whether they look like text.
	Bytes int  `json:"bytes"`
	Text  bool `json:"text"`
	// Sample is the first bytes at that speed, at most 64.
	Sample []byte `json:"sample,omitzero"`
	// Tried lists all speeds, in order; Names the protocols that were asked.
	Tried []Tried  `json:"tried,omitzero"`
	Names []string `json:"names,omitzero"`
}

// UnknownError says that no protocol recognises what a device sends.
type UnknownError struct {
	Port port.Address
	Seen *Seen
}

// Error returns a diagnosis: what was received, at which speed, and what was tried.
func (e *UnknownError) Error() string {
	s := e.Seen
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", e.Port)
	switch {
	case s.Bytes == 0:
		b.WriteString("ended before anything came")
	case s.Text:
		fmt.Fprintf(&b, "sends text that no protocol knows, beginning with %q", clip(s.Sample))
	default:
		fmt.Fprintf(&b, "sends bytes that no protocol knows, beginning with % x", s.Sample[:min(len(s.Sample), 12)])
	}
	if len(s.Tried) > 0 && s.Tried[0].Speed > 0 {
		var at []string
		for _, t := range s.Tried {
			at = append(at, fmt.Sprint(t.Speed))
		}
		fmt.Fprintf(&b, "; speeds tried: %s baud", strings.Join(at, ", "))
	}
	if len(s.Names) > 0 {
		fmt.Fprintf(&b, "; protocols tried: %s", strings.Join(s.Names, ", "))
	}
	if s.Bytes > 0 && !s.Text && len(s.Tried) > 0 && s.Tried[0].Speed > 0 {
		b.WriteString("; where the firmware uses another speed, name it")
	}
	return b.String()
}

// clip returns the beginning of a text, up to the end of its first line.
func clip(b []byte) string {
	s := strings.ToValidUTF8(string(b), "?")
	if i := strings.IndexAny(s, "\r\n"); i > 0 {
		s = s[:i]
	}
	return s
}

// text reports whether bytes look like text: nearly all of them are printable.
func text(b []byte) bool {
	n, bad := 0, 0
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 || r < ' ' && !strings.ContainsRune("\r\n\t\x1b\x00", r) {
			bad++
		}
		b = b[size:]
		n++
	}
	return n > 0 && bad*20 <= n
}

// best returns the protocol with the highest confidence.
func best(ps []*Protocol, head []byte) (p *Protocol, how int, all map[string]int) {
	head = head[:min(len(head), HeadBytes)]
	for _, x := range ps {
		n := x.Sure(head)
		if n <= 0 {
			continue
		}
		if all == nil {
			all = map[string]int{}
		}
		all[x.Name] = n
		if n > how {
			p, how = x, n
		}
	}
	return p, how, all
}

// speeds returns the speeds to try, each once.
func speeds(ps []*Protocol, set int) []int {
	if set > 0 {
		return []int{set}
	}
	out := []int{}
	add := func(list []int) {
		for _, s := range list {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	if len(ps) == 1 {
		add(ps[0].Speeds)
	}
	add(usualSpeeds)
	for _, p := range ps {
		add(p.Speeds)
	}
	return out
}

// recognise listens until a protocol recognises the stream, and returns the bytes to the
// connection. A silent device keeps its first speed: a wrong one would show as noise. The error
// is an [UnknownError], or why nothing arrived.
func (c *Conn) recognise(ctx context.Context, ps []*Protocol, set int, silence time.Duration) (*Protocol, *Seen, error) {
	seen := &Seen{}
	for _, p := range ps {
		seen.Names = append(seen.Names, p.Name)
	}
	list := speeds(ps, set)
	if c.addr.Kind != port.Serial {
		list = []int{0}
	}
	for i, speed := range list {
		var old leftover
		if i > 0 {
			if err := c.port.SetSpeed(speed); err != nil {
				return nil, seen, fmt.Errorf("%s: cannot be set to %d baud: %w", c.addr, speed, err)
			}
			old = leftover{bytes: maxLeftover, speed: speed, since: time.Now()}
		}
		p, head, err := c.listen(ctx, ps, i == len(list)-1, silence, old)
		_, _, all := best(ps, head)
		seen.Speed, seen.Bytes, seen.Text, seen.Sample = speed, len(head), text(head), slices.Clone(head[:min(len(head), 64)])
		seen.Tried = append(seen.Tried, Tried{Speed: speed, Bytes: len(head), Protocols: all})
		if p != nil {
			seen.Protocol = p.Name
			c.head, c.headAt = head, time.Now()
			return p, seen, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, seen, err
		}
		if err != nil || seen.Text && len(head) > 64 {
			break // the stream has ended, or the speed is right
		}
	}
	return nil, seen, &UnknownError{Port: c.addr, Seen: seen}
}

// maxLeftover bounds the bytes that the system may have kept from before a change of the speed.
const maxLeftover = 96 << 10

// leftover is what bytes from before a change of the speed can be: so many at most, and they come
// faster than the line carries.
type leftover struct {
	bytes, speed int
	since        time.Time // when the speed was set
}

// drop reports whether n bytes up to a time are from before the change.
func (l *leftover) drop(n int, at time.Time) bool {
	if l.bytes <= 0 || float64(n)*10 <= 1.25*float64(l.speed)*at.Sub(l.since).Seconds() {
		return false
	}
	l.bytes -= n
	return true
}

// listen reads at one speed until a protocol is sure or none will be.
func (c *Conn) listen(ctx context.Context, ps []*Protocol, last bool, silence time.Duration, old leftover) (p *Protocol, head []byte, err error) {
	asked := 0
	asks := slices.DeleteFunc(slices.Clone(ps), func(p *Protocol) bool { return p.Ask == nil })
	waited := time.Duration(0)
	var first, told time.Time // when the first byte came, and when that was last said
	for {
		wait := min(pause, silence-waited)
		if len(head) == 0 && len(ps) == 1 && len(asks) == 1 && asked == 0 {
			wait = min(wait, 100*time.Millisecond) // the user named it: it is asked at once
		}
		x, err := c.Read(ctx, wait)
		switch {
		case err == nil:
			waited = 0
			if first.IsZero() {
				first, told = x.At, x.At
			}
			head = append(head, x.Data...)
			if c.waiting != nil && x.At.Sub(told) >= time.Second {
				told = x.At
				c.waiting(Waiting{Bytes: int64(len(head)), Since: x.At.Sub(first), Limit: patience * silence})
			}
			p, how, _ := best(ps, head)
			if how >= sure || how >= likely && len(head) >= lookBytes {
				return p, head, nil
			}
			if len(head) >= lookBytes && !text(head) && old.drop(len(head), x.At) {
				head = head[:0]
				continue
			}
			foreign := how == 0 && !last && x.At.Sub(first) >= noise
			if len(head) >= HeadBytes || x.At.Sub(first) >= patience*silence || (foreign || len(head) >= lookBytes) && !text(head) {
				return nil, head, nil
			}
			continue
		case !errors.Is(err, ErrSilent):
			p, how, _ := best(ps, head)
			if how >= likely || errors.Is(err, io.EOF) && how > 0 {
				return p, head, nil
			}
			return nil, head, err
		}
		waited += wait
		if len(head) > 0 {
			if p, how, _ := best(ps, head); how >= likely {
				return p, head, nil
			}
			// Noise that has ended is a wrong speed or an unknown device; text may continue.
			if !text(head) && !last || waited >= silence {
				return nil, head, nil
			}
			continue
		}
		if c.Live() && asked < len(asks) && (waited >= askAfter || len(ps) == 1) {
			if err := c.Write(ctx, asks[asked].Ask); err != nil {
				return nil, head, err
			}
			asked++
			waited = min(waited, max(0, silence-askAfter)) // it gets its time to answer
		}
		if waited >= silence {
			return nil, head, &SilentError{Port: c.addr, Waited: silence, Before: c.got}
		}
	}
}

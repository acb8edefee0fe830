package chrome

import (
	"bytes"

	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
)

// constant holds the arguments that all slices of a layer have in common: they become its options.
type constant struct {
	options []profile.Option
	raw     [][]byte // values as the first slice has them
	seen    bool
}

// Limits of what is kept of arguments.
const (
	maxOptions = 16
	maxOption  = 300
)

// see adds the arguments of one slice.
func (c *constant) see(e *traceevent.Event) {
	if !c.seen {
		c.seen = true
		e.Each(func(k, v []byte) {
			if o, ok := option(k, v); ok && len(c.options) < maxOptions {
				c.options, c.raw = append(c.options, o), append(c.raw, bytes.Clone(v))
			}
		})
		return
	}
	var have [maxOptions]bool
	e.Each(func(k, v []byte) {
		for i := range c.options {
			if c.options[i].Key == string(k) {
				have[i] = bytes.Equal(v, c.raw[i]) || string(traceevent.Text(v)) == c.options[i].Value
			}
		}
	})
	n := 0
	for i, o := range c.options {
		if have[i] {
			c.options[n], c.raw[n] = o, c.raw[i]
			n++
		}
	}
	c.options, c.raw = c.options[:n], c.raw[:n]
}

// option returns an argument that is a short text or number.
func option(k, v []byte) (profile.Option, bool) {
	if len(k) == 0 || len(k) > maxOption || len(v) == 0 || len(v) > maxOption || v[0] == '{' || v[0] == '[' {
		return profile.Option{}, false
	}
	s := track.Clip(traceevent.Text(v))
	return profile.Option{Key: track.Clip(k), Value: s}, s != ""
}

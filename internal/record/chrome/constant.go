package chrome

import (
	"bytes"
	"slices"

	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
)

// constant is the arguments that all slices of a layer agree about: they become its
// options.
type constant struct {
	first   []byte
	options []profile.Option
	seen    bool
}

// Bounds of what is kept of arguments.
const (
	maxOptions = 16
	maxOption  = 300
	maxArgs    = 4 << 10
)

// see takes the arguments of one slice.
func (c *constant) see(args []byte) {
	if !c.seen {
		c.seen = true
		if len(args) > maxArgs {
			return
		}
		c.first = bytes.Clone(args)
		traceevent.Members(args, func(k, v []byte) {
			if o, ok := option(k, v); ok && len(c.options) < maxOptions {
				c.options = append(c.options, o)
			}
		})
		return
	}
	if len(c.options) == 0 || bytes.Equal(args, c.first) {
		return
	}
	var have [maxOptions]bool
	traceevent.Members(args, func(k, v []byte) {
		for i := range c.options {
			if c.options[i].Key == string(k) {
				o, ok := option(k, v)
				have[i] = ok && o.Value == c.options[i].Value
			}
		}
	})
	i := -1
	c.options = slices.DeleteFunc(c.options, func(profile.Option) bool { i++; return !have[i] })
}

// option takes texts and numbers that are short.
func option(k, v []byte) (profile.Option, bool) {
	if len(k) == 0 || len(k) > maxOption || len(v) == 0 || len(v) > maxOption || v[0] == '{' || v[0] == '[' {
		return profile.Option{}, false
	}
	s := track.Clip(traceevent.Text(v))
	return profile.Option{Key: track.Clip(k), Value: s}, s != ""
}

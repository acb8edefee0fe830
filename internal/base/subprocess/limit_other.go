//go:build !linux

package subprocess

// Limits reports whether [Group.Limit] and [Group.Memory] work on this system.
const Limits = false

// Limit does nothing on this system.
func (g *Group) Limit(_, _ int64) error { return nil }

// Memory is unknown on this system.
func (g *Group) Memory() int64 { return 0 }

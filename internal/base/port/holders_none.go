//go:build !linux

package port

// holders are unknown on this system, except by our own lock files.
func holders(string) []Holder { return nil }

func holdersOf([]string) map[string][]Holder { return nil }

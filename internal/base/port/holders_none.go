//go:build !linux

package port

// holders cannot be told on this system, but for those of our own lock files.
func holders(string) []Holder { return nil }

func holdersOf([]string) map[string][]Holder { return nil }

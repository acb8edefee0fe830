// Package random implements the counter-based generator that several formats specify: the same
// key and counter give the same numbers everywhere.
package random

// Philox returns the four words of Philox 4x32 with ten rounds for a counter.
func Philox(key [2]uint32, counter [4]uint32) [4]uint32 {
	c := counter
	for range 10 {
		a, b := 0xD2511F53*uint64(c[0]), 0xCD9E8D57*uint64(c[2])
		c = [4]uint32{uint32(b>>32) ^ c[1] ^ key[0], uint32(b), uint32(a>>32) ^ c[3] ^ key[1], uint32(a)}
		key[0] += 0x9E3779B9
		key[1] += 0xBB67AE85
	}
	return c
}

package main

import (
	"encoding/binary"
	"math/rand/v2"
)

// damaged changes one to three places of a model's bytes.
func damaged(r *rand.Rand, all []source, s source) (data []byte, kinds []string) {
	data = append([]byte(nil), s.data...)
	for range 1 + r.IntN(3) {
		k := damages[r.IntN(len(damages))]
		data = k.apply(r, data, all)
		kinds = append(kinds, k.name)
	}
	return data, kinds
}

type damage struct {
	name  string
	apply func(r *rand.Rand, b []byte, all []source) []byte
}

var damages = []damage{
	{"flip", flip}, {"flip", flip}, {"length", length}, {"length", length}, {"varint", varint}, {"cut", cut}, {"splice", splice},
}

// place picks an offset, best of eight by how much its surroundings look like
// structure: zeros of small integers, letters of names.
func place(r *rand.Rand, b []byte) int {
	best, score := 0, -1
	for range 8 {
		at, n := r.IntN(len(b)), 0
		for _, c := range b[max(0, at-8):min(len(b), at+8)] {
			if c == 0 || c >= '0' && c <= 'z' {
				n++
			}
		}
		if n > score {
			best, score = at, n
		}
	}
	return best
}

// flip changes one to eight bits.
func flip(r *rand.Rand, b []byte, _ []source) []byte {
	for range 1 + r.IntN(8) {
		b[place(r, b)] ^= 1 << r.IntN(8)
	}
	return b
}

// length writes an odd 32-bit figure over what may be a length or an offset.
func length(r *rand.Rand, b []byte, _ []source) []byte {
	at := place(r, b) &^ 3
	if at+4 > len(b) {
		return b
	}
	old := binary.LittleEndian.Uint32(b[at:])
	odd := []uint32{0, 1, old + 1, old - 1, old * 2, old << 16, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1, uint32(len(b)), uint32(r.IntN(len(b)))}
	binary.LittleEndian.PutUint32(b[at:], odd[r.IntN(len(odd))])
	return b
}

// varint makes a variable-length integer long.
func varint(r *rand.Rand, b []byte, _ []source) []byte {
	for at, n := place(r, b), 1+r.IntN(9); n > 0 && at < len(b); at, n = at+1, n-1 {
		b[at] |= 0x80
	}
	return b
}

// cut takes the end off, leaving at least one byte.
func cut(r *rand.Rand, b []byte, _ []source) []byte { return b[:1+r.IntN(len(b))] }

// splice puts a piece of another model over a piece of this one.
func splice(r *rand.Rand, b []byte, all []source) []byte {
	o := all[r.IntN(len(all))].data
	n := 1 + r.IntN(min(256, len(o), len(b)))
	copy(b[place(r, b):], o[r.IntN(len(o)-n+1):][:n])
	return b
}

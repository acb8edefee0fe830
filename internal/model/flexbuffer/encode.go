package flexbuffer

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Encode writes a value: nil, bool, int, int64, uint64, float32, float64, string, []byte, []any
// or map[string]any. Everything is stored in 8-byte words, which every reader accepts.
func Encode(v any) ([]byte, error) {
	e := &encoder{}
	word, packed, err := e.put(v)
	if err != nil {
		return nil, err
	}
	e.align()
	e.reference(word, packed)
	return append(e.out, packed, 8), nil
}

type encoder struct{ out []byte }

// wide packs a type with the width of eight bytes.
func wide(t Type) byte { return byte(t)<<2 | 3 }

func (e *encoder) align() {
	for len(e.out)%8 != 0 {
		e.out = append(e.out, 0)
	}
}

func (e *encoder) word(w uint64) { e.out = binary.LittleEndian.AppendUint64(e.out, w) }

// reference appends a value word: the value itself if it is inline, otherwise the backward offset
// to it.
func (e *encoder) reference(word uint64, packed byte) {
	switch Type(packed >> 2) {
	case Null, Int, Uint, Float, Bool:
	default:
		word = uint64(len(e.out)) - word
	}
	e.word(word)
}

// put writes the target of a value. word is the value itself if it is inline, otherwise its
// position.
func (e *encoder) put(v any) (word uint64, packed byte, err error) {
	switch v := v.(type) {
	case nil:
		return 0, wide(Null), nil
	case bool:
		if v {
			word = 1
		}
		return word, wide(Bool), nil
	case int:
		return uint64(v), wide(Int), nil
	case int64:
		return uint64(v), wide(Int), nil
	case uint64:
		return v, wide(Uint), nil
	case float32:
		return math.Float64bits(float64(v)), wide(Float), nil
	case float64:
		return math.Float64bits(v), wide(Float), nil
	case string:
		return e.sized([]byte(v), true), wide(String), nil
	case []byte:
		return e.sized(v, false), wide(Blob), nil
	case []any:
		at, err := e.elements(v, nil)
		return at, wide(Vector), err
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		values := make([]any, len(keys))
		places := make([]uint64, len(keys))
		for i, k := range keys {
			values[i], places[i] = v[k], uint64(len(e.out))
			e.out = append(append(e.out, k...), 0)
		}
		at, err := e.elements(values, places)
		return at, wide(Map), err
	}
	return 0, 0, fmt.Errorf("flexbuffer: a value of type %T cannot be written", v)
}

// sized writes bytes after their length.
func (e *encoder) sized(b []byte, terminate bool) uint64 {
	e.align()
	e.word(uint64(len(b)))
	at := uint64(len(e.out))
	e.out = append(e.out, b...)
	if terminate {
		e.out = append(e.out, 0)
	}
	return at
}

// elements writes a vector, or a map if there are keys.
func (e *encoder) elements(values []any, keys []uint64) (uint64, error) {
	words, packed := make([]uint64, len(values)), make([]byte, len(values))
	for i, v := range values {
		var err error
		if words[i], packed[i], err = e.put(v); err != nil {
			return 0, err
		}
	}
	e.align()
	if keys != nil {
		e.word(uint64(len(keys)))
		table := uint64(len(e.out))
		for _, k := range keys {
			e.word(uint64(len(e.out)) - k)
		}
		e.word(uint64(len(e.out)) - table)
		e.word(8)
	}
	e.word(uint64(len(values)))
	at := uint64(len(e.out))
	for i, w := range words {
		e.reference(w, packed[i])
	}
	e.out = append(e.out, packed...)
	return at, nil
}

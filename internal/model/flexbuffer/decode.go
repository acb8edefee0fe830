package flexbuffer

import "errors"

// Limits of [Decode]: a buffer can refer to itself.
const (
	maxDepth  = 32
	maxValues = 1 << 16
)

// Decode converts a complete buffer to Go values: nil, bool, int64, uint64, float64, string,
// []byte, []any and map[string]any. It rejects nesting deeper than 32 levels and more than 65,536
// values.
func Decode(data []byte) (any, error) {
	v, err := Parse(data)
	if err != nil {
		return nil, err
	}
	// Text with many references must not be copied without limit.
	left := budget{values: maxValues, text: 4*len(data) + 1<<16}
	return v.decode(maxDepth, &left)
}

// budget is the remaining amount that may be decoded.
type budget struct{ values, text int }

func (v Value) decode(depth int, left *budget) (any, error) {
	if left.values--; depth == 0 || left.values < 0 || left.text < 0 {
		return nil, errors.New("flexbuffer: nests too deep or has too many values")
	}
	switch v.typ {
	case Null:
		return nil, nil
	case Bool:
		b, ok := v.Bool()
		return b, valid(ok)
	case Int, IndirectInt:
		i, ok := v.Int()
		return i, valid(ok)
	case Uint, IndirectUint:
		i, ok := v.Int()
		return uint64(i), valid(ok)
	case Float, IndirectFloat:
		f, ok := v.Float()
		return f, valid(ok)
	case Key, String:
		b, ok := v.Bytes()
		if left.text -= len(b); left.text < 0 {
			return nil, errors.New("flexbuffer: the same text is referred to too often")
		}
		s := string(b)
		return s, valid(ok)
	case Blob:
		b, ok := v.Bytes()
		return b, valid(ok)
	}
	l, ok := v.list()
	if !ok || l.n > left.values {
		return nil, valid(false)
	}
	if v.typ == Map {
		m := make(map[string]any, l.n)
		for i := range l.n {
			k, ok := v.KeyAt(i)
			if left.text -= len(k); !ok || left.text < 0 {
				return nil, valid(false)
			}
			e, err := v.At(i).decode(depth-1, left)
			if err != nil {
				return nil, err
			}
			m[k] = e
		}
		return m, nil
	}
	out := make([]any, 0, l.n)
	for i := range l.n {
		e, err := v.At(i).decode(depth-1, left)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func valid(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("flexbuffer: a value leads outside the buffer")
}

package describe

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Identity identifies a model. Hashes are SHA-256 in lower-case hexadecimal digits.
type Identity struct {
	// File is the hash of the model file, empty for a model without a file.
	File string
	// Structure is a hash of the graphs without names and constants, Weights one of all
	// constants, including those in external data files; empty if these are missing.
	Structure, Weights string
}

// Identify hashes the model's file and its constants. data is the content of the file if it was
// read from memory, nil if it is on disk.
func Identify(m *graph.Model, data []byte) (*Identity, error) {
	id := &Identity{}
	done := make(chan error, 1)
	go func() {
		defer close(done)
		var err error
		switch {
		case data != nil:
			s := sha256.Sum256(data)
			id.File = hex.EncodeToString(s[:])
		case m.Path != "":
			id.File, err = hashFile(m.Path)
		}
		done <- err
	}()
	s, w := newHasher(), newHasher()
	s.text(m.Format)
	for _, g := range m.Graphs {
		s.graph(g, w)
	}
	id.Structure = s.sum()
	if m.Absent == nil {
		id.Weights = w.sum()
	}
	if err := <-done; err != nil {
		return nil, err
	}
	return id, nil
}

// hashFile returns the SHA-256 of a file. For a member of an archive ("a.zip!b.tflite") it is
// that of the archive.
func hashFile(path string) (string, error) {
	path, _, _ = strings.Cut(path, "!")
	f, _, err := infile.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hasher writes numbers and texts unambiguously, each text with its length.
type hasher struct {
	h hash.Hash
	w *bufio.Writer
}

func newHasher() *hasher {
	h := sha256.New()
	return &hasher{h, bufio.NewWriter(h)}
}

func (h *hasher) sum() string {
	_ = h.w.Flush() // writing to a hash cannot fail
	return hex.EncodeToString(h.h.Sum(nil))
}

func (h *hasher) int(v int64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(v))
	_, _ = h.w.Write(b[:])
}

func (h *hasher) ints(v []int) {
	h.int(int64(len(v)))
	for _, x := range v {
		h.int(int64(x))
	}
}

func (h *hasher) text(s string) {
	h.int(int64(len(s)))
	_, _ = h.w.WriteString(s)
}

func (h *hasher) bytes(b []byte) {
	h.int(int64(len(b)))
	_, _ = h.w.Write(b)
}

// graph adds a graph; constants go to weights.
func (h *hasher) graph(g *graph.Graph, weights *hasher) {
	h.ints(g.Inputs)
	h.ints(g.Outputs)
	h.int(int64(len(g.Values)))
	for _, v := range g.Values {
		h.int(int64(v.Type))
		switch {
		case v.Const != nil:
			h.text("constant")
			h.ints(v.Const.Shape)
			weights.tensor(v.Const)
		case v.HasShape:
			h.text("shape")
			h.ints(v.Shape)
		default:
			h.text("open")
		}
		if v.Variable {
			h.text("variable")
		}
	}
	h.int(int64(len(g.Captures)))
	for _, c := range g.Captures {
		h.int(int64(c.Outer))
		h.int(int64(c.Inner))
	}
	h.int(int64(len(g.Nodes)))
	for _, n := range g.Nodes {
		h.text(n.Domain)
		h.text(n.Op)
		h.int(int64(n.Version))
		h.ints(n.Inputs)
		h.ints(n.Outputs)
		names := make([]string, 0, len(n.Attrs))
		for name := range n.Attrs {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			h.text(name)
			h.attr(n.Attrs[name], weights)
		}
	}
}

// attr adds an attribute by its kind.
func (h *hasher) attr(a any, weights *hasher) {
	switch a := a.(type) {
	case int64:
		h.int(a)
	case []int64:
		h.int(int64(len(a)))
		for _, x := range a {
			h.int(x)
		}
	case float32:
		h.int(int64(math.Float32bits(a)))
	case []float32:
		h.int(int64(len(a)))
		for _, x := range a {
			h.int(int64(math.Float32bits(x)))
		}
	case string:
		h.text(a)
	case []string:
		h.int(int64(len(a)))
		for _, x := range a {
			h.text(x)
		}
	case *tensor.Tensor:
		h.shape(a, weights)
	case []*tensor.Tensor:
		h.int(int64(len(a)))
		for _, x := range a {
			h.shape(x, weights)
		}
	case graph.GraphRef:
		h.int(int64(a))
	case []graph.GraphRef:
		h.int(int64(len(a)))
		for _, x := range a {
			h.int(int64(x))
		}
	case []byte:
		h.bytes(a)
	default:
		h.text(fmt.Sprintf("%T %v", a, a))
	}
}

// shape adds type and shape of a constant and passes its elements to weights.
func (h *hasher) shape(t *tensor.Tensor, weights *hasher) {
	if t == nil {
		h.text("none")
		return
	}
	h.int(int64(t.Type))
	h.ints(t.Shape)
	weights.tensor(t)
}

// tensor adds a constant with its elements.
func (h *hasher) tensor(t *tensor.Tensor) {
	h.int(int64(t.Type))
	h.ints(t.Shape)
	h.bytes(t.Data)
	for _, s := range t.Strings {
		h.text(s)
	}
	if q := t.Quant; q != nil {
		for _, s := range q.Scale {
			h.int(int64(math.Float32bits(s)))
		}
		for _, z := range q.Zero {
			h.int(z)
		}
	}
}

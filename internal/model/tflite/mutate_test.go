package tflite

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// smallModel makes a model with most kinds of tables, as a seed for mutation.
func smallModel(t testing.TB) []byte {
	t.Helper()
	f32 := func(id int, name string, shape ...int) *graph.Value {
		return &graph.Value{ID: id, Name: name, Type: tensor.Float32, Shape: shape, HasShape: true}
	}
	main := &graph.Graph{Name: "main", Inputs: []int{0}, Outputs: []int{3}, Values: []*graph.Value{
		f32(0, "in", -1, 4), f32(1, "w", 2, 4), f32(2, "b", 2), f32(3, "out", -1, 2),
		{ID: 4, Name: "text", Type: tensor.String, Shape: []int{2}, HasShape: true, Const: &tensor.Tensor{Type: tensor.String, Shape: []int{2}, Data: []byte{}, Strings: []string{"a", "bc"}}},
		{ID: 5, Name: "state", Type: tensor.Int8, Shape: []int{3}, HasShape: true, Variable: true, Quant: &tensor.Quant{Scale: []float32{0.5}, Zero: []int64{3}}},
	}}
	main.Values[1].Const = tensor.From(tensor.Float32, []int{2, 4}, make([]float32, 8))
	main.Values[2].Const = tensor.From(tensor.Float32, []int{2}, []float32{1, 2})
	main.Nodes = []*graph.Node{
		{Domain: graph.TFLite, Op: "FULLY_CONNECTED", Version: 1, Inputs: []int{0, 1, 2}, Outputs: []int{3}, Attrs: graph.Attrs{"fused_activation_function": "RELU6"}},
		{Index: 1, Domain: graph.TFLiteCustom, Op: "Odd", Version: 1, Inputs: []int{4, -1, 5}, Attrs: graph.Attrs{"custom_options": []byte{1, 2, 3}}},
		{Index: 2, Domain: graph.TFLite, Op: "WHILE", Version: 1, Inputs: []int{3}, Attrs: graph.Attrs{"cond_subgraph_index": graph.GraphRef(1), "body_subgraph_index": graph.GraphRef(1)}},
		{Index: 3, Domain: graph.TFLite, Op: "STABLEHLO_COMPOSITE", Version: 1, Attrs: graph.Attrs{"name": "x", "decomposition_subgraph_index": graph.GraphRef(1), "composite_attributes": []byte{9}}},
	}
	m := &graph.Model{
		Description: "seed", Graphs: []*graph.Graph{main, {Index: 1, Values: []*graph.Value{f32(0, "x")}, Inputs: []int{0}, Outputs: []int{0}}},
		Metadata:   []graph.Metadata{{Name: "OfflineMemoryAllocation", Data: make([]byte, 36)}},
		Signatures: []graph.Signature{{Key: "serve", Inputs: []graph.SignatureTensor{{Name: "x"}}, Outputs: []graph.SignatureTensor{{Name: "y", Value: 3}}}},
	}
	data, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// seeds returns the small model and, where the material is, real ones up to a size.
func seeds(t testing.TB, limit int64) [][]byte {
	t.Helper()
	out := [][]byte{smallModel(t), {}, []byte("TFL3"), bytes.Repeat([]byte{0xff}, 64)}
	dir := os.Getenv("OPMETER_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "models", "tflite_ops", "*.tflite"))
	for _, f := range files {
		if st, err := os.Stat(f); err == nil && st.Size() <= limit {
			if b, err := os.ReadFile(f); err == nil {
				out = append(out, b)
			}
		}
	}
	return out
}

func FuzzParse(f *testing.F) {
	for _, s := range seeds(f, 1500) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data, "fuzz")
		if err != nil {
			return
		}
		if err := m.Validate(); err != nil {
			t.Errorf("accepted, but %v", err)
		}
	})
}

// Bounds of a parse: a small multiple of the file and a constant. Objects for an
// operator are some ten times larger than its smallest encoding.
const (
	memoryFactor = 128
	memoryBase   = 4 << 20
	timeBase     = 2 * time.Second // a hang takes for ever, a busy machine does not
)

// TestMutations changes models at random. OPMETER_MUTATIONS sets the number.
func TestMutations(t *testing.T) {
	n := 20_000
	if s := os.Getenv("OPMETER_MUTATIONS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	if testing.Short() {
		n = min(n, 2000)
	}
	list := seeds(t, 64<<10)
	r := rand.New(rand.NewPCG(1, 2))
	accepted, worst := 0, 0.0
	var before, after runtime.MemStats
	const batch = 50 // reading the statistics stops the world
	for i := 0; i < n; i += batch {
		inputs := make([][]byte, batch)
		size := 0
		for k := range inputs {
			inputs[k] = mutate(r, list)
			size = max(size, len(inputs[k]))
		}
		runtime.ReadMemStats(&before)
		for _, b := range inputs {
			start := time.Now()
			m, err := Parse(b, "mutated")
			if d := time.Since(start); d > timeBase {
				t.Fatalf("%d bytes took %v", len(b), d)
			}
			if err == nil {
				accepted++
				if err := m.Validate(); err != nil {
					t.Fatalf("accepted, but %v", err)
				}
			}
		}
		runtime.ReadMemStats(&after)
		used := float64(after.TotalAlloc - before.TotalAlloc)
		total := 0
		for _, b := range inputs {
			total += len(b)
		}
		if limit := float64(memoryFactor*total + batch*memoryBase); used > limit {
			t.Fatalf("%d bytes of input took %.0f bytes of memory", total, used)
		}
		worst = max(worst, used/float64(total+batch))
	}
	t.Logf("%d mutations of %d models: %d accepted, no panic, at most %.0f bytes of memory a byte of input", n, len(list), accepted, worst)
}

// mutate changes one to eight places of a model: bytes, words, ranges, length.
func mutate(r *rand.Rand, list [][]byte) []byte {
	b := bytes.Clone(list[r.IntN(len(list))])
	edges := []uint32{0, 1, 2, 4, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 1 << 20, 1 << 28}
	for range 1 + r.IntN(8) {
		if len(b) < 8 {
			return append(b, byte(r.Uint32()))
		}
		at := r.IntN(len(b))
		switch r.IntN(6) {
		case 0:
			b[at] ^= 1 << r.IntN(8)
		case 1:
			b[at] = byte(r.Uint32())
		case 2: // a word, as offsets, lengths and indices are
			at = min(at, len(b)-4) &^ 3
			v := edges[r.IntN(len(edges))]
			b[at], b[at+1], b[at+2], b[at+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
		case 3: // a small change of a word
			at = min(at, len(b)-4) &^ 3
			b[at] += byte(r.IntN(9) - 4)
		case 4:
			from := r.IntN(len(b))
			copy(b[at:], b[from:min(len(b), from+1+r.IntN(64))])
		case 5:
			if r.IntN(4) == 0 {
				b = b[:at]
			}
		}
	}
	return b
}

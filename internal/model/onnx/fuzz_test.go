package onnx

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// seeds are small models that reach most of the reader.
func seeds() [][]byte {
	return [][]byte{
		model(input("x"), scalar("w"), node("Add y = x w"), output("y")),
		model(input("x"), sparse(4, 2), node("Add y = x w"), output("y")),
		model(input("x"), node("If y = x", attr("then_branch", kindGraph, sub(attrG, node("Relu r = x"), output("r")))), output("y")),
		modelWith([]func(*message){
			function("F", "a", "b", nodeIn(functionNode, "Relu b = a")),
			function("G", "a", "c", nodeIn(functionNode, "local:F b = a"), nodeIn(functionNode, "local:F c = b")),
		}, input("x"), node("local:G y = x"), output("y")),
		model(externalTensor(2, "location", "w.bin", "offset", "8"), input("x"), node("Add y = x w")),
		model(node("Constant c =", attr("value_ints", kindInts, num(attrInts, 7))), node("Relu b = a"), node("Relu a = c"), output("b")),
	}
}

// check parses hostile data and judges memory: a constant for the budgets and a
// multiple of the file for its contents.
func check(t *testing.T, data []byte) (accepted bool) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	m, err := Parse(data, "m.onnx", "")
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if n, most := after.TotalAlloc-before.TotalAlloc, uint64(128<<20+400*len(data)); n > most {
		t.Errorf("%d bytes of input made it allocate %d bytes (at most %d expected)", len(data), n, most)
	}
	if took > 20*time.Second {
		t.Errorf("%d bytes of input took %v", len(data), took)
	}
	if err != nil {
		var e *Error
		if m != nil || !errors.As(err, &e) || e.Offset > int64(len(data)) {
			t.Errorf("model %v, error %T %v", m, err, err)
		}
		return false
	}
	if err := m.Validate(); err != nil {
		t.Errorf("accepted, but %v", err)
	}
	return true
}

func FuzzParse(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) { check(t, data) })
}

func FuzzParseValue(f *testing.F) {
	f.Add([]byte(msg(num(tensorDims, 2), num(tensorDataType, 1), raw(tensorRawData, 0, 0, 128, 63, 0, 0, 0, 0))))
	f.Add([]byte(msg(sub(sequenceTensors, num(tensorDataType, 7), num(tensorInt64Data, 5)))))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, read := range []func([]byte) error{
			func(b []byte) error { _, err := ParseTensor(b); return err },
			func(b []byte) error { _, err := ParseSequence(b); return err },
			func(b []byte) error { _, err := ParseOptional(b); return err },
		} {
			var e *Error
			if err := read(data); err != nil && !errors.As(err, &e) {
				t.Errorf("error %T %v", err, err)
			}
		}
	})
}

// mutate changes, copies, cuts or inserts a few bytes.
func mutate(r *rand.Rand, data []byte) []byte {
	out := append([]byte(nil), data...)
	for range 1 + r.IntN(8) {
		if len(out) == 0 {
			return out
		}
		i := r.IntN(len(out))
		switch r.IntN(6) {
		case 0:
			out[i] ^= 1 << r.IntN(8)
		case 1:
			out[i] = byte(r.Uint32())
		case 2:
			out[i] = [...]byte{0, 0x7f, 0x80, 0xff}[r.IntN(4)]
		case 3:
			out = out[:i]
		case 4:
			n := min(1+r.IntN(16), len(out)-i)
			out = append(out[:i], out[i+n:]...)
		case 5:
			n := min(1+r.IntN(64), len(out)-i)
			out = append(out[:i+n], out[i:]...)
		}
	}
	return out
}

// TestMutations parses damaged models: OPMETER_MUTATIONS of them, by default few.
func TestMutations(t *testing.T) {
	total := 3000
	if s := os.Getenv("OPMETER_MUTATIONS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		total = n
	}
	sources := seeds()
	if dir := material.Dir(); dir != "" {
		for _, pattern := range []string{"real", "synthetic"} {
			files, err := filepath.Glob(filepath.Join(dir, "models", pattern, "*.onnx"))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range files {
				// Small files: most bytes of large ones are weights.
				if st, err := os.Stat(p); err != nil || st.Size() > 100<<10 {
					continue
				}
				data, err := os.ReadFile(p)
				if err != nil {
					t.Fatal(err)
				}
				sources = append(sources, data)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for i := range total {
		data := mutate(r, sources[i%len(sources)])
		if i%50 == 49 {
			data = make([]byte, r.IntN(256))
			for k := range data {
				data[k] = byte(r.Uint32())
			}
		}
		if check(t, data) {
			accepted++
		}
		if t.Failed() {
			name := filepath.Join(os.TempDir(), "opmeter-mutation.onnx")
			_ = os.WriteFile(name, data, 0o644)
			t.Fatalf("mutation %d, kept as %s", i, name)
		}
	}
	t.Logf("%d damaged models from %d sources: %d accepted, %d refused", total, len(sources), accepted, total-accepted)
}

package tflm

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// The planned part agrees with TensorFlow Lite Micro to the byte.
func TestPlannedBytes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(material.Path(t, "golden"), "*", "tflm", "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	n, resources := 0, 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var golden struct {
			Arena *struct {
				Bytes      int `json:"nonPersistentBytes"`
				Persistent int `json:"persistentBytes64bit"`
			} `json:"arena"`
		}
		if err := jsonx.Unmarshal(b, &golden); err != nil {
			t.Fatal(err)
		}
		if golden.Arena == nil {
			continue
		}
		name := filepath.Base(filepath.Dir(filepath.Dir(f)))
		m, err := tflite.Open(material.Path(t, "models", "real", name))
		if err != nil {
			t.Fatal(err)
		}
		a, err := Plan(m, Reference)
		if err != nil || a.Plan == nil {
			t.Errorf("%s: %v %s", name, err, a.Problem)
			continue
		}
		if a.Plan.Bytes != golden.Arena.Bytes {
			t.Errorf("%s: %d bytes, want %d", name, a.Plan.Bytes, golden.Arena.Bytes)
		}
		// Where there are resource variables, their buffers are a third of it. Structures of a
		// 32-bit part are smaller than those of 64 bits that were measured, by up to a fifth of
		// the whole in these models.
		if b := variables(m); b > 0 {
			resources++
			if p := a.PersistentBytes; p > golden.Arena.Persistent || 5*p < 4*golden.Arena.Persistent {
				t.Errorf("%s: %d persistent bytes with %d of variables, %d with 64 bits", name, p, b, golden.Arena.Persistent)
			}
		}
		if len(m.Graphs) == 1 && a.PeakBytes > a.Plan.Bytes {
			t.Errorf("%s: %d bytes in use at one time in a plan of %d", name, a.PeakBytes, a.Plan.Bytes)
		}
		if m.Close != nil {
			_ = m.Close()
		}
		n++
	}
	if n < 25 || resources < 3 {
		t.Errorf("%d models, %d with resource variables", n, resources)
	}
}

// Memory that the MLTK profiler found on devices: within 0.5 % above 30 kB and
// within 5 % below. One model is known to be unexplained: with the second kernels
// fingerprint_signature_generator takes 143.0 kB, its plan alone 94.4.
func TestPublishedMemory(t *testing.T) {
	t.Parallel()
	const unexplained = "9f287437"
	kernels := map[string]Kernels{"baseline": MVPFirst, "speed_opt": MVP, "none": CMSISNN}
	n := 0
	for _, r := range material.Table(t, "data", "mltk_golden.csv") {
		// The first release with the present runtime is 0.7; simulators run on 64 bits.
		if r["mode"] != "device" || r["tflite_match"] == "" || strings.HasPrefix(r["first_version"], "0.6") {
			continue
		}
		if r["tflite_sha1_8"] == unexplained && r["conv_kernel"] == "speed_opt" {
			continue
		}
		files, _ := filepath.Glob(filepath.Join(material.Path(t, "models", "mltk"), "*__"+r["tflite_sha1_8"]+".tflite"))
		want, err := strconv.ParseFloat(r["runtime_memory_bytes"], 64)
		if err != nil || len(files) == 0 {
			continue
		}
		m, err := tflite.Open(files[0])
		if err != nil {
			t.Fatal(err)
		}
		a, err := Plan(m, kernels[r["conv_kernel"]])
		if err != nil {
			t.Fatal(err)
		}
		e := float64(a.Total())/want - 1
		most := 0.05
		if want > 30e3 {
			most = 0.005
		}
		n++
		if math.Abs(e) > most {
			t.Errorf("%s %s: %d bytes, published %.0f (%+.2f %%)", r["table_id"], r["model"], a.Total(), want, 100*e)
		}
	}
	if n < 35 {
		t.Errorf("%d tables", n)
	}
}

// Softmax with 16-bit activations keeps its two tables of 513 values, once for each
// operator.
func TestSoftmaxTables(t *testing.T) {
	t.Parallel()
	of := func(typ tensor.Type, n int) int {
		g := &graph.Graph{}
		for i := range n {
			g.Values = append(g.Values, &graph.Value{ID: 2 * i, Type: typ, Shape: []int{1, 4}, HasShape: true}, &graph.Value{ID: 2*i + 1, Type: typ, Shape: []int{1, 4}, HasShape: true})
			g.Nodes = append(g.Nodes, &graph.Node{Index: i, Op: "SOFTMAX", Domain: graph.TFLite, Inputs: []int{2 * i}, Outputs: []int{2*i + 1}})
		}
		return persistent(&graph.Model{Format: "tflite", Graphs: []*graph.Graph{g}}, CMSISNN)
	}
	for n := range 3 {
		if got, want := of(tensor.Int16, n)-of(tensor.Int8, n), n*2*513*2; got != want {
			t.Errorf("%d operators: %d bytes more than with 8 bits, want %d", n, got, want)
		}
	}
}

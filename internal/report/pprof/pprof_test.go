package pprof

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	format "github.com/google/pprof/profile"

	"github.com/opmeter/opmeter/internal/report/spans"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

func write(t *testing.T, p *profile.Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		p := sample.Random(rand.New(rand.NewPCG(seed, 3)))
		f, err := format.ParseData(write(t, p))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		wall := -1
		for i, s := range f.SampleType {
			if s.Type == f.DefaultSampleType {
				wall = i
			}
		}
		if wall != 1 {
			t.Fatalf("seed %d: the default %q is at %d", seed, f.DefaultSampleType, wall)
		}
		at := 0
		leaves := map[string]bool{}
		for i := range p.Layers {
			l := &p.Layers[i]
			if !takesPart(l) {
				continue
			}
			s := f.Sample[at]
			at++
			leaf, root, kind := s.Location[0].Line[0], s.Location[len(s.Location)-1].Line[0].Function.Name, s.Location[len(s.Location)-2].Line[0].Function.Name
			if !strings.HasPrefix(leaf.Function.Name, name(l)) || root != p.Model.Name || kind != l.Op || leaf.Line != spans.Node(l)+1 {
				t.Fatalf("seed %d: layer %d is %q in %q in %q, line %d", seed, i, leaf.Function.Name, kind, root, leaf.Line)
			}
			if leaves[leaf.Function.Name] {
				t.Fatalf("seed %d: two layers are called %q", seed, leaf.Function.Name)
			}
			leaves[leaf.Function.Name] = true
			v, _ := l.Latency.Best()
			if got := s.Value[wall]; got != int64(math.Round(v*1e9)) {
				t.Fatalf("seed %d: layer %d takes %d ns, want %g s", seed, i, got, v)
			}
			if got := s.Label["op_type"]; len(got) != 1 || got[0] != l.Op {
				t.Fatalf("seed %d: op_type %q", seed, got)
			}
		}
		if at != len(f.Sample) {
			t.Fatalf("seed %d: %d samples of %d layers", seed, len(f.Sample), at)
		}
	}
}

// nested is a loop within scopes, with a body.
func nested() *profile.Profile {
	p := sample.Large(4, 1, 0)
	for i := range p.Layers {
		p.Layers[i].Latency = profile.Value(profile.Measured, float64(i+1)*1e-3, "")
		p.Layers[i].MACs = nil
	}
	p.Layers[1].Op, p.Layers[1].Name = "Loop", "the loop"
	p.Layers[2].Parent, p.Layers[2].Graph, p.Layers[2].Scope = new(int64(1)), "body", "a/b"
	p.Layers[2].Provenance.SourceNodes[0].Node = 41
	p.Layers[3].Energy = profile.Value(profile.Estimated, 2e-6, "")
	return p
}

func TestStack(t *testing.T) {
	t.Parallel()
	f := convert(nested())
	var stack []string
	for _, l := range f.Sample[2].Location {
		stack = append(stack, l.Line[0].Function.Name)
	}
	if got, want := strings.Join(stack, " < "), "model/block_0/layer_2 < a/b < a < the loop < ADD < large"; got != want {
		t.Errorf("stack %q, want %q", got, want)
	}
	var types []string
	for _, s := range f.SampleType {
		types = append(types, s.Type+"/"+s.Unit)
	}
	if got, want := strings.Join(types, " "), "inferences/count wall/nanoseconds bytes/bytes energy/nanojoules"; got != want {
		t.Errorf("figures %q, want %q", got, want)
	}
	if got := f.Sample[3].Value; got[1] != 4e6 || got[3] != 2000 {
		t.Errorf("values %v", got)
	}
}

// TestReader runs what a user runs.
func TestReader(t *testing.T) {
	t.Parallel()
	gotool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	if err := exec.Command(gotool, "tool", "pprof", "-help").Run(); err != nil {
		t.Skip("no go tool pprof")
	}
	dir := t.TempDir()
	file := func(name string, p *profile.Profile) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, write(t, p), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p := nested()
	// The model as pprof looks for it, so that -list finds lines.
	p.Model.Path = filepath.Join(dir, "large.tflite")
	if err := os.WriteFile(p.Model.Path, []byte(strings.Repeat("a line\n", 50)), 0o600); err != nil {
		t.Fatal(err)
	}
	a := file("a.pb.gz", p)
	p.Layers[0].Latency = profile.Value(profile.Measured, 6e-3, "")
	b := file("b.pb.gz", p)
	for _, tt := range []struct {
		name string
		args []string
		want []string
		not  string
	}{
		{"top", []string{"-top", a}, []string{"Type: wall", "10ms", "4ms 40.00%", "model/block_0/layer_3", "the loop"}, ""},
		{"tree", []string{"-tree", a}, []string{"model/block_0/layer_2", "| ", "a/b"}, ""},
		{"list", []string{"-list", "layer_2", a}, []string{"ROUTINE", "3ms", "42:a line"}, "layer_1"},
		{"tag", []string{"-top", "-tagfocus", "node_index=41", a}, []string{"layer_2"}, "layer_3"},
		{"first", []string{"-top", "-tagfocus", "layer=0", a}, []string{"layer_0"}, "layer_3"},
		{"type", []string{"-top", "-tagfocus", "op_type=ADD", a}, []string{"layer_2"}, "layer_0"},
		{"difference", []string{"-top", "-diff_base", a, b}, []string{"5ms", "model/block_0/layer_0"}, ""},
		{"bytes", []string{"-top", "-sample_index", "bytes", a}, []string{"512kB", "128kB 25.00%"}, ""},
		{"energy", []string{"-top", "-sample_index", "energy", a}, []string{"layer_3"}, ""},
		{"comments", []string{"-comments", a}, []string{"per-operator profile of one inference of large on host"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := exec.Command(gotool, append([]string{"tool", "pprof", "-nodefraction=0"}, tt.args...)...)
			c.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, w := range tt.want {
				if !strings.Contains(string(out), w) {
					t.Errorf("no %q in\n%s", w, out)
				}
			}
			if tt.not != "" && strings.Contains(string(out), tt.not) {
				t.Errorf("%q in\n%s", tt.not, out)
			}
		})
	}
}

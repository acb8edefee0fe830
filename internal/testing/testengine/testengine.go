// Package testengine has an engine that misbehaves on demand: it crashes, hangs, ends the process,
// writes where it must not, starts processes, uses up memory, at any point of its life. The program
// below this package opens it under the names of the real engines.
//
// Its library is a file that says what it does ([Write]), so that parallel tests each have their
// own. Only tests and benchmarks import this package.
package testengine

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/profile"
)

// Behaviour says how a library behaves.
type Behaviour struct {
	// Version that it tells, "9.9.9" by default.
	Version string `json:"version,omitzero"`
	// Run is how long an inference takes, 20 microseconds by default.
	Run time.Duration `json:"run,omitzero"`
	// Work is an amount of work that an inference does instead of taking a time: see [Compute].
	Work int `json:"work,omitzero"`
	// Faults are what goes wrong.
	Faults []Fault `json:"faults,omitzero"`
	// RunLimit is how many runs its profiler holds, 0 for any number.
	RunLimit int `json:"run_limit,omitzero"`
	// NoProfiler makes an engine without one.
	NoProfiler bool `json:"no_profiler,omitzero"`
	// Wrong makes outputs that are not the model's.
	Wrong bool `json:"wrong,omitzero"`
	// NoCeilings refuses the models that show an engine's peaks, which take most of the time of a
	// short measurement.
	NoCeilings bool `json:"no_ceilings,omitzero"`
}

// Fault is something that goes wrong at a place.
type Fault struct {
	At   Place `json:"at"`
	What What  `json:"what"`
	// After is the number of times that the place is passed before it happens.
	After int `json:"after,omitzero"`
	// Later is the time from the opening before which it does not happen; After counts for nothing
	// then.
	Later time.Duration `json:"later_ns,omitzero"`
	// File is written when it happens, with the number of the process that was started or of the
	// engine's own.
	File string `json:"file,omitzero"`
}

// Place is a point in the life of an engine.
type Place string

// Places, in the order in which they are passed.
const (
	Open     Place = "open"
	About    Place = "about"
	Load     Place = "load"
	First    Place = "first"   // the first inference of the first session
	Outputs  Place = "outputs" // when outputs are read
	Profiled Place = "profiled"
	Run      Place = "run" // any inference
	After    Place = "after"
	Recorded Place = "recorded"
	Beside   Place = "beside" // when another session is made
	Close    Place = "close"
)

// Write makes a library that behaves so in a folder and returns its path. The file begins as a
// library of this system does, and is none.
func Write(dir string, b Behaviour) (string, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "libfake.so")
	return path, os.WriteFile(path, append(header(), text...), 0o755)
}

// headerBytes is the length of what stands before the behaviour.
const headerBytes = 256

// header is the beginning of a library for this system and processor.
func header() []byte {
	b := make([]byte, headerBytes)
	le := binary.LittleEndian
	switch runtime.GOOS {
	case "darwin":
		le.PutUint32(b, 0xfeedfacf)
		le.PutUint32(b[4:], map[string]uint32{"amd64": 0x01000007, "arm64": 0x0100000c}[runtime.GOARCH])
		le.PutUint32(b[12:], 6)
	case "windows":
		copy(b, "MZ")
		le.PutUint32(b[60:], 128)
		copy(b[128:], "PE\x00\x00")
		le.PutUint16(b[132:], map[string]uint16{"amd64": 0x8664, "arm64": 0xaa64}[runtime.GOARCH])
		le.PutUint16(b[150:], 0x2022)
	default:
		copy(b, "\x7fELF\x02\x01\x01")
		le.PutUint16(b[16:], 3)
		le.PutUint16(b[18:], map[string]uint16{"amd64": 62, "arm64": 183, "riscv64": 243}[runtime.GOARCH])
	}
	return b
}

// Opener opens libraries of this package under an engine's name.
func Opener(engine string) func(library string) (external.Library, error) {
	return func(library string) (external.Library, error) {
		text, err := os.ReadFile(library)
		l := &lib{engine: engine, passed: map[Place]int{}, opened: time.Now()}
		if err != nil || len(text) < headerBytes || json.Unmarshal(text[headerBytes:], &l.b) != nil {
			return nil, external.Errorf(external.NotLibrary, "%s is not a library of %s", library, engine)
		}
		return l, l.pass(Open)
	}
}

type lib struct {
	engine string
	b      Behaviour
	mu     sync.Mutex // streams pass at the same time
	passed map[Place]int
	loads  int
	opened time.Time
}

// pass does what goes wrong at a place.
func (l *lib) pass(at Place) error {
	l.mu.Lock()
	n := l.passed[at]
	l.passed[at]++
	l.mu.Unlock()
	for _, f := range l.b.Faults {
		if f.At == at && (f.Later == 0 && n == f.After || f.Later > 0 && time.Since(l.opened) > f.Later) {
			if err := f.happen(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lib) About() external.About {
	_ = l.pass(About)
	version := l.b.Version
	if version == "" {
		version = "9.9.9"
	}
	return external.About{
		Engine: l.engine, Title: "Fake Engine", Version: version, Formats: []string{"onnx", "tflite"}, Providers: []string{"FakeProvider"},
		Options: []external.OptionInfo{{Key: "speed", Values: "slow, fast", Doc: "does nothing"}}, Gives: []string{"latency_s"},
	}
}

func (l *lib) Load(t *external.Task) (external.Session, error) {
	for _, o := range t.Options {
		if o.Key != "speed" {
			return nil, external.Errorf(external.NoOption, "Fake Engine has no option %q: use speed", o.Key)
		}
	}
	if _, err := os.Stat(t.Model); err != nil {
		return nil, external.Errorf(external.Rejected, "Fake Engine cannot read the model: %v", err)
	}
	if l.b.NoCeilings && strings.HasPrefix(filepath.Base(t.Folder), "ceiling-") {
		return nil, external.Errorf(external.Rejected, "Fake Engine refuses models of ceilings")
	}
	if err := l.pass(Load); err != nil {
		return nil, err
	}
	s := &session{lib: l, task: t, first: l.loads == 0}
	l.loads++
	// Something that stays where nobody removes it.
	if err := os.WriteFile(filepath.Join(t.Folder, fmt.Sprintf("fake-%d.json", l.loads)), []byte("{}"), 0o600); err != nil {
		return nil, err
	}
	if t.Profiled && !l.b.NoProfiler {
		return &profiled{session: s}, nil
	}
	return s, nil
}

// session computes max(0, x) of float inputs, and hands on others as they are.
type session struct {
	lib   *lib
	task  *external.Task
	first bool
}

func (s *session) Run() error {
	if s.first {
		s.first = false
		if err := s.lib.pass(First); err != nil {
			return err
		}
	}
	if err := s.lib.pass(Run); err != nil {
		return err
	}
	if s.lib.b.Work > 0 {
		Compute(s.lib.b.Work)
		return nil
	}
	d := s.lib.b.Run
	if d == 0 {
		d = 20 * time.Microsecond
	}
	for start := time.Now(); time.Since(start) < d; {
	}
	return nil
}

func (s *session) Outputs() ([]external.Tensor, error) {
	if err := s.lib.pass(Outputs); err != nil {
		return nil, err
	}
	var out []external.Tensor
	for i, t := range s.task.Inputs {
		t.Name, t.Data = fmt.Sprint("y", i), slices.Clone(t.Data)
		if t.DType == "float32" {
			for k := 0; k+4 <= len(t.Data); k += 4 {
				v := math.Float32frombits(binary.LittleEndian.Uint32(t.Data[k:]))
				if s.lib.b.Wrong {
					v++
				}
				binary.LittleEndian.PutUint32(t.Data[k:], math.Float32bits(max(0, v)))
			}
		}
		out = append(out, t)
	}
	return out, nil
}

func (s *session) Clone() (external.Session, error) {
	if err := s.lib.pass(Beside); err != nil {
		return nil, err
	}
	return &session{lib: s.lib, task: s.task}, nil
}

func (s *session) Facts() external.Facts {
	return external.Facts{Settings: map[string]string{"speed": "slow"}, Notes: []string{"this engine is not real"}}
}

func (s *session) Close() error { return s.lib.pass(Close) }

// profiled has a profiler that tells of one operator.
type profiled struct {
	*session
	tally runlog.Tally
	runs  int
}

func (p *profiled) Run() error {
	if err := p.lib.pass(Profiled); err != nil {
		return err
	}
	return p.session.Run()
}

func (p *profiled) AfterRun(wall int64, disturbed bool) error {
	if err := p.lib.pass(After); err != nil {
		return err
	}
	d := p.lib.b.Run.Nanoseconds()
	if d == 0 {
		d = 20_000
	}
	p.tally.Call(0, d)
	if disturbed {
		p.tally.Disturbed()
	}
	p.tally.End(wall)
	p.runs++
	return nil
}

func (p *profiled) Remaining() int {
	if p.lib.b.RunLimit == 0 {
		return -1
	}
	return p.lib.b.RunLimit - p.runs
}

func (p *profiled) Reset() error {
	p.tally, p.runs = runlog.Tally{}, 0
	return nil
}

func (p *profiled) Records() (*runlog.Run, error) {
	if err := p.lib.pass(Recorded); err != nil {
		return nil, err
	}
	p.runs = 0
	run := &runlog.Run{
		Profile: &profile.Profile{Layers: []profile.Layer{{Name: "relu", Op: "Relu"}}},
		Hints:   []join.Hint{{Index: new(int64(0))}},
	}
	p.tally.Fill(run.Profile)
	return run, nil
}

// Compute does so many units of work that neither memory nor other threads have to do with.
func Compute(units int) {
	v := uint64(1)
	for range units {
		v = v*6364136223846793005 + 1442695040888963407
	}
	if v == 0 {
		panic("the compiler may not leave the loop out")
	}
}

// Model writes a small model that these engines compute: y = max(0, x).
func Model(path string) error {
	g := &graph.Graph{Name: "relu", Inputs: []int{0}, Outputs: []int{1}}
	for _, n := range []string{"x", "y"} {
		g.Values = append(g.Values, &graph.Value{Name: n, Type: tensor.Float32, Shape: []int{1, 64}, HasShape: true})
	}
	g.Nodes = []*graph.Node{{Name: "relu", Op: "Relu", Version: 17, Inputs: []int{0}, Outputs: []int{1}}}
	b, err := onnx.Encode(&graph.Model{Format: "onnx", IRVersion: 8, Opsets: map[string]int{"": 17}, Graphs: []*graph.Graph{g}})
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// Lines gives the numbers of processes that faults wrote to a file.
func Lines(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

// Program llm compares prefill and decode of a 4-bit language model with random weights in opmeter,
// llama.cpp and ONNX Runtime GenAI, interleaved. It needs a Python with the packages
// llama-cpp-python, onnxruntime-genai, gguf and onnx:
//
//	go run ./bench/llm -python venv/bin/python
//	go run ./bench/llm -python venv/bin/python -model 16,2048,32,8,5632,32000 -threads 2
//	go run ./bench/llm -python venv/bin/python -engine onnxruntime=LIBRARY -engine openvino=LIBRARY
//	go run ./bench/llm -python venv/bin/python -engine onnxruntime=LIBRARY -only "ONNX Runtime"
//
// Engines of opmeter run one step again and again, where GenAI generates tokens. ONNX Runtime also
// runs in a loop of Python that binds caches once: what opmeter measures in it should be the same.
//
// It compares the logits of the prompt, too. The runtimes round activations to 8 bits in different
// ways, so these agree to a few per cent only.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter"
	external "github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/model/gguf"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/internal/runtime/operators"
)

var (
	python  = flag.String("python", "python3", "Python with the packages")
	model   = flag.String("model", "8,1024,16,8,2816,8192", "layers, width, heads, KV heads, inner width and vocabulary")
	threads = flag.Int("threads", 1, "threads")
	prompt  = flag.Int("prompt", 128, "tokens of the prompt")
	depth   = flag.Int("context", 512, "positions in the cache at decode")
	tokens  = flag.Int("tokens", 16, "tokens of each decode")
	only    = flag.String("only", "", "run the runtimes whose names contain this")
	rounds  = flag.Int("rounds", 7, "rounds, in each of which every runtime runs once")
	engines = map[string]string{}
)

// titles are the engines of opmeter that can be compared.
var titles = map[string]string{"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}

// answer is what a runtime measures in a round.
type answer struct {
	Prefill float64   `json:"prefill_s"`
	Decode  float64   `json:"decode_s"`
	Logits  []float64 `json:"logits"`
}

func main() {
	flag.Func("engine", "`NAME=LIBRARY` of an engine of opmeter: onnxruntime (that of the package in Python) or openvino", func(s string) error {
		name, library, _ := strings.Cut(s, "=")
		if titles[name] == "" || library == "" {
			return fmt.Errorf("want onnxruntime=LIBRARY or openvino=LIBRARY, not %q", s)
		}
		engines[name] = library
		return nil
	})
	flag.Parse()
	if err := compare(); err != nil {
		fmt.Fprintln(os.Stderr, "llm:", err)
		os.Exit(1)
	}
}

// contender is a runtime with its measurements.
type contender struct {
	name    string
	measure func() (answer, error)
	got     []answer
	failed  error
}

func compare() error {
	dir, err := os.MkdirTemp("", "llm")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	here := filepath.Join("bench", "llm")
	if _, err := script(filepath.Join(here, "models.py"), append([]string{dir}, strings.Split(*model, ",")...)...); err != nil {
		return err
	}
	peer := func(name string) func() (answer, error) {
		return func() (a answer, err error) {
			out, err := script(filepath.Join(here, "peers.py"), name, dir, strconv.Itoa(*threads), strconv.Itoa(*prompt), strconv.Itoa(*depth), strconv.Itoa(*tokens))
			if err == nil {
				err = json.Unmarshal(out, &a)
			}
			return a, err
		}
	}
	runtimes := []contender{
		{name: "opmeter", measure: func() (answer, error) { return own(filepath.Join(dir, "net.gguf"), nil) }},
		{name: "llama.cpp", measure: peer("llama")},
		{name: "ONNX Runtime GenAI", measure: peer("genai")},
	}
	helper := filepath.Join(dir, "opmeter-engine")
	if len(engines) > 0 {
		if out, err := exec.Command("go", "build", "-o", helper, "./cmd/opmeter-engine").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(engines)) {
		if name == "onnxruntime" {
			runtimes = append(runtimes, contender{name: "ONNX Runtime, loop", measure: peer("ort")})
		}
		e := &external.Engine{Name: name, Library: engines[name], Helper: helper}
		runtimes = append(runtimes, contender{name: titles[name] + " here", measure: func() (answer, error) { return own(filepath.Join(dir, "genai", "model.onnx"), e) }})
	}
	runtimes = slices.DeleteFunc(runtimes, func(r contender) bool { return !strings.Contains(r.name, *only) })
	if len(runtimes) == 0 {
		return fmt.Errorf("no runtime's name contains %q", *only)
	}
	for round := range *rounds {
		for i := range runtimes {
			r := &runtimes[(i+round)%len(runtimes)] // each comes first in turn
			if r.failed != nil {
				continue
			}
			var a answer
			if a, r.failed = r.measure(); r.failed == nil {
				r.got = append(r.got, a)
			}
		}
	}
	want, err := logits(filepath.Join(dir, "net.gguf"))
	if err != nil {
		return err
	}
	fmt.Printf("model %s, %d threads, prompt %d, context %d, medians of %d rounds (quartiles)\n", *model, *threads, *prompt, *depth, *rounds)
	fmt.Printf("%-20s %28s %28s  %s\n", "runtime", "prefill tokens/s", "decode tokens/s", "logits differ by")
	for i := range runtimes {
		r := &runtimes[i]
		if r.failed != nil {
			fmt.Printf("%-20s failed: %v\n", r.name, r.failed)
			continue
		}
		differ := "-"
		if l := r.got[0].Logits; l != nil {
			differ = fmt.Sprintf("%.1f %% (root mean square)", 100*difference(l, want))
		}
		fmt.Printf("%-20s %28s %28s  %s\n", r.name,
			rate(r.got, func(a answer) float64 { return float64(*prompt) / a.Prefill }), rate(r.got, func(a answer) float64 { return 1 / a.Decode }), differ)
	}
	return nil
}

// script runs a program of Python and returns what it prints.
func script(file string, args ...string) ([]byte, error) {
	c := exec.Command(*python, append([]string{file}, args...)...)
	c.Stderr = os.Stderr
	return c.Output()
}

// own measures in opmeter, or in one of its engines.
func own(file string, e *external.Engine) (a answer, err error) {
	m, err := opmeter.Open(file)
	if err != nil {
		return a, err
	}
	p, err := opmeter.Profile(context.Background(), m, opmeter.Options{Engine: e, Threads: *threads, Phases: &opmeter.Phases{Prompts: []int{*prompt}, Contexts: []int{*depth}}})
	if err != nil {
		return a, err
	}
	prefill, ok := p.Totals.Figure("ttft_s").Best()
	decode, known := p.Totals.Figure("tpot_s").Best()
	if !ok || !known {
		return a, fmt.Errorf("%s: no times of phases", file)
	}
	return answer{Prefill: prefill, Decode: decode}, nil
}

// logits computes those of the prompt's last token.
func logits(file string) ([]float64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m, err := gguf.Parse(data, file)
	if err == nil {
		err = m.Complete()
	}
	if err != nil {
		return nil, err
	}
	l, err := llm.Detect(m, llm.Setup{})
	if err != nil {
		return nil, err
	}
	o, err := l.Feed(inputs.Options{}, llm.Phase{Batch: 1, Tokens: *prompt})
	if err != nil {
		return nil, err
	}
	in, _, err := inputs.Inputs(m, o)
	if err != nil {
		return nil, err
	}
	for i := range tensor.Of[int64](in[0]) {
		tensor.Of[int64](in[0])[i] = int64(2 + i*7919%5000) // as peers.py
	}
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry()})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.Run(context.Background()); err != nil {
		return nil, err
	}
	all := s.Output(0)
	out := tensor.Of[float32](all)
	var last []float64
	for _, v := range out[len(out)-all.Shape[len(all.Shape)-1]:] {
		last = append(last, float64(v))
	}
	return last, nil
}

// difference is the root mean square of a difference divided by that of what is expected.
func difference(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.NaN()
	}
	var d, all float64
	for i := range want {
		d += (got[i] - want[i]) * (got[i] - want[i])
		all += want[i] * want[i]
	}
	return math.Sqrt(d / all)
}

// rate writes the median and the quartiles of a figure.
func rate(of []answer, figure func(answer) float64) string {
	var all []float64
	for _, a := range of {
		all = append(all, figure(a))
	}
	slices.Sort(all)
	return fmt.Sprintf("%.1f (%.1f to %.1f)", stats.Median(all), stats.Quantile(all, 0.25), stats.Quantile(all, 0.75))
}

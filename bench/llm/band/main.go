// Program band compares the estimated speed of language models with the measured one. It makes GGUF
// files of several architectures and types with random sizes and weights, and says how often the
// bands hold the measurement:
//
//	go run ./bench/llm/band -seed 1 -n 6
//
// Each file is measured in a prefill and in two decodes. The bands are made with other seeds than
// those that check them.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/profile"
)

var (
	seed    = flag.Uint64("seed", 1, "seed of the sizes")
	count   = flag.Int("n", 6, "number of files")
	threads = flag.Int("threads", 1, "threads")
	length  = flag.Duration("time", time.Second, "time of each phase")
	detail  = flag.Bool("layers", false, "print measured over estimated time by operator")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "band:", err)
		os.Exit(1)
	}
}

// draw returns a model of some hundred megabytes at most.
func draw(r *rand.Rand, i int) size {
	archs := []string{"llama", "qwen2", "qwen3", "gemma2", "phi3", "qwen2moe"}
	types := []string{"Q4_0", "Q4_K", "Q6_K", "Q8_0", "F16"}
	s := size{Arch: archs[i%len(archs)], Type: types[r.IntN(len(types))], Layers: 3 + r.IntN(10), Vocabulary: 4096 << r.IntN(4)}
	head := 64 << r.IntN(2)
	s.KVHeads = 2 << r.IntN(3)
	s.Heads = s.KVHeads << r.IntN(3)
	for s.Heads*head < 768 {
		s.Heads *= 2
	}
	for s.Heads*head > 2048 {
		s.Heads, s.KVHeads = s.Heads/2, max(s.KVHeads/2, 1)
	}
	s.Width = s.Heads * head
	s.Wide = s.Width * (5 + r.IntN(8)) / 2 / 256 * 256
	if s.Arch == "qwen2moe" {
		s.Experts, s.Used, s.Wide = 8<<r.IntN(2), 2<<r.IntN(2), 512
	}
	return s
}

func run() error {
	dir, err := os.MkdirTemp("", "band")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := rand.New(rand.NewPCG(*seed, 1))
	held, all := map[profile.PhaseKind]int{}, map[profile.PhaseKind]int{}
	fmt.Printf("%-14s %12s %24s %9s  %s\n", "phase", "measured", "estimated band", "meas/est", "tokens/s")
	for i := range *count {
		s := draw(r, i)
		fmt.Println(s)
		f := filepath.Join(dir, "model.gguf")
		if err := s.write(f); err != nil {
			return err
		}
		if err := compare(f, r, held, all); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	for _, k := range []profile.PhaseKind{profile.PrefillPhase, profile.DecodePhase} {
		fmt.Printf("%s: the band holds %d of %d\n", k, held[k], all[k])
	}
	return nil
}

func compare(file string, r *rand.Rand, held, all map[profile.PhaseKind]int) error {
	m, err := opmeter.Open(file)
	if err != nil {
		return err
	}
	defer m.Close()
	ph := &opmeter.Phases{Prompts: []int{64 << r.IntN(3)}, Contexts: []int{0, 512 << r.IntN(3)}}
	ctx := context.Background()
	e, err := opmeter.EstimatePhases(ctx, m, opmeter.Options{Threads: *threads, Phases: ph})
	if err != nil {
		return err
	}
	p, err := opmeter.Profile(ctx, m, opmeter.Options{Threads: *threads, Time: *length, Phases: ph})
	if err != nil {
		return err
	}
	for i := range p.Language.Phases {
		got, band := &p.Language.Phases[i], &e.Language.Phases[i]
		v, _ := got.TokensPerS.Best()
		want, _ := band.TokensPerS.Best()
		b := band.TokensPerS.Band
		mark := "outside"
		if all[got.Kind]++; v >= b[0] && v <= b[1] {
			held[got.Kind]++
			mark = ""
		}
		fmt.Printf("%-14s %12.1f %11.1f to %9.1f %9.2f  %s\n", got.Name(), v, b[0], b[1], v/want, mark)
		if *detail {
			byOperator(p, e, got.Quantity)
		}
	}
	return nil
}

// byOperator prints the measured time divided by the estimated one.
func byOperator(p, e *profile.Profile, key string) {
	var ops []string
	sums := map[string]*[2]float64{}
	for i := range p.Layers {
		for k, l := range []*profile.Layer{&p.Layers[i], &e.Layers[i]} {
			s := sums[l.Op]
			if s == nil {
				s = &[2]float64{}
				sums[l.Op], ops = s, append(ops, l.Op)
			}
			v, _ := l.Figure(key).Best()
			s[k] += v
		}
	}
	for _, op := range ops {
		if s := sums[op]; s[0] > 5e-4 {
			fmt.Printf("    %-24s %10.3f ms %10.3f ms %8.2f\n", op, 1e3*s[0], 1e3*s[1], s[0]/s[1])
		}
	}
}

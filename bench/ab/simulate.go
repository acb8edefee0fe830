package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/ab"
)

// recorded draws rounds from those that were measured with equal alternatives.
type recorded struct {
	// rounds holds the block means of both alternatives.
	rounds [][2][]float64
	// start and block are the seconds of starting the processes of a round, and of a row of blocks.
	start, block float64

	random *rand.Rand
	now    time.Time
	slower float64 // ratio of the second to the first
	round  [2][]float64
	next   [2]int
}

// Begin implements [ab.Blocks]: it draws a round and, since the alternatives are equal, which of
// them is the first.
func (s *recorded) Begin(context.Context, int) error {
	s.round = s.rounds[s.random.IntN(len(s.rounds))]
	if s.random.IntN(2) == 1 {
		s.round[0], s.round[1] = s.round[1], s.round[0]
	}
	from := s.random.IntN(len(s.round[0]))
	s.next = [2]int{from, from}
	s.advance(s.start)
	return nil
}

// Block implements [ab.Blocks]: the blocks of a process follow each other as they were measured,
// and begin again.
func (s *recorded) Block(_ context.Context, _, alternative int) (ab.Block, error) {
	list := s.round[alternative]
	v := list[s.next[alternative]%len(list)]
	s.next[alternative]++
	if alternative == 1 {
		v *= s.slower
	}
	s.advance(s.block / 2)
	return ab.Block{Seconds: v, Inferences: 1}, nil
}

// End implements [ab.Blocks].
func (s *recorded) End(int) {}

func (s *recorded) advance(seconds float64) { s.now = s.now.Add(time.Duration(seconds * 1e9)) }

// load takes the rounds of equal alternatives from a file: those of even index.
func load(file string) (*recorded, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []*ab.Result
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	s := &recorded{}
	var start, block []float64
	for i := 0; i < len(all); i += 2 {
		r := all[i]
		if r.Plan == nil {
			continue
		}
		start, block = append(start, r.Plan.StartS), append(block, r.Plan.BlockS)
		for p := range r.Alternatives[0].Processes {
			s.rounds = append(s.rounds, [2][]float64{r.Alternatives[0].Processes[p], r.Alternatives[1].Processes[p]})
		}
	}
	if len(s.rounds) == 0 {
		return nil, errors.New(file + " has no rounds of equal alternatives")
	}
	s.start, s.block = stats.Median(start), stats.Median(block)
	return s, nil
}

// draw compares what it draws from a file.
func (f *flags) draw(file string) error {
	s, err := load(file)
	if err != nil {
		return err
	}
	fmt.Printf("drawn from %d rounds of %.0f ms and %.0f ms for each row of blocks\n", len(s.rounds), 1e3*s.start, 1e3*s.block)
	var equal, different tally
	list := []ab.Alternative{{Name: "A"}, {Name: "B"}}
	var mu sync.Mutex
	var failed error
	each := func(i int) {
		t, slower := &equal, 1.0
		if i%2 == 1 {
			t, slower = &different, 1+f.percent/100
		}
		one := *s
		one.random, one.slower = rand.New(rand.NewPCG(uint64(i), 2)), slower
		r, err := ab.Run(context.Background(), list, &one, ab.Options{Budget: f.budget, Seed: uint64(i), Now: func() time.Time { return one.now }})
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = err
			return
		}
		t.add(r)
	}
	var wait sync.WaitGroup
	n := runtime.NumCPU()
	for w := range n {
		wait.Go(func() {
			for i := w; i < 2*f.simulate; i += n {
				each(i)
			}
		})
	}
	wait.Wait()
	if failed != nil {
		return failed
	}
	return f.judge(&equal, &different)
}

// Command goals counts how many plans of opmeter compress keep what they promise. It trains small
// networks, plans for losses of 1, 2 and 5 % of accuracy, writes the models, and runs them on
// samples that opmeter has not seen. It compares their times with those of dynamic int8 of all
// dense layers, which the bench writes itself as quantize_dynamic of ONNX Runtime does:
//
//	go run ./bench/compress/goals [-engine LIST] [-net NAME] [-seeds N] [-time TIME] [FOLDER]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/compress"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/compress/loss"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

func main() {
	var b bench
	list := flag.String("engine", "opmeter", "`LIST` of one engine, in which times are measured")
	flag.IntVar(&b.seeds, "seeds", 3, "`N` draws of samples, of which each goal has a plan")
	flag.StringVar(&b.only, "net", "", "`NAME` of the only network")
	flag.DurationVar(&b.time, "time", 100*time.Millisecond, "`TIME` of each comparison")
	flag.Parse()
	found, err := engine.Find(*list)
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%s: one engine was expected", *list)
	}
	if err == nil {
		b.engine = found[0]
		err = b.run(context.Background(), flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "goals:", err)
		os.Exit(1)
	}
}

type bench struct {
	engine *engine.Engine
	only   string
	seeds  int
	time   time.Duration

	plans, met, promised, timed, within, unused int
	// rivals are the plans whose limit dynamic int8 keeps, too; slower counts those that it beats.
	rivals, slower int
}

// limits are the losses that plans may have.
var limits = []float64{.01, .02, .05}

func (b *bench) run(ctx context.Context, dir string) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "goals"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	fmt.Println("network\tlimit\tseed\tpromised drop\tdrop on unseen samples\tpredicted\tmeasured again\twritten file\tdynamic int8 by hand: drop\tspeed-up")
	for i := range nets {
		n := &nets[i]
		if b.only != "" && b.only != n.name {
			continue
		}
		at := filepath.Join(dir, n.name)
		if _, err := os.Stat(filepath.Join(at, "dynamic.onnx")); err != nil {
			if err := n.build(at, uint64(i), b.seeds); err != nil {
				return err
			}
		}
		if err := b.network(ctx, n.name, at); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
	}
	fmt.Printf("limit kept on unseen samples: %d of %d plans\n", b.met, b.plans)
	fmt.Printf("limit kept on the held-out samples that the plan reports: %d of %d\n", b.promised, b.plans)
	fmt.Printf("speed-up within the predicted interval: %d of %d\n", b.within, b.timed)
	fmt.Printf("slower than dynamic int8 by hand, where that keeps the limit: %d of %d\n", b.slower, b.rivals)
	fmt.Printf("written files with values that nothing uses: %d of %d\n", b.unused, b.plans)
	return nil
}

func (b *bench) network(ctx context.Context, name, dir string) error {
	file := filepath.Join(dir, "model.onnx")
	m, err := opmeter.Open(file)
	if err != nil {
		return err
	}
	defer m.Close()
	job, err := compress.Open(m, compress.Options{Study: filepath.Join(dir, "model.study")})
	if err != nil {
		return err
	}
	defer func() { _ = job.Close() }()
	speed, err := job.Speed(ctx, compress.SpeedOptions{Engine: b.engine, Time: b.time})
	if err != nil {
		return err
	}
	test, err := unseen(ctx, file, dir)
	if err != nil {
		return err
	}
	hand, err := opmeter.Open(filepath.Join(dir, "dynamic.onnx"))
	if err != nil {
		return err
	}
	defer hand.Close()
	drop, err := tryFile(ctx, test, filepath.Join(dir, "dynamic.onnx"))
	if err != nil {
		return err
	}
	fmt.Printf("%s\tunchanged\t\t\taccuracy %s\n", name, figure(test.Base, 100))
	for seed := range uint64(b.seeds) {
		data := compress.LossOptions{Data: compress.DataOptions{Path: filepath.Join(dir, fmt.Sprintf("use%d_x.npy", seed)), Labels: filepath.Join(dir, fmt.Sprintf("use%d_y.npy", seed)), Seed: seed}}
		lost, err := job.Loss(ctx, data)
		if err != nil {
			return err
		}
		for _, limit := range limits {
			o := compress.PlanOptions{
				Name: fmt.Sprintf("%g %% seed %d", 100*limit, seed), Speed: speed.Name, Loss: lost.Name, Goal: study.Goal{MaxLoss: &limit},
				Engine: b.engine, Data: &data, Time: 4 * b.time,
			}
			p, err := job.Plan(ctx, o)
			if err != nil {
				return err
			}
			x := &checked{job: job, test: test, net: name, file: filepath.Join(dir, "small.onnx"), hand: hand, handDrop: drop}
			if err := b.plan(ctx, x, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// checked is what plans of a network are checked with.
type checked struct {
	job       *compress.Job
	test      *loss.Trial
	net, file string // of the written model
	// hand is the model in dynamic int8, handDrop its loss on unseen samples.
	hand     *opmeter.Model
	handDrop *profile.Metric
}

// plan checks a plan: its model on unseen samples, its time, and the written file.
func (b *bench) plan(ctx context.Context, c *checked, p *study.Plan) error {
	b.plans++
	limit := *p.Goal.MaxLoss
	if !slices.ContainsFunc(p.Choices, func(c study.Choice) bool { return !c.Change.IsZero() }) {
		b.met++
		b.promised++
		hand, err := b.byHand(ctx, c, limit, p.Name, nil)
		fmt.Printf("%s\t%s\tchanges nothing\t\t\t\t\t%s\n", c.net, p.Name, hand)
		return err
	}
	a, err := c.job.Apply(ctx, compress.ApplyOptions{Plan: p.Name})
	if err != nil {
		return err
	}
	if err := a.Write(c.file); err != nil {
		return err
	}
	lost, err := tryFile(ctx, c.test, c.file)
	if err != nil {
		return err
	}
	if v, _ := lost.Best(); v <= limit+1e-9 {
		b.met++
	}
	if v, ok := p.Measured.Loss.Best(); ok && v <= limit+1e-9 {
		b.promised++
	}
	n, err := unused(c.file)
	if err != nil {
		return err
	}
	if n > 0 {
		b.unused++
	}
	bench, err := c.job.Bench(ctx, compress.BenchOptions{Plan: p.Name, Name: p.Name + " again", Engines: []*engine.Engine{b.engine}, Time: 8 * b.time})
	if err != nil {
		return err
	}
	again := bench.Points[0].Speedup
	said := p.Predicted.Speedup
	if v, ok := again.Best(); ok && said != nil && said.Band != nil {
		b.timed++
		if v >= said.Band[0] && v <= said.Band[1] {
			b.within++
		}
	}
	hand, err := b.byHand(ctx, c, limit, p.Name, again)
	if err != nil {
		return err
	}
	fmt.Printf("%s\t%s\t%s\t%s\t%s\t%s\t%d unused\t%s\n", c.net, p.Name, figure(p.Measured.Loss, 100), figure(lost, 100), figure(said, 1), figure(again, 1), n, hand)
	return nil
}

// repeatability is how far medians of separate measurements of one model are apart, as a share: the
// memory that a model gets moves its times by that, and intervals of one measurement lack it.
const repeatability = .01

// byHand measures dynamic int8 beside a plan with a speed-up, nil for none, and returns its drop
// and its speed-up. The plan is slower if the intervals do not overlap.
func (b *bench) byHand(ctx context.Context, c *checked, limit float64, plan string, speedup *profile.Metric) (string, error) {
	bench, err := c.job.Bench(ctx, compress.BenchOptions{Model: c.hand, Name: plan + " by hand", Engines: []*engine.Engine{b.engine}, Time: 8 * b.time})
	if err != nil {
		return "", err
	}
	x := &bench.Points[0]
	if v, ok := c.handDrop.Best(); ok && v <= limit+1e-9 && x.Speedup != nil {
		b.rivals++
		if least := ends(x.Speedup)[0] / (1 + repeatability); least > 1 && (speedup == nil || ends(speedup)[1] < least) {
			b.slower++
		}
	}
	return figure(c.handDrop, 100) + "\t" + figure(x.Speedup, 1), nil
}

// ends is the interval of a figure.
func ends(m *profile.Metric) [2]float64 {
	if m.CI95 != nil {
		return *m.CI95
	}
	v, _ := m.Best()
	return [2]float64{v, v}
}

// tryFile returns the loss of a model file on unseen samples.
func tryFile(ctx context.Context, test *loss.Trial, file string) (*profile.Metric, error) {
	m, err := modelfile.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Close() }()
	x, err := test.Try(ctx, m)
	if err != nil {
		return nil, err
	}
	return x.Lost, nil
}

// unseen prepares the comparison on samples that opmeter does not see.
func unseen(ctx context.Context, file, dir string) (*loss.Trial, error) {
	m, err := modelfile.Open(file)
	if err != nil {
		return nil, err
	}
	set, err := samples.Open(m, samples.Options{Path: filepath.Join(dir, "test_x.npy"), Labels: filepath.Join(dir, "test_y.npy")})
	if err != nil {
		return nil, err
	}
	j := loss.Job{Model: m, Layers: weights.Find(m, nil), Data: set, Settings: study.LossSettings{Method: study.EndToEnd, Metric: loss.Accuracy, Higher: true}}
	return j.Trial(ctx)
}

// unused counts the values of a model file that no node and no output names.
func unused(file string) (n int, err error) {
	m, err := modelfile.Open(file)
	if err != nil {
		return 0, err
	}
	defer func() { _ = m.Close() }()
	g := m.Main()
	used := map[int]bool{}
	for _, list := range [][]int{g.Inputs, g.Outputs} {
		for _, id := range list {
			used[id] = true
		}
	}
	for _, x := range g.Nodes {
		for _, id := range slices.Concat(x.Inputs, x.Outputs) {
			used[id] = true
		}
	}
	for _, v := range g.Values {
		if !used[v.ID] {
			n++
		}
	}
	return n, nil
}

// figure is a figure with its interval.
func figure(m *profile.Metric, unit float64) string {
	v, ok := m.Best()
	if !ok {
		return "unknown"
	}
	ends := m.CI95
	if ends == nil {
		ends = m.Band
	}
	s := fmt.Sprintf("%.3g", unit*v)
	if ends != nil {
		s += fmt.Sprintf(" (%.3g to %.3g)", unit*ends[0], unit*ends[1])
	}
	return s
}

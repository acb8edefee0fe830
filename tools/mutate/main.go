// Command mutate measures what the tests notice: it makes small changes to the code,
// one at a time (a comparison flipped, plus for minus, a constant off by one, a
// statement removed), runs the tests, and lists the changes that no test noticed.
//
//	go run ./tools/mutate [-n 28] [-seed 1] [-users 0] [-floor 0] [PACKAGE ...]
//
// Without packages it takes all of the program: everything but bench, tools and what
// serves tests only. Of each package n changes are drawn, at most one a line, by a
// generator seeded with the seed and the package's path, so that the same seed tries
// the same changes of unchanged code. A change that does not compile is replaced by
// another. Each is tried with the package's own tests and then, with -users N, with
// those of the N packages that import it and reach the line. Files are changed through an
// overlay of the compiler: the working tree stays as it is.
//
// Changes that alter nothing (a capacity, a bound that is never met) are not left
// out, so the score is a lower bound. A run that takes five times as long as the
// tests usually do counts as noticed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"
)

func main() {
	o := options{}
	flag.IntVar(&o.n, "n", 28, "changes a package")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the choice")
	flag.IntVar(&o.users, "users", 0, "number of importing packages whose tests are run too, those with the fewest dependencies first")
	floor := flag.Float64("floor", 0, "fail where less than this share of a package's changes is noticed, percent")
	quiet := flag.Bool("q", false, "do not list what was not noticed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	bad, err := run(ctx, o, flag.Args(), *floor, !*quiet)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if bad {
		os.Exit(1)
	}
}

type options struct {
	n, users int
	seed     uint64
}

func run(ctx context.Context, o options, patterns []string, floor float64, list bool) (bad bool, err error) {
	all, err := load(ctx)
	if err != nil {
		return false, err
	}
	chosen, err := all.choose(ctx, patterns)
	if err != nil {
		return false, err
	}
	if err := bound(); err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	var rows []result
	for _, p := range chosen {
		r, err := o.try(ctx, dir, p, all)
		if err != nil && ctx.Err() == nil {
			return false, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		rows = append(rows, r)
		fmt.Fprintf(os.Stderr, "%s: %d of %d noticed\n", p.name(), r.noticed(), r.tried)
		if list {
			for _, s := range r.survivors {
				fmt.Println(s)
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	return table(rows, floor), nil
}

// table prints the figures and reports whether a package is below the floor.
func table(rows []result, floor float64) (bad bool) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "noticed\tby users\tchanges\t%\tnot reached\tpackage\t")
	var sum result
	for i := range rows {
		r := &rows[i]
		if r.tried == 0 {
			continue
		}
		mark := ""
		if r.percent() < floor {
			bad, mark = true, " below the floor"
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%.0f\t%d\t%s%s\t\n", r.noticed(), r.byUsers, r.tried, r.percent(), r.unreached, r.name, mark)
		sum.own, sum.byUsers, sum.tried, sum.unreached = sum.own+r.own, sum.byUsers+r.byUsers, sum.tried+r.tried, sum.unreached+r.unreached
	}
	if sum.tried > 0 {
		fmt.Fprintf(w, "%d\t%d\t%d\t%.0f\t%d\tall\t\n", sum.noticed(), sum.byUsers, sum.tried, sum.percent(), sum.unreached)
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
	}
	return bad
}

// result is what became of the changes of one package.
type result struct {
	name         string
	tried        int
	own, byUsers int // noticed by the package's tests, by those of its users only
	unreached    int // of those not noticed, on lines that no test ran
	survivors    []string
}

func (r *result) noticed() int { return r.own + r.byUsers }

func (r *result) percent() float64 { return 100 * float64(r.noticed()) / float64(r.tried) }

// name of a package within the module.
func (p *pkg) name() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, p.Module.Path), "/")
}

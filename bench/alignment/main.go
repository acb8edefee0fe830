// Command alignment makes twins of models, pairs their layers with those of the models, and counts
// the pairs that are right: the program that makes a twin knows which node came from which.
//
//	go run ./bench/alignment FOLDER|MODEL...
//
// Models are ONNX and TFLite files and descriptions of networks. A file that is there as ONNX and
// as TFLite by the same name is compared with itself, too. With two saved profiles, -pairs lists
// the pairs of their layers.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

var (
	pairs   = flag.Bool("pairs", false, "list the pairs of two saved profiles")
	verbose = flag.Bool("v", false, "list what is not right")
	only    = flag.String("only", "", "make these twins alone, separated by commas")
	largest = flag.Int64("largest", 64<<20, "leave out files with more bytes")
	build   = flag.String("networks", "", "make the networks of bench/networks in this folder, and compare their precisions")
)

func main() {
	flag.Parse()
	if err := run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "alignment:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if *pairs {
		if len(args) != 2 {
			return fmt.Errorf("-pairs takes two saved profiles, not %d", len(args))
		}
		a, err := profile.Read(args[0])
		if err != nil {
			return err
		}
		b, err := profile.Read(args[1])
		if err != nil {
			return err
		}
		list(a, b, align.Layers(a, b))
		return nil
	}
	files, err := material.Models(args)
	if err != nil {
		return err
	}
	for _, a := range args {
		yamls, err := filepath.Glob(filepath.Join(a, "*.yaml"))
		if err != nil {
			return err
		}
		files = append(files, yamls...)
	}
	t := newTable()
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			return err
		}
		if st.Size() > *largest {
			fmt.Fprintf(os.Stderr, "%s: left out, it has %d MB\n", filepath.Base(f), st.Size()>>20)
			continue
		}
		if err := t.model(f); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(f), err)
		}
	}
	t.formats(files)
	if *build != "" {
		if err := t.networks(*build); err != nil {
			return err
		}
	}
	t.print()
	return nil
}

// list prints pairs.
func list(a, b *profile.Profile, ps []align.Pair) {
	for _, p := range ps {
		fmt.Printf("%-9s %-5v %-12s", p.Kind, p.Certain, p.Confidence)
		for _, i := range p.A {
			fmt.Printf(" %d:%s", i, a.Layers[i].Op)
		}
		fmt.Print("  |")
		for _, i := range p.B {
			fmt.Printf(" %d:%s", i, b.Layers[i].Op)
		}
		fmt.Println()
	}
}

// tally counts the layers of the twins of a kind.
type tally struct{ models, right, wrong, same, certain, missed int }

func (t *tally) add(u tally) {
	t.models += u.models
	t.right += u.right
	t.wrong += u.wrong
	t.same += u.same
	t.certain += u.certain
	t.missed += u.missed
}

type table map[string]*tally

func newTable() table { return table{} }

func (t table) add(kind string, u tally) {
	if t[kind] == nil {
		t[kind] = &tally{}
	}
	t[kind].add(u)
}

func (t table) print() {
	fmt.Printf("%-34s %6s %8s %7s %6s %6s %8s %7s\n", "twin", "models", "right", "share", "wrong", "same", "certain", "missed")
	sum := tally{}
	line := func(name string, u *tally) {
		fmt.Printf("%-34s %6d %8d %6.2f%% %6d %6d %8d %7d\n", name, u.models, u.right, 100*float64(u.right)/float64(max(1, u.right+u.wrong+u.missed)), u.wrong, u.same, u.certain, u.missed)
	}
	for _, k := range slices.Sorted(maps.Keys(t)) {
		line(k, t[k])
		sum.add(*t[k])
	}
	line("all", &sum)
	fmt.Println("\nLayers of both models: paired as they were made, paired otherwise (of these called same,\nof these called certain), and not paired though a partner is there.")
}

// wanted reports whether a twin is to be made.
func wanted(kind string) bool { return *only == "" || slices.Contains(strings.Split(*only, ","), kind) }

// model makes all twins of a model.
func (t table) model(file string) error {
	m, err := modelfile.Open(file)
	if err != nil {
		return err
	}
	if m.Close != nil {
		defer func() { _ = m.Close() }()
	}
	a, err := original(m)
	if err != nil {
		return err
	}
	for _, k := range makers {
		if !wanted(k.kind) {
			continue
		}
		for seed := range uint64(cmp.Or(k.seeds, 1)) {
			b, err := attempt(k.make, a, seed)
			if err != nil {
				if *verbose {
					fmt.Fprintf(os.Stderr, "%s: %s: %v\n", filepath.Base(file), k.kind, err)
				}
				continue
			}
			if b == nil {
				continue
			}
			t.compare(filepath.Base(file), k.kind, a, b, seed)
		}
	}
	return nil
}

// attempt makes a twin. Builders are made for models of the program, not for all of a folder.
func attempt(do func(*source, uint64) (*twin, error), a *source, seed uint64) (b *twin, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("%v", p)
		}
	}()
	return do(a, seed)
}

// compare counts the pairs of a model and its twin, in both directions, with the names of the
// model and without.
func (t table) compare(file, kind string, a *source, b *twin, seed uint64) {
	for _, without := range []bool{false, true} {
		c, name := b, kind
		if without {
			c, name = b.renamed(seed), kind+", renamed"
		}
		p, err := c.profile()
		if err != nil {
			if *verbose {
				fmt.Fprintf(os.Stderr, "%s: %s: %v\n", file, name, err)
			}
			return
		}
		r, err := c.truth(a, p)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %s: %v\n", file, name, err)
			return
		}
		for _, back := range []bool{false, true} {
			u := r.count(fmt.Sprintf("%s: %s", file, name), back)
			if !back {
				u.models = 1
			}
			t.add(name, u)
		}
	}
}

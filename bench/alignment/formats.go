package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/bench/networks"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/weights"
)

// file is a model with what tells its layers.
type weighed struct {
	*source
	name string
	// prints are the layers by sums over the elements of their weights, which the order of the axes
	// does not change.
	prints map[string][]int
	// shapes are the layers with weights, in order, by the sizes of these.
	order  []int
	widths []string
}

func weigh(file string) (*weighed, error) {
	m, err := modelfile.Open(file)
	if err != nil {
		return nil, err
	}
	a, err := original(m)
	if err != nil {
		return nil, err
	}
	w := &weighed{source: a, name: filepath.Base(file), prints: map[string][]int{}}
	for _, l := range weights.Find(a.m, a.shapes) {
		if len(l.Nodes) != 1 {
			continue
		}
		at, ok := a.at[a.m.Main().Nodes[l.Nodes[0]]]
		if !ok {
			continue
		}
		w.order = append(w.order, at)
		w.widths = append(w.widths, fmt.Sprintf("%dx%d", l.Rows, l.Cols))
		var sum, squares, most float64
		n := 0
		for _, x := range l.Read(nil) {
			v := math.Abs(float64(x))
			sum, squares, most = sum+v, squares+v*v, max(most, v)
			n++
		}
		if n < 16 || sum == 0 {
			continue
		}
		key := fmt.Sprintf("%d %.4g %.4g %.4g", n, sum, squares, most)
		w.prints[key] = append(w.prints[key], at)
	}
	if m.Close != nil {
		_ = m.Close()
	}
	return w, nil
}

// enough is the part of the layers with weights that two files of one network have in common.
const enough = 0.7

// formats compares files that have the same network: with equal weights in another format, or with
// layers of the same sizes in one of them quantised.
func (t table) formats(files []string) {
	if !wanted("formats") {
		return
	}
	var ws []*weighed
	for _, f := range files {
		if strings.HasSuffix(f, ".yaml") {
			continue
		}
		if st, err := os.Stat(f); err != nil || st.Size() > *largest {
			continue
		}
		if w, err := weigh(f); err == nil && len(w.order) > 2 {
			ws = append(ws, w)
		}
	}
	for i, a := range ws {
		for _, b := range ws[i+1:] {
			r := newRelation(a.p, b.p)
			shared, kind := 0, "ONNX against TFLite"
			if a.m.Format == b.m.Format {
				kind = "another file of one network"
			}
			for k, x := range a.prints {
				if y := b.prints[k]; len(x) == 1 && len(y) == 1 {
					r.relate(x[0], y[0], true, true)
					shared++
				}
			}
			if float64(shared) < enough*float64(max(len(a.prints), len(b.prints))) {
				if !slices.Equal(a.widths, b.widths) {
					continue
				}
				if a.m.Format == b.m.Format {
					kind = "float against int8 files"
				} else {
					kind = "ONNX against TFLite, other weights"
				}
				r = newRelation(a.p, b.p)
				for k := range a.order {
					r.relate(a.order[k], b.order[k], true, true)
				}
			}
			if *verbose {
				fmt.Fprintf(os.Stderr, "%s and %s are one network\n", a.name, b.name)
			}
			r.known()
			for _, back := range []bool{false, true} {
				u := r.count(a.name+" and "+b.name, back)
				if !back {
					u.models = 1
				}
				t.add(kind, u)
			}
		}
	}
}

// known takes the layers out about which nothing is known.
func (r *relation) known() {
	for side := range r.may {
		r.unknown[side] = make([]bool, len(r.may[side]))
		for i := range r.may[side] {
			r.unknown[side][i] = len(r.may[side][i]) == 0
		}
	}
}

// networks compares networks in single precision with those in others. The layers with weights are
// made in the same order, and so are other operators of which both have as many.
func (t table) networks(dir string) error {
	for _, name := range []string{"resnet50", "mobilenetv2", "efficientnet_lite0", "yolov5n_320", "bert_base_128", "decoder_100m_prefill64"} {
		var a *source
		for _, p := range []networks.Precision{networks.FP32, networks.FP16, networks.QDQ, networks.Dynamic} {
			file, err := networks.One(dir, name, p)
			if err != nil {
				return err
			}
			b, err := counted(file)
			if err != nil {
				return err
			}
			if a == nil {
				a = b
				continue
			}
			r := newRelation(a.p, b.p)
			mine, theirs := inClasses(a), inClasses(b)
			for class, x := range mine {
				if y := theirs[class]; len(x) == len(y) {
					for k := range x {
						r.relate(x[k], y[k], true, true)
					}
				}
			}
			r.known()
			for _, back := range []bool{false, true} {
				u := r.count(name+" "+string(p), back)
				if !back {
					u.models = 1
				}
				t.add("networks, fp32 against "+string(p), u)
			}
		}
	}
	return nil
}

// counted opens a file as it is: networks are too large for copies.
func counted(file string) (*source, error) {
	o, err := opmeter.Open(file)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	p, err := opmeter.Count(o, opmeter.Inputs{})
	if err != nil {
		return nil, err
	}
	m, err := modelfile.OpenShapes(file)
	if err != nil {
		return nil, err
	}
	at, err := layersOf(m, p)
	return &source{m: m, p: p, at: at}, err
}

// inClasses lists the layers by operator, in order; integer operators are those of floats.
func inClasses(a *source) map[string][]int {
	out := map[string][]int{}
	for _, n := range a.m.Main().Nodes {
		if at, ok := a.at[n]; ok {
			op := strings.TrimSuffix(n.Op, "Integer")
			out[op] = append(out[op], at)
		}
	}
	return out
}

// Package speedscope writes profiles for www.speedscope.app: the median run as it
// went, and the averages of all runs as a flame graph by scope.
//
// Source of the format: the file-format schema of the speedscope project.
package speedscope

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report/spans"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// MaxBars bounds the file: speedscope takes about 50 MB, and a bar is up to 100
// bytes. A longer run is cut, and its name says so.
const MaxBars = 250_000

// Write writes p.
func Write(w io.Writer, p *profile.Profile) error {
	all := spans.Of(p)
	run, number, of := all.MedianRun()
	t := &writer{w: bufio.NewWriterSize(w, 1<<16), v: run, frames: map[frame]int{}}
	t.text(`{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":`)
	t.string(strings.TrimSpace("opmeter " + p.Settings.Version))
	t.text(`,"name":`)
	t.string(p.Model.Name + " on " + p.Target.ID)
	t.text(",\"activeProfileIndex\":0,\n\"profiles\":[")
	what := "whole recording"
	switch {
	case !run.Recorded:
		what = "one inference laid out from figures, not recorded"
	case of > 0:
		what = fmt.Sprintf("median run (iteration %d, one of %d)", number, of)
	}
	left, first := MaxBars, true
	for _, i := range lanes(run) {
		n := min(left, len(run.Lanes[i].Starts))
		left -= n
		title := what + ": " + run.Lanes[i].Name
		if all := len(run.Lanes[i].Starts); n < all {
			title += fmt.Sprintf(" (first %d of %d bars)", n, all)
		}
		t.comma(&first)
		t.evented(i, n, title)
	}
	t.comma(&first)
	t.sampled(p)
	t.text("\n],\n\"shared\":{\"frames\":[")
	first = true
	for _, f := range t.order {
		t.comma(&first)
		t.text(`{"name":`)
		t.string(f.name)
		if f.line > 0 && p.Model.Path != "" {
			t.text(`,"file":`)
			t.string(p.Model.Path)
			t.text(`,"line":` + strconv.FormatInt(f.line, 10))
		}
		t.text("}")
	}
	t.text("\n]}}\n")
	return t.w.Flush()
}

// lanes are those to show: iterations only when there is nothing else.
func lanes(v *spans.View) []int {
	var out, whole []int
	for i := range v.Lanes {
		switch {
		case len(v.Lanes[i].Starts) == 0:
		case v.Lanes[i].Kind == timeline.Iteration:
			whole = append(whole, i)
		default:
			out = append(out, i)
		}
	}
	if out == nil {
		return whole
	}
	return out
}

// frame is a name with the line of the model, its node, 0 for none.
type frame struct {
	name string
	line int64
}

type writer struct {
	w      *bufio.Writer // keeps the first error
	v      *spans.View
	b      []byte
	frames map[frame]int
	order  []frame
}

func (t *writer) text(s string) { _, _ = t.w.WriteString(s) }

func (t *writer) string(s string) {
	t.b = jsonx.AppendString(t.b[:0], s)
	_, _ = t.w.Write(t.b)
}

func (t *writer) comma(first *bool) {
	if !*first {
		t.text(",")
	}
	*first = false
	t.text("\n")
}

func (t *writer) frame(f frame) int {
	i, ok := t.frames[f]
	if !ok {
		i = len(t.order)
		t.frames[f] = i
		t.order = append(t.order, f)
	}
	return i
}

func (t *writer) head(kind, name string, end int64) {
	t.text(`{"type":"` + kind + `","name":`)
	t.string(name)
	t.text(`,"unit":"nanoseconds","startValue":0,"endValue":` + strconv.FormatInt(end, 10))
}

// evented writes the first n bars of a lane as they opened and closed.
func (t *writer) evented(lane, n int, title string) {
	v := t.v
	l := &v.Lanes[lane]
	one := v.Lane(lane)
	start, end := one.Span()
	t.head("evented", title, end-start)
	t.text(`,"events":[`)
	first := true
	for e := range one.Events() {
		if e.Bar.Index >= n {
			continue
		}
		f := frame{name: "stall"}
		if !e.Bar.Stall {
			f.name = v.Name(l, e.Bar.Index)
			if y := v.Layer(l, e.Bar.Index); y != nil {
				f.line = spans.Node(y) + 1
			}
		}
		kind := "O"
		if e.Kind == spans.End {
			kind = "C"
		}
		t.comma(&first)
		t.text(`{"type":"` + kind + `","at":` + strconv.FormatInt(e.At-start, 10) + `,"frame":` + strconv.Itoa(t.frame(f)) + "}")
	}
	t.text("\n]}")
}

// sampled writes the best figure of every layer below its scopes, from the root
// on.
func (t *writer) sampled(p *profile.Profile) {
	var stacks, weights strings.Builder
	sum := int64(0)
	comma := ""
	root := t.frame(frame{name: p.Model.Name})
	for i := range p.Layers {
		l := &p.Layers[i]
		s, ok := l.Latency.Best()
		if !ok || l.State != profile.Ran {
			continue
		}
		stack := []string{strconv.Itoa(root)}
		add := func(f frame) { stack = append(stack, strconv.Itoa(t.frame(f))) }
		scopes, parents := spans.Path(p, i)
		for _, o := range parents {
			add(frame{spans.LayerName(&p.Layers[o]), spans.Node(&p.Layers[o]) + 1})
		}
		for _, sc := range scopes {
			add(frame{name: sc})
		}
		add(frame{spans.LayerName(l), spans.Node(l) + 1})
		stacks.WriteString(comma + "[" + strings.Join(stack, ",") + "]")
		ns := spans.Nanos(s)
		weights.WriteString(comma + strconv.FormatInt(ns, 10))
		sum += ns
		comma = ",\n"
	}
	t.head("sampled", "best figure of every layer, by scope", sum)
	t.text(`,"samples":[` + stacks.String() + `],"weights":[` + weights.String() + "]}")
}

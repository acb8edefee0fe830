// Package collapsed reads folded stacks, as tools for flame graphs write them. Each line has the
// functions of a stack, the outermost first and separated by ";", a blank and a number.
//
// Source of the format: the scripts of the FlameGraph project.
package collapsed

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/track"
)

// Format reads folded stacks.
func Format() *record.Format {
	return &record.Format{
		Name:  "collapsed",
		Title: "Folded stacks",
		Files: "text of stackcollapse-*.pl, async-profiler, py-spy and others: one stack a line",
		Gives: []string{"samples"},
		Match: Match,
		Read:  record.RunPerFile(read),
	}
}

// Match recognises lines with a stack and a number; the format has no other mark.
func Match(f *record.File) record.Sure {
	lines, stacked := 0, 0
	rest := f.Head
	for len(rest) > 0 && lines < 50 {
		line, after, more := bytes.Cut(rest, []byte("\n"))
		if !more && !f.Whole {
			break
		}
		rest = after
		line = bytes.TrimRight(line, "\r ")
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		stack, _, ok := split(line)
		if !ok || bytes.ContainsAny(stack, "\t\x00") || line[0] == '{' || line[0] == '[' {
			return record.No
		}
		lines++
		if bytes.IndexByte(stack, ';') > 0 {
			stacked++
		}
	}
	switch {
	case lines >= 3 && stacked*2 >= lines:
		return record.Likely
	case lines > 0 && stacked > 0:
		return record.Maybe
	}
	return record.No
}

// split splits a line into its stack and the number.
func split(line []byte) (stack []byte, n float64, ok bool) {
	i := bytes.LastIndexByte(line, ' ')
	if i <= 0 || i == len(line)-1 {
		return nil, 0, false
	}
	for _, c := range line[i+1:] {
		if (c < '0' || c > '9') && c != '.' {
			return nil, 0, false
		}
	}
	n, err := strconv.ParseFloat(string(line[i+1:]), 64)
	return line[:i], n, err == nil
}

func read(ctx context.Context, f *record.File) (*runlog.Run, error) {
	var set stacks.Set
	samples, _ := set.Count(stacks.Samples, 1)
	read := 0
	end := stacks.Lines(ctx, f, func(line []byte) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			return
		}
		stack, n, ok := split(line)
		if !ok {
			set.Dropped.Add("lines that are not a stack with a number", 1)
			return
		}
		place := stacks.Root
		for name := range bytes.SplitSeq(stack, []byte(";")) {
			if len(name) > 0 {
				place = set.Call(place, set.Function(stacks.Function{Name: string(name)}))
			}
		}
		set.Add(samples, place, n)
		read++
	})
	if read == 0 {
		return nil, cmp.Or(end, errors.New("no stacks: want lines such as main;work;sum 12"))
	}
	run := track.NewRun(f, "collapsed")
	var none track.Trace
	stacks.Finish(run, &set, &none, "")
	if end != nil {
		run.Lose(end.Error())
	}
	return run, nil
}

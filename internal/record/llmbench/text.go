package llmbench

import (
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
)

// cells splits a row of a CSV file or of a table in Markdown.
func cells(line string) []string {
	line = strings.TrimSpace(textscan.Strip(line))
	if row, ok := textscan.Boxed(line); ok {
		return row
	}
	return textscan.Fields(line, ',')
}

// scalar makes a number, or a text.
func scalar(text string) *jsontree.Value {
	if v, ok := textscan.Number(text); ok {
		return &jsontree.Value{Kind: jsontree.Number, Num: v, Text: text}
	}
	return &jsontree.Value{Kind: jsontree.String, Text: text}
}

// object makes the tree of a row.
func object(names, row []string) *jsontree.Value {
	v := &jsontree.Value{Kind: jsontree.Object}
	for i, name := range names {
		if text := textscan.Cell(row, i); text != "" && name != "" {
			put(v, name, scalar(text))
		}
	}
	return v
}

// table calls use with the rows below each header.
func table(f *record.File, isHead func(textscan.Columns) bool, use use) error {
	var head textscan.Columns
	return f.Lines(func(l string) {
		row := cells(l)
		if c := textscan.NewColumns(row); isHead(c) {
			head = c
			return
		}
		if n := len(head.Names()); n > 0 && len(row) == n && strings.Trim(row[0], "-: ") != "" {
			use(object(head.Names(), row))
		}
	})
}

// columns reads a table whose first column has the names and the second one the values.
func columns(f *record.File, use use) error {
	v := &jsontree.Value{Kind: jsontree.Object}
	err := f.Lines(func(l string) {
		if c := cells(l); len(c) == 2 && len(v.Keys) < 100 {
			put(v, strings.TrimSpace(c[0]), scalar(strings.TrimSpace(c[1])))
		}
	})
	use(v)
	return err
}

var (
	llamaTests = lazyregexp.New(`^(?:pp(\d+))?\+?(?:tg(\d+))?(?: @ d(\d+))?$`)
	sizeText   = lazyregexp.New(`^([\d.]+) (KiB|MiB|GiB|TiB|K|M|B|T)$`)
)

// llamaColumns are columns of the table in Markdown with the keys of the other forms.
var llamaColumns = map[string]string{
	"model": "model_type", "backend": "backends", "ngl": "n_gpu_layers", "sm": "split_mode", "fa": "flash_attn", "mmap": "use_mmap", "mg": "main_gpu",
	"nkvo": "no_kv_offload", "embd": "embeddings", "ts": "tensor_split", "threads": "n_threads", "dev": "devices",
}

// llamaRow gives a row of the table in Markdown the keys of the other forms.
func llamaRow(v *jsontree.Value) *jsontree.Value {
	if v.Has("avg_ts") {
		return v
	}
	out := &jsontree.Value{Kind: jsontree.Object}
	for key, e := range v.Members() {
		switch key {
		case "test":
			m := llamaTests.FindStringSubmatch(e.Text)
			for i, name := range []string{"n_prompt", "n_gen", "n_depth"} {
				if m != nil && m[i+1] != "" {
					put(out, name, scalar(m[i+1]))
				}
			}
		case "t/s":
			mean, stddev, _ := strings.Cut(e.Text, "±")
			put(out, "avg_ts", scalar(strings.TrimSpace(mean)))
			if stddev != "" {
				put(out, "stddev_ts", scalar(strings.TrimSpace(stddev)))
			}
		case "size", "params":
			// Both are rounded to three digits: they are notes and not the exact figures.
			if sizeText.MatchString(e.Text) {
				put(out, key, e)
			}
		default:
			if to := llamaColumns[key]; to != "" {
				key = to
			}
			put(out, key, e)
		}
	}
	return out
}

var (
	ortCall  = lazyregexp.New(`^Batch size: (\d+), prompt tokens: (\d+), tokens to generate: (\d+)$`)
	ortTitle = lazyregexp.New(`^(Prompt processing \(time to first token\)|Token generation|Token sampling|E2E generation \(entire generation loop\)` + `):$`)
	ortPart  = lazyregexp.New(`^(avg|p50|stddev|n)(?: \((us|ms|tokens/s)\))?:\s+([\d.eE+-]+)`)
	ortPeak  = lazyregexp.New(`^Peak working set size(?: \(bytes\))?: (\d+)`)
)

// console reads the output of model_benchmark. A line with the settings begins a test.
func console(f *record.File, use use) error {
	var test, block *jsontree.Value
	flush := func() {
		if test != nil {
			use(test)
		}
	}
	begin := func() {
		flush()
		test, block = &jsontree.Value{Kind: jsontree.Object}, nil
	}
	err := f.Lines(func(l string) {
		l = strings.TrimSpace(textscan.Strip(l))
		if m := ortCall.FindStringSubmatch(l); m != nil {
			begin()
			for i, key := range []string{"batch size", "prompt tokens", "tokens to generate"} {
				put(test, key, scalar(m[i+1]))
			}
		} else if m := ortTitle.FindStringSubmatch(l); m != nil {
			if test == nil || test.Has(m[1]) {
				begin()
			}
			block = &jsontree.Value{Kind: jsontree.Object}
			put(test, m[1], block)
		} else if m := ortPart.FindStringSubmatch(l); m != nil && block != nil {
			key := m[1]
			if m[2] == "tokens/s" {
				key = "rate"
			}
			if !block.Has(key) {
				put(block, key, scalar(m[3]))
			}
		} else if m := ortPeak.FindStringSubmatch(l); m != nil && test != nil && !test.Has("Peak working set size (bytes)") {
			put(test, "Peak working set size (bytes)", scalar(m[1]))
			block = nil
		}
	})
	flush()
	return err
}

// perfName is the name of a row with its unit.
var perfName = lazyregexp.New(`^([\w ]+?)(?: \(([^)]*)\))?$`)

// statistics reads the rows of GenAI-Perf: a table of statistics, then one of single values. What
// follows is of the GPUs.
func statistics(f *record.File, use use) error {
	v := &jsontree.Value{Kind: jsontree.Object}
	var head []string
	err := f.Lines(func(l string) {
		row := textscan.Fields(strings.TrimSpace(l), ',')
		switch {
		case row[0] == "Metric" && len(row) == 2:
			head = []string{"", "avg"}
		case row[0] == "Metric":
			head = textscan.NewColumns(row).Names()
		case row[0] == "Endpoint" || len(v.Keys) >= draft.MaxRuns:
			head = nil
		}
		m := perfName.FindStringSubmatch(row[0])
		if head == nil || m == nil || row[0] == "Metric" || len(row) < 2 {
			return
		}
		e := object(head, row)
		put(e, "unit", &jsontree.Value{Kind: jsontree.String, Text: m[2]})
		put(v, strings.ReplaceAll(strings.ToLower(m[1]), " ", "_"), e)
	})
	use(v)
	return err
}

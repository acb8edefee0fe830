package report

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// Lines of wrapped text are not wider than asked for, keep numbers with the words behind
// them, and hold all of the text.
func TestWrapKeepsUnits(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom([]string{"median", "of", "18.1", "2.5", "(2.4", "±3", "-7", "ms", "%", "KiB", "layers", "a/name/of/a/layer/that/is/long", "日本語の層", "1x3x224x224"})
	rapid.Check(t, func(t *rapid.T) {
		whole := strings.Join(rapid.SliceOfN(words, 1, 60).Draw(t, "words"), " ")
		width := rapid.IntRange(leastWrap, 100).Draw(t, "width")
		lines := wrap(whole, width)
		for _, l := range lines {
			if n := text.Width(l); n > width {
				t.Fatalf("%d columns in %q, %d are there", n, l, width)
			}
		}
		if got := strings.ReplaceAll(strings.Join(lines, ""), " ", ""); got != strings.ReplaceAll(whole, " ", "") {
			t.Fatalf("%q became %q", whole, lines)
		}
		for i, l := range lines[:len(lines)-1] {
			last, first := l[strings.LastIndex(l, " ")+1:], strings.Fields(lines[i+1])[0]
			if slices.Contains([]string{"18.1", "2.5", "(2.4", "±3", "-7"}, last) && slices.Contains([]string{"ms", "%", "KiB", "layers"}, first) {
				t.Fatalf("%q is parted from %q", last, first)
			}
		}
	})
}

// wide is a measured profile of layers of one kind, as a real model has them.
func wide(n int) *profile.Profile {
	p := fixed()
	p.Layers, p.Findings = nil, nil
	for i := range n {
		p.Layers = append(p.Layers, profile.Layer{
			Index: int64(i), Op: "DEPTHWISE_CONV_2D", Name: "mobilenet/features/block_" + strconv.Itoa(i) + "/depthwise;mobilenet/bn", State: profile.Ran,
			Inputs: []profile.Tensor{tensorOf("x", 1, 112, 112, 32)}, Outputs: []profile.Tensor{tensorOf("y", 1, 112, 112, 32)},
			MACs: new(int64(3_612_672)), Ops: new(int64(7_325_344)), Params: new(int64(320)), BytesRead: new(int64(401_408)),
			Latency: measured(float64(i+1) * 1e-4), Share: new(float64(i+1) / 100), Options: options("padding:same stride:1x1"),
		})
	}
	return p
}

// However narrow the terminal, operators have whole names, layers can be told apart by
// the ends of theirs, and what had no room is named.
func TestNarrow(t *testing.T) {
	t.Parallel()
	for _, width := range []int{60, 80, 100, 120} {
		var b bytes.Buffer
		if err := Write(&b, wide(12), "table", Options{Width: width}); err != nil {
			t.Fatal(err)
		}
		out := b.String()
		_, table, _ := strings.Cut(out, "\n\n")
		if n := strings.Count(table, "DEPTHWISE_CONV_2D"); n != 12 {
			t.Errorf("width %d: %d whole operators, want 12:\n%s", width, n, out)
		}
		if strings.Contains(out, "mobilenet/bn") {
			t.Errorf("width %d: names of what was fused", width)
		}
		if n := strings.Count(out, "/depthwise\n"); n != 12 {
			t.Errorf("width %d: %d ends of names, want 12:\n%s", width, n, out)
		}
		_, table, _ = strings.Cut(out, "#  operator")
		heading, _, _ := strings.Cut(table, "\n")
		head := strings.Fields(heading)
		lacking := out[strings.Index(out, "not shown (terminal too narrow): "):]
		for _, c := range []string{"±", "cum.", "ops", "op/s", "params", "bytes", "output", "input", "options"} {
			in := slices.Contains(head, c)
			if out := strings.Contains(strings.ReplaceAll(lacking, "\n", " "), c); in == out {
				t.Errorf("width %d: column %q is in the table: %t, named as left out: %t", width, c, in, out)
			}
		}
	}
}

// Bars are for terminals: their lengths are as the shares.
func TestBars(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := wide(2)
	p.Layers[0].Share, p.Layers[1].Share = new(0.25), new(0.5)
	if err := Write(&b, p, "table", Options{Width: 120}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"25.0 %  ██▌", "50.0 %  █████ "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for _, format := range []string{"table", "markdown", "csv"} {
		b.Reset()
		if err := Write(&b, p, format, Options{}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(b.String(), "█▌") {
			t.Errorf("%s without a terminal has bars", format)
		}
	}
}

// Colours mark findings where the terminal shows them, and nowhere else.
func TestColour(t *testing.T) {
	t.Parallel()
	for _, color := range []bool{true, false} {
		var b bytes.Buffer
		if err := Brief(&b, fixed(), Options{Width: 80, Color: color}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "\x1b["); got != color {
			t.Errorf("Color %t: escapes in it: %t", color, got)
		}
		for _, mark := range []string{"·", "!", "✗"} {
			if !strings.Contains(b.String(), mark) {
				t.Errorf("Color %t: no %s", color, mark)
			}
		}
	}
}

// The rows of --top are the slowest, whatever their order of execution, and the line
// below says so.
func TestTop(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		change      func(p *profile.Profile)
		o           Options
		first, line string
	}{
		{"slowest", nil, Options{Top: 2}, "11 ", "the slowest 2 of 12 layers: leave out --top for all"},
		{"an order of one's own", nil, Options{Top: 2, Sort: "index"}, "0 ", "the first 2 of 12 layers: leave out --top for all"},
		{"without times", func(p *profile.Profile) {
			for i := range p.Layers {
				p.Layers[i].Latency, p.Layers[i].Share = nil, nil
			}
			p.Layers[7].MACs = new(int64(1 << 40))
		}, Options{Top: 1}, "7 ", "the first 1 of 12 layers by macs: leave out --top for all"},
		{"all of them", nil, Options{Top: 12}, "11 ", ""},
		{"groups", nil, Options{Top: 1, By: "scope"}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := wide(12)
			if tt.change != nil {
				tt.change(p)
			}
			var b bytes.Buffer
			if err := Write(&b, p, "table", tt.o); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(b.String(), "\n")
			i := slices.IndexFunc(lines, func(l string) bool {
				return strings.Contains(l, "time") && strings.Contains(l, "operator") || strings.Contains(l, "operator  ")
			})
			if tt.first != "" && !strings.HasPrefix(strings.TrimLeft(lines[i+1], " "), tt.first) {
				t.Errorf("the first row is %q, want layer %s", lines[i+1], tt.first)
			}
			if got := strings.Contains(b.String(), "leave out --top"); got != (tt.line != "") {
				t.Errorf("a line on what is left out: %t", got)
			}
			if !strings.Contains(b.String(), tt.line) {
				t.Errorf("no %q in\n%s", tt.line, b.String())
			}
		})
	}
}

// Notes that have no room follow below the table, alike ones together and none lost.
func TestNotesBelow(t *testing.T) {
	t.Parallel()
	p := wide(30)
	for i := range 20 {
		p.Layers[i].State, p.Layers[i].Cause = profile.Skipped, &profile.Cause{Code: profile.ByInput, Text: "an input was not computed, because the operator before it cannot run here"}
	}
	p.Layers[29].State, p.Layers[29].Cause = profile.Failed, &profile.Cause{Code: profile.ByError, Text: "index 7 is outside of 5"}
	var b bytes.Buffer
	if err := Write(&b, p, "table", Options{Width: 80}); err != nil {
		t.Fatal(err)
	}
	out := strings.ReplaceAll(b.String(), "\n", " ")
	for _, want := range []string{
		"#0, #1, #2, #3, #4, #5, #6, #7 and 12 more layers: an input was not computed, because the operator before it cannot run here",
		"#29: failed: index 7 is outside of 5",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// The list names columns that it has no room for, and says of refused files why on
// lines of their own.
func TestListNarrow(t *testing.T) {
	t.Parallel()
	for _, width := range []int{60, 80, 100, 140, 0} {
		var b bytes.Buffer
		l := NewList(&b, ListOptions{Width: width, Measured: true, Files: []string{"a/some_long_name_of_a_model_that_goes_on.onnx", "b.tflite"}})
		long := "the graph has a cycle: " + strings.Repeat("node 3 (Neg), ", 60)
		for _, r := range []ListRow{{Path: "a/some_long_name_of_a_model_that_goes_on.onnx", TargetRow: TargetRow{Profile: fixed()}}, {Path: "b.tflite", Err: &textError{long}}} {
			if err := l.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		out := b.String()
		for line := range strings.Lines(out) {
			if n := text.Width(strings.TrimRight(line, "\n")); width > 0 && n > width {
				t.Errorf("width %d: %d columns in %q", width, n, line)
			}
		}
		head, _, _ := strings.Cut(out, "\n")
		for _, c := range []string{"format", "size", "layers", "MACs", "params", "RAM", "latency", "slowest layer"} {
			_, below, _ := strings.Cut(out, "not shown (terminal too narrow): ")
			if strings.Contains(head, c) == strings.Contains(strings.ReplaceAll(below, "\n", " "), c) {
				t.Errorf("width %d: column %q is both there and left out, or neither:\n%s", width, c, out)
			}
		}
		if width > 0 && !strings.Contains(out, "\nb.tflite\n    refused: the graph has a cycle") {
			t.Errorf("width %d: the refusal is not on its own line:\n%s", width, out)
		}
		if strings.Contains(out, "#0 Conv 90.0 %") != (width == 0 || width >= 80) {
			t.Errorf("width %d: the slowest layer:\n%s", width, out)
		}
	}
}

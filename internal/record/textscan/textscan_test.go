package textscan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record/textscan"
)

func lines(s string) (out []string) {
	sc := textscan.NewScanner(strings.NewReader(s))
	for sc.Scan() {
		out = append(out, sc.Text())
	}
	return out
}

func TestLines(t *testing.T) {
	t.Parallel()
	want := []string{"a", "b", "", "c"}
	for _, s := range []string{"a\nb\n\nc", "a\nb\n\nc\n", "a\r\nb\r\n\r\nc\r\n", "a\rb\r\rc\r", "\ufeffa\nb\n\nc\n", "a<br />\nb<br>\n<br/>\nc<br />", "\xff\xfea\x00\n\x00b\x00\r\x00\n\x00\n\x00c\x00", "\xfe\xff\x00a\x00\n\x00b\x00\n\x00\n\x00c"} {
		if got := lines(s); !slices.Equal(got, want) {
			t.Errorf("%q: %q", s, got)
		}
	}
	if got := lines("a<br />b<br />c"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("breaks within a line: %q", got)
	}
	if got := lines("10 %\r20 %\r100 % done\nnext"); !slices.Equal(got, []string{"10 %", "20 %", "100 % done", "next"}) {
		t.Errorf("both ends of lines: %q", got)
	}
	if got := lines("\x00\x00\x1b[0;32mI (5) a\x1b[0m\n"); !slices.Equal(got, []string{"I (5) a"}) {
		t.Errorf("colours and bytes of nothing: %q", got)
	}
	if got := lines("\x1b]0;title\a\x1b[36mweb-1 |\x1b(B\x1b[m a\x1b[?25h\n"); !slices.Equal(got, []string{"web-1 | a"}) {
		t.Errorf("codes of a terminal: %q", got)
	}
	if textscan.Head([]byte("\x00a\nb\n"+strings.Repeat("c", 100)), true) == nil || textscan.Head([]byte("\x00\x01\x02"), true) != nil {
		t.Error("text and no text")
	}
	if got := lines("a\xffb"); got[0] != "a\ufffdb" {
		t.Errorf("bytes that are not UTF-8: %q", got)
	}
	long := strings.Repeat("x", textscan.MaxLine+100)
	sc := textscan.NewScanner(strings.NewReader(long + "\nend\n"))
	if !sc.Scan() || len(sc.Text()) != textscan.MaxLine || sc.Long() == 0 || !sc.Scan() || sc.Text() != "end" || sc.Scan() || sc.Err() != nil {
		t.Errorf("a long line has %d bytes, %d left out", len(sc.Text()), sc.Long())
	}
}

func TestStrip(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"INFO: STARTING!": "STARTING!",
		"04-05 12:34:56.789  1234  5678 I tflite  : \tCONV_2D\t1":      "\tCONV_2D\t1",
		"I/tflite  (12345): Timings":                                   "Timings",
		"I0405 12:34:56.789012 1234 benchmark_model.cc:123] STARTING!": "STARTING!",
		"[ INFO ] Performance counts":                                  "Performance counts",
		"> quoted":                                                     "quoted",
		"\tCONV_2D\t0.1":                                               "\tCONV_2D\t0.1",
		"2022-09-06 13:15:37.000000+0900 TFLiteBenchmark[54612:4020499] \tADD\t1":      "\tADD\t1",
		"2022-09-06 13:15:37.000024+0900 TFLiteBenchmark[54612:4020499] ":              "",
		"2022-09-06 13:15:37.1+0900 0x1f3 Default     0x0    123    0    App: (Lib) x": "(Lib) x",
		"Sep  6 13:15:37 my-host app[123]: count=1":                                    "count=1",
		"2022-09-06T13:15:37.000123Z count=1":                                          "count=1",
		"[05/08/2024-14:05:14] [I]    Time(ms)":                                        "   Time(ms)",
		"[05/08/2024-14:05:14] [I] ":                                                   "",
		"12:34:56.789 -> SOFTMAX took 3 ticks":                                         "SOFTMAX took 3 ticks",
		"[00:00:01.234,000] <inf> main: SOFTMAX took 3 ticks":                          "SOFTMAX took 3 ticks",
		"I (1234) main: SOFTMAX took 3 ticks":                                          "SOFTMAX took 3 ticks",
		"09-06 13:15:37.123 I/tflite  ( 1234): \tADD\t1":                               "\tADD\t1",
		"2024-01-02 10:11:12,123 - bench.main - INFO - Total: 3":                       "Total: 3",
		"INFO:root:Total: 3":                                                           "Total: 3",
		"\tINFO: Num threads: [4]":                                                     "Num threads: [4]",
		"    > > INFO: x":                                                              "x",
		"    indented":                                                                 "    indented",
		"2024-01-02 10:11:12,abc,5":                                                    "2024-01-02 10:11:12,abc,5",
		"[1,3,224,224] conv":                                                           "[1,3,224,224] conv",
		"Add (ND, QU8)\t0.1":                                                           "Add (ND, QU8)\t0.1",
		"1 day, 0:00:01.5":                                                             "1 day, 0:00:01.5",
	} {
		if got := textscan.Strip(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]float64{"1": 1, " -2.5 ": -2.5, "34.118%": 34.118, "2.95034e+06": 2950340, "1,234,567": 1234567, ".5": .5, "+3": 3, "827,256.5": 827256.5} {
		if got, ok := textscan.Number(in); !ok || got != want {
			t.Errorf("%q: %v %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "nan", "inf", "-inf", "1e999", "0x10", "1,23", "1_000", "a", "%", "--1"} {
		if got, ok := textscan.Number(in); ok {
			t.Errorf("%q is %v", in, got)
		}
	}
	for in, want := range map[string]float64{"35.5m": 0.0355, "2.8M": 2.8e6, "490.0": 490, "0": 0, "16.5n": 16.5e-9, "1.2k": 1200} {
		if got, ok := textscan.Scaled(in); !ok || got != want {
			t.Errorf("scaled %q: %v %v", in, got, ok)
		}
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"a,b,,c":              {"a", "b", "", "c"},
		`"a,b",c`:             {"a,b", "c"},
		`"say ""x""",2`:       {`say "x"`, "2"},
		`"never closed,b`:     {`"never closed`, "b"},
		`"=IF(A1=90%,B,C)",x`: {"=IF(A1=90%,B,C)", "x"},
		"":                    {""},
		"a,":                  {"a", ""},
	} {
		if got := textscan.Fields(in, ','); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	c := textscan.NewColumns([]string{" Name ", "Network%", "x", "Network%"})
	if at := c.At("name"); at != 0 || c.At("network%") != 1 || c.After(1, "Network%") != 3 || c.At("y") != -1 {
		t.Error("columns", at)
	}
	if row, ok := textscan.Boxed("| a | b  |"); !ok || !slices.Equal(row, []string{"a", "b"}) {
		t.Error(row, ok)
	}
}

func FuzzLines(f *testing.F) {
	f.Add("a\r\nb<br />c\rd")
	f.Add("\xff\xfea\x00")
	f.Fuzz(func(t *testing.T, s string) {
		n := 0
		for _, l := range lines(s) {
			textscan.Strip(l)
			textscan.Number(l)
			textscan.Scaled(l)
			textscan.Fields(l, ',')
			n += len(l)
		}
		if n > 3*len(s) { // a byte that is not UTF-8 becomes three
			t.Fatalf("%d bytes of %d", n, len(s))
		}
	})
}

// TestRules checks that the first rule that matches a line is applied.
func TestRules(t *testing.T) {
	t.Parallel()
	rules := textscan.Rules[*[]string]{
		textscan.On(`^a(\d)`, func(to *[]string, m []string) { *to = append(*to, "first "+m[1]) }),
		textscan.On(`^a`, func(to *[]string, m []string) { *to = append(*to, "second "+m[0]) }),
	}
	var got []string
	if !rules.Apply(&got, "a1") || !rules.Apply(&got, "ab") || rules.Apply(&got, "b") || !slices.Equal(got, []string{"first 1", "second a"}) {
		t.Errorf("%q", got)
	}
}

func TestNotFinite(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{"nan": true, "NaN": true, " -inf ": true, "Infinity": true, "1e400": true, "-1e400%": true, "1": false, "1e300": false, "": false, "info": false, "x": false} {
		if got := textscan.NotFinite(in); got != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}

package sensiml

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/base/port"
)

// never is a device that says something once and is silent then.
type never struct {
	once io.Reader
	stop chan struct{}
}

func (n *never) Read(b []byte) (int, error) {
	if k, _ := n.once.Read(b); k > 0 {
		return k, nil
	}
	<-n.stop
	return 0, io.EOF
}

func newNever(t *testing.T, text string) *never {
	n := &never{once: strings.NewReader(text), stop: make(chan struct{})}
	t.Cleanup(func() { close(n.stop) })
	return n
}

const one = `{"ModelNumber":0,"Type":"Cycles", "FeatureCycles":[10,20],"ClassifierCycles": 30}` + "\n"

// TestSilence: a device that falls silent ends a run within the timeout, with what it had said.
func TestSilence(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "garbage\n", one + one + one} {
		p, err := NewProfileParser(Options{Input: newNever(t, text), Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		err = p.Run(t.Context())
		_, nothing := errors.AsType[*NothingError](err)
		if err == nil || nothing != (text != one+one+one) || p.IsRunning() {
			t.Errorf("%q: %v", text, err)
		}
		if n := p.Result().Runs; text == one+one+one && n != 3 {
			t.Errorf("%d inferences of 3", n)
		}
	}
}

// TestStop: Stop and the context end a run that waits; results stay.
func TestStop(t *testing.T) {
	t.Parallel()
	came := make(chan struct{}, 100)
	p, err := NewProfileParser(Options{Input: newNever(t, one+one), Progress: func(Progress) { came <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(p.JSON()) + string(p.YAML()); got != "{}{}\n" || len(p.Metrics()) != 0 {
		t.Errorf("before a run: %q", got)
	}
	done := make(chan error)
	go func() { done <- p.Run(context.Background()) }()
	<-came
	if !p.IsRunning() {
		t.Error("does not say that it runs")
	}
	p.Stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if res := p.Result(); res.Runs != 2 || res.Incomplete == "" || p.IsRunning() {
		t.Errorf("%d runs, %q", res.Runs, res.Incomplete)
	}
}

// TestNoProfile: a pack that prints classes only ends a run with advice, and not after hours.
func TestNoProfile(t *testing.T) {
	t.Parallel()
	p, err := NewProfileParser(Options{Messages: 10, Input: newNever(t, strings.Repeat("{\"ModelNumber\":0,\"Classification\":1}\n", 1000))})
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Run(t.Context())
	res := p.Result()
	if res.Incomplete == "" || !has(res, "sensiml.no_profile") || res.Models[0].Results == 0 {
		t.Errorf("%+v", res)
	}
}

// TestLineEnds: any line end, NULs, text before and behind, two objects on a line, a cut one
// before a whole one.
func TestLineEnds(t *testing.T) {
	t.Parallel()
	line := strings.TrimSuffix(one, "\n")
	for _, w := range []struct {
		stream   string
		messages int64
		rejected map[Reason]int64
	}{
		{line + "\n" + line + "\n", 2, nil},
		{line + "\r\n" + line + "\r\n", 2, nil},
		{line + "\n\r\n" + line + "\n\r\n", 2, nil},
		{line + "\r" + line, 2, nil},
		{"\x00" + line[:30] + "\x00\x00" + line[30:] + "\x00\n", 1, nil},
		{"Unscaled Features: 1, 2, " + line + " end\n", 1, map[Reason]int64{ReasonText: 1}},
		{line + line + "\n", 2, nil},
		{line[:40] + line + "\n", 1, map[Reason]int64{ReasonSyntax: 1}},
		{line[20:] + "\n" + line + "\n", 1, map[Reason]int64{ReasonText: 1}},
		{line[:len(line)-1] + "\n" + line, 1, map[Reason]int64{ReasonCut: 1}},
		{strings.Replace(line, "20]", "20,]", 1), 1, nil},
		{strings.Replace(line, "20]", "2-0]", 1), 0, map[Reason]int64{ReasonSyntax: 1}},
		{strings.Replace(line, "20]", "020]", 1), 0, map[Reason]int64{ReasonSyntax: 1}},
		{strings.Replace(line, "20]", "5000000000]", 1), 0, map[Reason]int64{ReasonNumber: 1}},
		{strings.Replace(line, "20]", "20.5]", 1), 0, map[Reason]int64{ReasonNumber: 1}},
		{strings.Replace(line, "FeatureCycles", "FeatureCyclez", 1), 0, map[Reason]int64{ReasonIncomplete: 1}},
		{strings.Replace(line, `"Cycles"`, `"Cyclos"`, 1), 0, map[Reason]int64{ReasonForeign: 1}},
		{strings.Repeat("x", maxLine+5) + "\n" + line, 1, map[Reason]int64{ReasonTooLong: 1}},
		{`{"ModelNumber":0,"Classification":2,"SegmentStart":400,"SegmentLength":200,"FeatureVectorLength":3, "FeatureVector":[12,0,255],"OutputSize":0,"OutputTensor":[]}`, 1, nil},
		{`{"ModelNumber":0,"Classification":2,"FeatureVectorLength":3, "FeatureVector":[12,255]}`, 0, map[Reason]int64{ReasonLength: 1}},
		{`{"ModelNumber":0,"Result":-nan}`, 1, nil},
		{"Model 0 does not have profiling enabled\n", 1, map[Reason]int64{ReasonText: 1}},
	} {
		// In one piece and byte by byte.
		for _, size := range []int{len(w.stream), 1} {
			var d Decoder
			yield := func(*Message) bool { return true }
			for b := []byte(w.stream); len(b) > 0; {
				n := min(size, len(b))
				d.Feed(b[:n], yield)
				b = b[n:]
			}
			d.End(yield)
			if diff := cmp.Diff(w.rejected, d.Rejected()); diff != "" || d.Messages() != w.messages || d.Bytes() != int64(len(w.stream)) {
				t.Errorf("%.100q: %d messages, want %d, %s", w.stream, d.Messages(), w.messages, diff)
			}
		}
	}
}

// TestOutcomes: segments, vectors and classes of results are kept.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	text := `{"ModelNumber":0,"Classification":2,"SegmentStart":400,"SegmentLength":200,"FeatureVectorLength":2, "FeatureVector":[12,0],"OutputSize":1,"OutputTensor":[3.500000]}` + "\n" + one
	res := replay(t, "", []byte(text), Options{}).Result()
	m := res.Models[0]
	if len(m.Outcomes) != 1 || *m.Outcomes[0].Class != 2 || *m.Outcomes[0].Start != 400 || m.SegmentLength.Mean != 200 || m.Outcomes[0].Tensor[0] != 3.5 || len(m.Outcomes[0].Vector) != 2 {
		t.Errorf("%+v", m)
	}
}

// TestOrder: times may come before the cycles of their inference, and pair with them.
func TestOrder(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	for _, part := range bytes.SplitAfter(made(20, true), []byte("\n\n")) {
		// The line with times goes before that with cycles.
		if bytes.Contains(part, []byte("Times")) {
			b2 := append(bytes.Clone(part), b.Bytes()[bytes.LastIndex(b.Bytes(), []byte(`{"ModelNumber":0,"Classification"`)):]...)
			b.Truncate(bytes.LastIndex(b.Bytes(), []byte(`{"ModelNumber":0,"Classification"`)))
			part = b2
		}
		b.Write(part)
	}
	res := replay(t, "", b.Bytes(), Options{Messages: -1}).Result()
	if res.Runs != 20 || has(res, "sensiml.from_times") || has(res, "sensiml.contradiction") {
		t.Errorf("%d runs, %v", res.Runs, res.Findings)
	}
	// A count that contradicts its seconds is left out.
	damaged := bytes.Replace(made(20, true), []byte(`"FeatureCycles":[1`), []byte(`"FeatureCycles":[3`), 1)
	res = replay(t, "", damaged, Options{Messages: -1}).Result()
	if s := res.Models[0].Features[0].Cycles; !has(res, "sensiml.contradiction") || s.N != 19 || s.Left != 1 || !(*s.LeftMax > 30000) {
		t.Errorf("%+v, %v", s, res.Findings)
	}
}

// TestWrappedCounter leaves out counts of a 32-bit counter that went round, also where they are a
// tenth of all, and keeps them on request.
func TestWrappedCounter(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 30 {
		v := 1000 + i
		if i%10 == 3 {
			v = 1<<32 - 500*i
		}
		fmt.Fprintf(&b, "{\"ModelNumber\":0,\"Type\":\"Cycles\", \"FeatureCycles\":[%d,2000],\"ClassifierCycles\": 3000}\n", v)
	}
	res := replay(t, "", []byte(b.String()), Options{Messages: -1}).Result()
	s := res.Models[0].Features[0].Cycles
	if !has(res, "sensiml.wrapped") || has(res, "sensiml.varied") || s.N != 27 || s.Left != 3 || s.Mean < 1000 || s.Mean > 1030 || s.Max > 1030 {
		t.Errorf("%+v, %v", s, res.Findings)
	}
	if share := res.Models[0].Features[0].Share; share == nil || *share > 0.2 {
		t.Errorf("a share of %v of the whole", share)
	}
	kept := replay(t, "", []byte(b.String()), Options{Messages: -1, Rules: Rules{KeepAll: true}}).Result()
	if s := kept.Models[0].Features[0].Cycles; s.N != 30 || s.Left != 0 || has(kept, "sensiml.wrapped") {
		t.Errorf("with all kept: %+v, %v", s, kept.Findings)
	}
	// A device whose work is as long as that has no wraps.
	long := strings.ReplaceAll(b.String(), "2000", "4000000000")
	res = replay(t, "", []byte(long), Options{Messages: -1}).Result()
	if s := res.Models[0].Features[1].Cycles; s.N != 30 || s.Left != 0 {
		t.Errorf("long work: %+v", s)
	}
}

// TestYAMLText: texts are quoted as PyYAML quotes them (checked against version 6).
func TestYAMLText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Mean": "Mean", "25th Percentile": "25th Percentile", "0.000388234": "'0.000388234'", "": "''", "yes": "'yes'", "12": "'12'", "a: b": "'a: b'",
		"a:b": "a:b", "- a": "'- a'", "-a": "-a", "#x": "'#x'", "a #b": "'a #b'", "it's": "it's", "'x": "'''x'", " x": "' x'", "é": `"\xE9"`, "1e5": "1e5", "1.5e+3": "'1.5e+3'",
		"null": "'null'", "~": "'~'", "2020-01-02": "'2020-01-02'", "=": "'='", "@x": "'@x'", "a\tb": `"a\tb"`, "012": "'012'", "0x1F": "'0x1F'", "1:30": "'1:30'",
	} {
		if got := yamlText(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// slow is a serial port whose device has another speed than the first.
type slow struct {
	speed, right int
	set          []int
	text         *strings.Reader
}

func (s *slow) Read(_ context.Context, b []byte) (int, error) {
	if s.speed == s.right {
		return s.text.Read(b)
	}
	for i := range b[:1000] {
		b[i] = byte(0x80 | i*37)
	}
	return 1000, nil
}

func (s *slow) SetSpeed(baud int) error {
	s.speed = baud
	s.set = append(s.set, baud)
	return nil
}

func (s *slow) Close() error { return nil }

// TestSpeed: noise makes the next speed be tried, unless one was named.
func TestSpeed(t *testing.T) {
	t.Parallel()
	p, err := NewProfileParser(Options{Messages: 2})
	if err != nil {
		t.Fatal(err)
	}
	in := &slow{speed: 115200, right: 921600, text: strings.NewReader(one + one + one)}
	if err := p.read(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{460800, 921600}, in.set); diff != "" || p.Result().Runs != 2 {
		t.Errorf("%d runs, %s", p.Result().Runs, diff)
	}
}

// away is a device that was unplugged in the middle of a line and came back in another.
type away struct{ parts []string }

func (a *away) Read(_ context.Context, b []byte) (int, error) {
	if len(a.parts) == 0 {
		return 0, io.EOF
	}
	s := a.parts[0]
	a.parts = a.parts[1:]
	if s == "" {
		return 0, port.ErrReopened
	}
	return copy(b, s), nil
}

func (a *away) Close() error { return nil }

// TestReopened: what lies around a gap is not put together, though it would look whole.
func TestReopened(t *testing.T) {
	t.Parallel()
	p, err := NewProfileParser(Options{Messages: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.read(t.Context(), &away{[]string{one + one[:len(one)/2+9], "", one[len(one)/2+9:] + one}}); err != nil {
		t.Fatal(err)
	}
	res := p.Result()
	if res.Runs != 2 || res.Rejected[ReasonCut] != 1 || res.Rejected[ReasonText] != 1 {
		t.Errorf("%d runs, %v", res.Runs, res.Rejected)
	}
}

package words

import (
	"fmt"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

func TestNote(t *testing.T) {
	t.Parallel()
	cpu := func(c profile.CauseCode, text string) *profile.Placement {
		return &profile.Placement{On: profile.CPU, Cause: c, Text: text}
	}
	why := func(c profile.CauseCode, text string) *profile.Cause { return &profile.Cause{Code: c, Text: text} }
	for _, tt := range []struct {
		l                   profile.Layer
		note, brief, placed string
	}{
		{profile.Layer{State: profile.Ran}, "", "", ""},
		{profile.Layer{State: profile.Folded}, "computed once at load", "computed once at load", ""},
		{profile.Layer{State: profile.Fused, FusedInto: new(int64(3))}, "fused into 3", "fused into 3", ""},
		{profile.Layer{State: profile.NotReached}, "not reached in these runs", "not reached in these runs", ""},
		{profile.Layer{State: profile.Unsupported, Cause: why(profile.ByOperator, "version 99")}, "not supported: version 99", "not supported: version 99", ""},
		{profile.Layer{State: profile.Unsupported, Cause: why(profile.ByOperator, "")}, "not supported", "not supported", ""},
		{profile.Layer{State: profile.Unsupported, Cause: why(profile.ByUse, "")}, "not supported: use of the operator", "not supported: use of the operator", ""},
		{profile.Layer{State: profile.Skipped, Cause: why(profile.ByInput, "")}, "an input was not computed", "an input was not computed", ""},
		{profile.Layer{State: profile.Skipped}, "an input was not computed", "an input was not computed", ""},
		{profile.Layer{State: profile.Failed, Cause: why(profile.ByError, "axis 7 of 4")}, "failed: axis 7 of 4", "failed: axis 7 of 4", ""},
		{profile.Layer{State: profile.Lost, Cause: why(profile.ByRecord, "")}, "record lost", "record lost", ""},
		{profile.Layer{State: profile.Ran, Placement: &profile.Placement{On: "mvp"}}, "", "", "yes"},
		{profile.Layer{State: profile.Ran, Placement: &profile.Placement{On: "mvp", Cause: profile.ByLimit, Text: "refused first"}}, "", "", "yes"},
		{profile.Layer{State: profile.Ran, Placement: cpu("", "")}, "", "", "no"},
		{profile.Layer{State: profile.Ran, Placement: cpu(profile.ByOperator, "not an MVP operator")}, "not an MVP operator", "", "no: operator"},
		{profile.Layer{State: profile.Ran, Placement: cpu(profile.ByLimit, "2048 > 2047")}, "limit exceeded: 2048 > 2047", "limit exceeded: 2048 > 2047", "no: limit"},
		{
			profile.Layer{State: profile.NoEstimate, Cause: why(profile.ByNoFigures, ""), Placement: cpu(profile.ByType, "MVP takes int8")},
			"MVP takes int8; no estimate: no measurements exist", "MVP takes int8; no estimate: no measurements exist", "no: type",
		},
		{
			profile.Layer{State: profile.NoEstimate, Cause: why(profile.ByOperator, "custom operators are not known"), Placement: cpu(profile.ByOperator, "not an MVP operator")},
			"not an MVP operator; no estimate: custom operators are not known", "no estimate: custom operators are not known", "no: operator",
		},
	} {
		if got := Note(&tt.l, false); got != tt.note {
			t.Errorf("%s: note %q, want %q", tt.l.State, got, tt.note)
		}
		if got := Note(&tt.l, true); got != tt.brief {
			t.Errorf("%s: brief note %q, want %q", tt.l.State, got, tt.brief)
		}
		if got := Placed(&tt.l); got != tt.placed {
			t.Errorf("%s: placed %q, want %q", tt.l.State, got, tt.placed)
		}
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]profile.Missing{
		"the source ended unexpectedly; figures cover the data received until then":        {Cause: profile.ByEnd},
		"stopped early; figures cover the part that ran (12 of 50)":                        {Cause: profile.ByCancel, Got: new(int64(12)), Want: new(int64(50))},
		"without 1 layer: 3 records lost: the buffer was full":                             {Cause: profile.ByRecord, Layers: []int64{4}, Want: new(int64(3)), Text: "the buffer was full"},
		"without 2 layers: no measurements exist":                                          {Cause: profile.ByNoFigures, Layers: []int64{4, 5}},
		"an error: the cable was pulled":                                                   {Cause: profile.ByError, Text: "the cable was pulled"},
		"time limit reached; figures cover the part that ran (1 of 9): 2 s were asked for": {Cause: profile.ByDeadline, Text: "2 s were asked for", Got: new(int64(1)), Want: new(int64(9))},
	} {
		if got := Missing(&m); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestCounts has one layer of every state but two of one.
func TestCounts(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{}
	for _, s := range []profile.State{
		profile.Ran, profile.Folded, profile.Unsupported, profile.Unsupported, profile.Skipped, profile.Failed, profile.NotReached, profile.Lost, profile.NoEstimate,
	} {
		p.Layers = append(p.Layers, profile.Layer{State: s})
	}
	if got, want := strings.Join(Blanks(p), ", "), "2 not supported, 2 not run, 1 lost, 1 without an estimate"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Without(p), "without 4 layers that did not run and 1 layer with lost records and 1 layer without an estimate"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Target.Kind = profile.TargetSimulator
	if got, want := Without(p), "without 1 layer with lost records and 5 layers without an estimate"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Without(&profile.Profile{}); got != "" {
		t.Errorf("nothing left out: %q", got)
	}
}

// TestDoubts: every reason has words, with its figure where it has one.
func TestDoubts(t *testing.T) {
	t.Parallel()
	for code, want := range map[profile.DoubtCode]string{
		profile.DoubtFewRuns: "only 3 runs", profile.DoubtInterval: "±300 %", profile.DoubtSpread: "varies by 300 %", profile.DoubtStep: "shifted by 300 %", profile.DoubtDrift: "drifted by 300 %",
		profile.DoubtModes: "separate groups", profile.DoubtSpeed: "speed varied by 300 %", profile.DoubtEarlier: "differs by 300 %", profile.DoubtWaiting: "disturbed 300 % of the inferences", profile.DoubtStolen: "hypervisor took 300 %",
		profile.DoubtThrottled: "heat 3 times", profile.DoubtQuota: "for 3 s", profile.DoubtBusy: "load average 3.0 per CPU", profile.DoubtGovernor: "follows the load", profile.DoubtBattery: "battery",
		profile.DoubtThreads: "3 threads per CPU", profile.DoubtCollector: "ran 3 times", profile.DoubtInstruments: "overhead 300 %", profile.DoubtReconcile: "differ by 300 %",
		profile.DoubtIncomplete: "3 layers did not run", profile.DoubtNotPinned: "not be pinned", profile.DoubtLost: "in 300 % of the inferences",
		profile.DoubtTolerance: "may differ by 300 %", profile.DoubtShareRuns: "only 3 undisturbed runs", profile.DoubtShares: "±300 %",
	} {
		got := Doubts(&profile.Trust{Doubts: []profile.Doubt{{Code: code, Value: new(3.0)}}})
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
	two := &profile.Trust{Doubts: []profile.Doubt{{Code: profile.DoubtBattery}, {Code: profile.DoubtWaiting, Value: new(0.0814)}}}
	if got, want := Doubts(two), "running on battery; other programs disturbed 8.1 % of the inferences"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if Doubts(nil)+Quote(nil)+Fit(nil)+Fit(&profile.Trust{})+FitCell(&profile.Trust{}) != "" {
		t.Error("words of nothing")
	}
}

// TestFit says what each state is good for; tolerances are rounded up.
func TestFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t          profile.Trust
		long, cell string
	}{
		{profile.Trust{Verdict: profile.Good, Fit: profile.FitComparing, Tolerance: new(0.02)}, "fit for comparing at ±2 %", "±2 %"},
		{profile.Trust{Verdict: profile.Good, Fit: profile.FitComparing, Tolerance: new(0.0141)}, "fit for comparing at ±1.5 %", "±1.5 %"},
		{profile.Trust{Verdict: profile.Good, Fit: profile.FitComparing, Tolerance: new(0.051)}, "fit for comparing at ±6 %", "±6 %"},
		{profile.Trust{Verdict: profile.Fair, Fit: profile.FitShares, Tolerance: new(0.12)}, "fit for shares, total ±12 %", "shares"},
		{profile.Trust{Verdict: profile.Unreliable, Fit: profile.FitShares}, "fit for shares alone", "shares"},
		{profile.Trust{Verdict: profile.Fair, Fit: profile.FitNothing, Tolerance: new(0.12)}, "not fit for comparing, total ±12 %", "repeat"},
		{profile.Trust{Verdict: profile.Unreliable, Fit: profile.FitNothing, Tolerance: new(0.3)}, "unstable: repeat", "repeat"},
		{profile.Trust{Verdict: profile.Good}, "fit for comparing", "comparing"},
		{profile.Trust{Verdict: profile.Fair}, "not fit for comparing", "doubtful"},
		{profile.Trust{Verdict: profile.Unreliable}, "unstable: repeat", "repeat"},
	} {
		if long, cell := Fit(&c.t), FitCell(&c.t); long != c.long || cell != c.cell {
			t.Errorf("%+v: %q and %q, want %q and %q", c.t, long, cell, c.long, c.cell)
		}
	}
}

// TestModesWords states each speed with its part, and why one is the latency.
func TestModesWords(t *testing.T) {
	t.Parallel()
	show := func(v float64) string { return fmt.Sprintf("%.0f µs", v*1e6) }
	two := []profile.Mode{{Part: 0.62, LatencyS: 113e-6, Headline: true}, {Part: 0.38, LatencyS: 190e-6}}
	smt := &profile.Host{SMT: new(true)}
	const begin = "two speeds: 113 µs in 62 % of the inferences, 190 µs in 38 %; stated is 113 µs, "
	for _, c := range []struct {
		p    profile.Profile
		want string
	}{
		{profile.Profile{}, ""},
		{profile.Profile{Trust: &profile.Trust{Modes: two[:1]}}, ""},
		{profile.Profile{Host: smt, Trust: &profile.Trust{Modes: two, ModesBySpeed: true}}, begin + "the speed at which the reference loop runs fastest"},
		{profile.Profile{Trust: &profile.Trust{Modes: two}}, begin + "the most frequent (the reference loop does not explain them)"},
		{profile.Profile{Host: smt, Trust: &profile.Trust{Modes: two}}, begin + "the most frequent (the reference loop does not explain them); a program on the other hardware thread of a core may be the cause"},
	} {
		if got := Modes(&c.p, show); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestSharesDoubt names the first reason to doubt the shares.
func TestSharesDoubt(t *testing.T) {
	t.Parallel()
	d := &profile.Trust{Doubts: []profile.Doubt{{Code: profile.DoubtSpeed, Value: new(0.2)}, {Code: profile.DoubtShareRuns, Value: new(4.0)}}}
	if got := SharesDoubt(d); got != "shares come from only 4 undisturbed runs" || SharesDoubt(nil) != "" || SharesDoubt(&profile.Trust{Doubts: d.Doubts[:1]}) != "" {
		t.Errorf("%q", got)
	}
}

// TestQuality has the verdict with its main reason: the cause of a symptom, else the gravest
// reason.
func TestQuality(t *testing.T) {
	t.Parallel()
	of := func(codes ...profile.DoubtCode) *profile.Trust {
		q := &profile.Trust{Verdict: profile.Unreliable}
		for _, c := range codes {
			q.Doubts = append(q.Doubts, profile.Doubt{Code: c, Verdict: profile.Unreliable, Value: new(2.0)})
		}
		return q
	}
	for _, c := range []struct {
		t            *profile.Trust
		want, advice string
	}{
		{nil, "", ""},
		{&profile.Trust{}, "", ""},
		{&profile.Trust{Verdict: profile.Good, Doubts: of(profile.DoubtBusy).Doubts}, "fit for comparing", ""},
		{&profile.Trust{Verdict: profile.Fair}, "not fit for comparing", ""},
		{of(profile.DoubtSpread, profile.DoubtBusy), "unstable: repeat (machine busy)", "close other programs"},
		{of(profile.DoubtSpread, profile.DoubtBusy, profile.DoubtThreads), "unstable: repeat (more threads than CPUs)", "use fewer --threads"},
		{of(profile.DoubtSpread), "unstable: repeat (latency varies by 200 %)", "measure longer"},
		{of(profile.DoubtFewRuns, profile.DoubtBusy), "unstable: repeat (only 2 runs)", "measure longer"},
		{of(profile.DoubtThrottled), "unstable: repeat (CPU throttled by heat)", "let the computer cool"},
		{of(profile.DoubtIncomplete, profile.DoubtBusy), "unstable: repeat (2 layers did not run)", ""},
	} {
		got := Quality(c.t)
		if _, advice := Reason(c.t); got != c.want || !strings.HasPrefix(advice, c.advice) || (advice == "") != (c.advice == "") {
			t.Errorf("%+v: %q, %q, want %q, %q", c.t, got, advice, c.want, c.advice)
		}
	}
}

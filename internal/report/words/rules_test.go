package words

import (
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// TestStates says of every state why there is not a time.
func TestStates(t *testing.T) {
	t.Parallel()
	why := func(c profile.CauseCode, text string) *profile.Cause { return &profile.Cause{Code: c, Text: text} }
	for _, c := range []struct {
		l    profile.Layer
		want string
	}{
		{profile.Layer{State: profile.Ran, Cause: why(profile.ByError, "x")}, ""},
		{profile.Layer{State: profile.Unsupported}, "not supported"},
		{profile.Layer{State: profile.Unsupported, Cause: why(profile.ByType, "no kernel takes int4")}, "not supported: no kernel takes int4"},
		{profile.Layer{State: profile.Unsupported, Cause: why(profile.ByType, "")}, "not supported: element type"},
		{profile.Layer{State: profile.Skipped, Cause: why(profile.ByMemory, "")}, "out of memory"},
		{profile.Layer{State: profile.Skipped, Cause: why(profile.ByMemory, "1 GiB")}, "1 GiB"},
		{profile.Layer{State: profile.Failed}, "failed"},
		{profile.Layer{State: profile.Failed, Cause: why(profile.ByLoop, "")}, "failed: its loop exceeded the time limit"},
		{profile.Layer{State: profile.Lost}, "record lost"},
		{profile.Layer{State: profile.Lost, Cause: why(profile.ByRecord, "buffer full")}, "record lost: buffer full"},
		{profile.Layer{State: profile.NoEstimate}, "no estimate"},
		{profile.Layer{State: profile.NoEstimate, Cause: why(profile.ByShape, "")}, "no estimate: unknown shapes"},
	} {
		if got := State(&c.l); got != c.want {
			t.Errorf("%+v: %q, want %q", c.l, got, c.want)
		}
	}
	for _, c := range []struct {
		p    profile.Placement
		want string
	}{
		{profile.Placement{On: profile.CPU, Cause: profile.ByLimit}, "limit exceeded"},
		{profile.Placement{On: profile.CPU, Cause: profile.ByType}, "wrong type"},
		{profile.Placement{On: profile.CPU, Cause: profile.ByUse, Text: "x"}, "x"},
		{profile.Placement{On: profile.CPU, Cause: profile.ByUse}, ""},
	} {
		if got := Note(&profile.Layer{State: profile.Ran, Placement: &c.p}, true); got != c.want {
			t.Errorf("%+v: %q, want %q", c.p, got, c.want)
		}
	}
}

// TestIncompleteParts lists what is missing; of a run that ended unexpectedly how far
// it got.
func TestIncompleteParts(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{Incomplete: []profile.Missing{{Cause: profile.ByError, Text: "cable"}, {Cause: profile.ByEnd}}}
	const end = "the source ended unexpectedly; figures cover the data received until then"
	if got, want := Incomplete(p), "an error: cable; "+end+": nothing was measured yet"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Totals.Latency = &profile.Metric{}
	if got, want := Incomplete(p), "an error: cable; "+end+": nothing was measured yet"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for n, want := range map[int64]string{1: "1 measured inference", 7: "7 measured inferences"} {
		p.Totals.Latency.N = &n
		if got := Incomplete(p); got != "an error: cable; "+end+": "+want {
			t.Errorf("%q, want %q at its end", got, want)
		}
	}
	if got := Incomplete(&profile.Profile{}); got != "" {
		t.Errorf("a whole profile: %q", got)
	}
	for want, m := range map[string]profile.Missing{
		"unheard of":                           {Cause: "unheard of"},
		"records were lost":                    {Cause: profile.ByRecord},
		"1 record lost":                        {Cause: profile.ByRecord, Want: new(int64(1))},
		"records were lost (2 of 3)":           {Cause: profile.ByRecord, Got: new(int64(2)), Want: new(int64(3))},
		"an error":                             {Cause: profile.ByError, Got: new(int64(2))},
		"depends on the data":                  {Cause: profile.ByData, Want: new(int64(2))},
		"without 1 layer: a limit is exceeded": {Cause: profile.ByLimit, Layers: []int64{0}},
	} {
		if got := Missing(&m); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTensors says what was taken for open dimensions and how elements were made.
func TestTensors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t           profile.Tensor
		taken, made string
	}{
		{profile.Tensor{Shape: []int64{1, 3}}, "1x3", ""},
		{profile.Tensor{Shape: []int64{1, 3}, Declared: []int64{-1, 3}}, "?x3 as 1x3", ""},
		{profile.Tensor{Shape: []int64{}, Made: &profile.Made{Use: profile.UseMask, Fill: new(int64(1))}}, "scalar", "1 (a mask)"},
		{profile.Tensor{Shape: []int64{2}, Made: &profile.Made{Use: profile.UseIndices, Below: new(int64(10))}}, "2", "0 to 9 (indices)"},
		{profile.Tensor{Shape: []int64{2}, Made: &profile.Made{Use: profile.UseShape, Values: []int64{4, 5}}}, "2", "4,5 (a shape)"},
		{profile.Tensor{Shape: []int64{2}, Made: &profile.Made{Use: profile.UseAxes}}, "2", "axes"},
		{profile.Tensor{Shape: []int64{2}, Made: &profile.Made{Use: "unheard of", Fill: new(int64(0))}}, "2", "0 (unheard of)"},
	} {
		if got := Taken(&c.t); got != c.taken {
			t.Errorf("%+v: taken %q, want %q", c.t, got, c.taken)
		}
		if got := Made(&c.t); got != c.made {
			t.Errorf("%+v: made %q, want %q", c.t, got, c.made)
		}
	}
	if got := Dims([]int64{1, -1, 0}, "*"); got != "1*?*0" {
		t.Errorf("%q", got)
	}
	open := func(name string, assumed ...int64) profile.Tensor {
		return profile.Tensor{Name: name, Shape: []int64{1, 1}, Declared: []int64{-1, -1}, Assumed: assumed}
	}
	for _, c := range []struct {
		format string
		in     []profile.Tensor
		want   string
	}{
		{"onnx", nil, ""},
		{"onnx", []profile.Tensor{{Name: "x", Shape: []int64{1}}}, ""},
		{"onnx", []profile.Tensor{open("x", 0)}, "x ?x? as 1x1"},
		{"tflite", []profile.Tensor{open("x", 0)}, ""}, // a batch of one
		{"tflite", []profile.Tensor{open("x", 1)}, "x ?x? as 1x1"},
		{"tflite", []profile.Tensor{open("x", 0, 1)}, "x ?x? as 1x1"},
		{"onnx", []profile.Tensor{open("a", 0), open("b", 0)}, "a ?x? as 1x1, b ?x? as 1x1"},
		{"onnx", []profile.Tensor{open("a", 0), open("b", 0), open("c", 0)}, "a ?x? as 1x1, b ?x? as 1x1, 1 more input"},
		{"onnx", []profile.Tensor{open("a", 0), open("b", 0), open("c", 0), open("d", 1)}, "a ?x? as 1x1, b ?x? as 1x1, 2 more inputs"},
	} {
		if got := Assumed(&profile.Model{Format: c.format, Inputs: c.in}); got != c.want {
			t.Errorf("%s %+v: %q, want %q", c.format, c.in, got, c.want)
		}
	}
	for domain, want := range map[string]string{"": "Add", "ai.onnx": "Add", "com.microsoft": "com.microsoft:Add"} {
		if got := (&profile.Layer{Domain: domain, Op: "Add"}).OpText(); got != want {
			t.Errorf("%q: %q, want %q", domain, got, want)
		}
	}
	if got := Options(&profile.Layer{Options: []profile.Option{{Key: "a", Value: "1"}, {Key: "b", Value: "x"}}}); got != "a:1 b:x" {
		t.Errorf("options %q", got)
	}
}

// TestPercents writes parts with two digits, and names the recommended figure.
func TestPercents(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0 %", 0.0123: "1.2 %", 0.123: "12 %", 0.994: "99 %", 0.9949: "99 %", 0.995: "100 %", 1.234: "123 %", 12.34: "1234 %"} {
		if got := percent(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{1: "once", 2: "2 times", 0: "0 times"} {
		if got := times(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	for quote, want := range map[string]string{"undisturbed_latency_s": "undisturbed runs", "processor_s": "CPU time", "": "", "latency_s": ""} {
		if got := Quote(&profile.Trust{Quote: quote}); got != want {
			t.Errorf("%q: %q, want %q", quote, got, want)
		}
	}
	if a, b, c := Interval(nil), Interval(&profile.Trust{}), Interval(&profile.Trust{Interval: profile.OfThisRun}); a != "95 % CI" || b != a || c != "95 % CI of this run" {
		t.Errorf("%q, %q, %q", a, b, c)
	}
	for _, c := range []struct {
		d    profile.Doubt
		want string
	}{
		{profile.Doubt{Code: profile.DoubtFewRuns, Value: new(1.0)}, "only 1 run"},
		{profile.Doubt{Code: profile.DoubtSpread}, "latency varies by 0 %"},
		{profile.Doubt{Code: "unheard of"}, "unheard of"},
		{profile.Doubt{Code: profile.DoubtThrottled, Value: new(1.0)}, "CPU throttled by heat once"},
		{profile.Doubt{Code: profile.DoubtBusy, Value: new(1.26)}, "machine busy before the runs (load average 1.3 per CPU)"},
		{profile.Doubt{Code: profile.DoubtIncomplete, Value: new(1.0)}, "1 layer did not run"},
		{profile.Doubt{Code: profile.DoubtThreads, Value: new(2.0)}, "2 threads per CPU"},
	} {
		if got := doubt(&c.d); got != c.want {
			t.Errorf("%+v: %q, want %q", c.d, got, c.want)
		}
	}
	// Constants are not work of an inference: a time without them lacks nothing.
	p := &profile.Profile{Layers: []profile.Layer{{State: profile.Unsupported, Constant: true}, {State: profile.Lost, Constant: true}, {State: profile.Ran}}}
	if got := Without(p); got != "" {
		t.Errorf("constants: %q", got)
	}
}

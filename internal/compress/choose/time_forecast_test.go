package choose

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// mixture is a profile of layers that take 1 s each of 10, with changes that halve it. Its mixed
// models save less by a share and take longer for what they convert; one is off by a little.
func mixture(layers int, gain, convert, off float64) (*study.Speed, []study.Layer) {
	seconds := func(v float64) *profile.Metric { return profile.Value(profile.Measured, v, "") }
	s := &study.Speed{SpeedSettings: study.SpeedSettings{Name: "s", Target: "host"}, Latency: seconds(10)}
	half, whole := study.Change{Structure: study.Unstructured, Level: .5}, study.Change{Format: study.Int8}
	ls := make([]study.Layer, layers)
	for i := range ls {
		ls[i] = study.Layer{Rows: 4, Cols: 4, MACs: new(int64(16))}
		s.Layers = append(s.Layers, study.LayerTime{Layer: i, Latency: seconds(1)})
		for _, c := range []study.Change{half, whole} {
			s.Points = append(s.Points, study.SpeedPoint{Layer: i, Change: c, Ratio: seconds(.5)})
		}
	}
	for k := range 8 {
		m := study.MixedModel{Changes: make([]study.Change, layers)}
		t := 10.0
		for i := range m.Changes {
			if (i+k)%3 == 0 {
				continue
			}
			if m.Changes[i] = half; k%2 == 1 && i < k {
				m.Changes[i] = whole
			}
			t -= .5 * gain
		}
		t += 10 * convert * convertedShare(ls, m.Changes)
		if k == 3 {
			t *= 1 + off
		}
		m.Ratio = seconds(t / 10)
		s.Mixed = append(s.Mixed, m)
	}
	return s, ls
}

func TestForecast(t *testing.T) {
	t.Parallel()
	half, whole := study.Change{Structure: study.Unstructured, Level: .5}, study.Change{Format: study.Int8}
	for _, tt := range []struct {
		name         string
		gain, off    float64
		mixed        int
		changes      []study.Change
		want, atMost float64 // seconds, and the half of the interval
	}{
		{"unchanged", .8, 0, 8, make([]study.Change, 6), 10, 0},
		{"less is saved than added up", .8, 0, 8, []study.Change{half, half, {}, half, {}, {}}, 10 - 3*.4, .1},
		{"half of what layers put out is converted", .8, 0, 8, []study.Change{{}, whole, {}, {}, half, half}, 10 - 3*.4 + 10*.06*2/6, .11},
		{"neighbours convert nothing between them", .8, 0, 8, []study.Change{whole, whole, whole, whole, whole, whole}, 10 - 6*.4 + 10*.06*2/6, .1},
		{"all that is known is one model", .8, 0, 1, []study.Change{half, {}, {}, {}, {}, {}}, 9.5, .5},
		{"an error of one model is the width", 1, .03, 8, []study.Change{half, half, half, {}, {}, {}}, 8.5, .6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, ls := mixture(6, tt.gain, .06, tt.off)
			s.Mixed = s.Mixed[:tt.mixed]
			o := Forecast(s, ls, tt.changes)
			got, ok := o.LatencyS.Best()
			if !ok || math.Abs(got-tt.want) > max(.05*tt.off*10, 1e-9)+tt.off {
				t.Errorf("%v s, want %v", got, tt.want)
			}
			if b := o.LatencyS.Band; (b != nil) != (tt.atMost > 0) || b != nil && (b[1]-got > tt.atMost || b[0] > tt.want || b[1] < tt.want) {
				t.Errorf("%v, want at most %v to either side", b, tt.atMost)
			}
		})
	}
	s, ls := mixture(6, 1, 0, 0)
	if o := Forecast(s, ls, []study.Change{{Format: study.Weight4}, {}, {}, {}, {}, {}}); o.LatencyS != nil {
		t.Error("a change that was not measured has a time")
	}
}

// TestForecastHolds draws profiles and a further model with the same kind of errors: nine of ten
// are within their intervals, of errors with long tails, too.
func TestForecastHolds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		draw func(r *rand.Rand) float64
	}{
		{"normal", func(r *rand.Rand) float64 { return .05 * r.NormFloat64() }},
		{"long tails", func(r *rand.Rand) float64 { return .02 * r.NormFloat64() / math.Sqrt(r.ExpFloat64()) }},
		{"to one side", func(r *rand.Rand) float64 { return .05 * r.ExpFloat64() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			const all = 2000
			in := 0
			for range all {
				s, ls := mixture(6, 1, 0, 0)
				s.Mixed = nil
				for range 13 {
					m := study.MixedModel{Changes: make([]study.Change, len(ls))}
					changed := 0.0
					for i := range m.Changes {
						if r.IntN(3) > 0 {
							m.Changes[i] = study.Change{Structure: study.Unstructured, Level: .5}
							changed++
						}
					}
					saved := .5 * changed
					m.Ratio = profile.Value(profile.Measured, (10-saved+tt.draw(r)*(saved+1))/10, "")
					s.Mixed = append(s.Mixed, m)
				}
				last := s.Mixed[12]
				s.Mixed = s.Mixed[:12]
				did, _ := last.Ratio.Best()
				f := Forecast(s, ls, last.Changes)
				said, _ := f.LatencyS.Best()
				if b := f.LatencyS.Band; b == nil && math.Abs(said-10*did) < 1e-9 || b != nil && 10*did >= b[0] && 10*did <= b[1] {
					in++
				}
			}
			// 1800 are wanted: three standard errors of 2000 draws below, and twice that above,
			// since ranks of twelve are coarse.
			if in < 1760 || in > 1880 {
				t.Errorf("%d of %d are within the interval", in, all)
			}
			t.Logf("%d of %d are within the interval", in, all)
		})
	}
}

// TestForecastJoint has plans and mixed models forecast by the same product: each layer halves
// itself and the next one, and mixed models save a share of that.
func TestForecastJoint(t *testing.T) {
	t.Parallel()
	seconds := func(v float64) *profile.Metric { return profile.Value(profile.Measured, v, "") }
	filters := study.Change{Structure: study.Filter, Level: .5}
	s := &study.Speed{SpeedSettings: study.SpeedSettings{Name: "s", Target: "host"}, Latency: seconds(5)}
	ls := make([]study.Layer, 4)
	lost := &study.Loss{LossSettings: study.LossSettings{Metric: "relative_error"}}
	for i := range ls {
		ls[i] = study.Layer{Rows: 4, Cols: 4}
		s.Layers = append(s.Layers, study.LayerTime{Layer: i, Latency: seconds(1)})
		x := study.SpeedPoint{Layer: i, Change: filters, Ratio: seconds(.5)}
		if i < 3 {
			x.Affected = []study.AffectedLayer{{Layer: i + 1, Ratio: seconds(.5)}}
		}
		switch i {
		case 0:
			x.With, x.RestS = []int{2}, seconds(-.1)
		case 2:
			x.With = []int{0}
		}
		s.Points = append(s.Points, x)
		lost.Points = append(lost.Points, study.LossPoint{Layer: i, Change: filters, Value: seconds(.1)})
	}
	mix := func(at ...int) []study.Change {
		out := make([]study.Change, len(ls))
		for _, i := range at {
			out[i] = filters
		}
		return out
	}
	const gain = .8
	to := func(factors ...float64) float64 {
		v := 1.0
		for _, f := range factors {
			v *= 1 - gain*(1-f)
		}
		return v
	}
	want := []struct {
		changes []study.Change
		time    float64
	}{
		{mix(1), 1 + 1 + to(.5) + to(.5) + 1},
		{mix(3), 1 + 1 + 1 + 1 + to(.5)},
		{mix(0, 2), 1 - .1*gain + 4*to(.5)},
		{mix(1, 3), 1 + 1 + to(.5) + to(.5) + to(.5)},
	}
	for _, w := range want {
		s.Mixed = append(s.Mixed, study.MixedModel{Changes: w.changes, Ratio: seconds(w.time / 5)})
	}
	for _, w := range want {
		o := Forecast(s, ls, w.changes)
		if v, ok := o.LatencyS.Best(); !ok || math.Abs(v-w.time) > 1e-9 {
			t.Errorf("%v: %v s, want %v", w.changes, v, w.time)
		}
		p, err := PlanFromChanges(Options{Layers: ls, Speed: s, Loss: lost, Goal: study.Goal{MaxLoss: new(1.)}}, w.changes)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := p.Predicted.LatencyS.Best(); !ok || math.Abs(v-w.time) > 1e-9 {
			t.Errorf("the plan of %v: %v s, want %v", w.changes, v, w.time)
		}
	}
	if o := Forecast(s, ls, mix(0)); o.LatencyS != nil {
		t.Error("half of what is tied has a time")
	}
}

// A layer in another format may not gain from smaller inputs: the interval holds that time, too.
func TestForecastOfReaders(t *testing.T) {
	t.Parallel()
	filters, int8 := study.Change{Structure: study.Filter, Level: .5}, study.Change{Format: study.Int8}
	s := &study.Speed{SpeedSettings: study.SpeedSettings{Name: "s", Target: "host"}, Latency: value(10)}
	for i := range 2 {
		s.Layers = append(s.Layers, study.LayerTime{Layer: i, Latency: value(5)})
	}
	s.Points = []study.SpeedPoint{
		{Layer: 0, Change: filters, Ratio: value(.6), Affected: []study.AffectedLayer{{Layer: 1, Ratio: value(.4)}}},
		{Layer: 1, Change: int8, Ratio: value(.8)},
	}
	layers := []study.Layer{{Rows: 4, Cols: 4}, {Rows: 4, Cols: 4}}
	width := func(changes ...study.Change) (low, high float64) {
		o := Forecast(s, layers, changes)
		if o.LatencyS == nil || o.LatencyS.Band == nil {
			t.Fatalf("%v: no interval", changes)
		}
		return o.LatencyS.Band[0], o.LatencyS.Band[1]
	}
	low, high := width(filters, study.Change{})
	_, wide := width(filters, int8)
	if full := 5*.6 + 5*.8; wide < full {
		t.Errorf("up to %v, the time is %v if the reader gains nothing", wide, full)
	}
	if high-low > 4 {
		t.Errorf("from %v to %v where the reader stays as it was measured", low, high)
	}
}

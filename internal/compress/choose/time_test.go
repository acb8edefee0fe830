package choose

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// mixedChain is a profile of layers that take 1 s each of 10, with changes that halve it. Its mixed models save less by a share and take
// longer for what they convert; one is off by a little.
func mixedChain(layers int, gain, convert, off float64) (*study.Speed, []study.Layer) {
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
		m := study.Mixed{Changes: make([]study.Change, layers)}
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
		t += 10 * convert * converted(ls, m.Changes)
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
			s, ls := mixedChain(6, tt.gain, .06, tt.off)
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
	s, ls := mixedChain(6, 1, 0, 0)
	if o := Forecast(s, ls, []study.Change{{Format: study.Weight4}, {}, {}, {}, {}, {}}); o.LatencyS != nil {
		t.Error("a change that was not measured has a time")
	}
}

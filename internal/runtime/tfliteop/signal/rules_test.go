package signal

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

func numbers(typ tensor.Type, v ...float64) *tensor.Tensor { return optest.Row(typ, nil, v...) }

func shorts(v ...float64) *tensor.Tensor { return numbers(tensor.Int16, v...) }

func words(v ...float64) *tensor.Tensor { return numbers(tensor.Uint32, v...) }

// gives runs an operator whose options are a map, several times in one session, and
// compares its first outputs.
func gives(t *testing.T, what, name string, opts map[string]any, outs int, want [][]float64, in ...*tensor.Tensor) {
	t.Helper()
	n := optest.Node{Domain: graph.TFLiteCustom, Op: name, Outputs: outs}
	if opts != nil {
		n.Attrs = options(t, opts)
	}
	got, err := optest.Run(Defs(), n, in...)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	for i, w := range want {
		if why := optest.Differ(got[i], w, 0, 0); why != "" {
			t.Errorf("%s: output %d: %s", what, i, why)
		}
	}
}

func refuses(t *testing.T, what, name string, opts map[string]any, text string, in ...*tensor.Tensor) {
	t.Helper()
	n := optest.Node{Domain: graph.TFLiteCustom, Op: name}
	if opts != nil {
		n.Attrs = options(t, opts)
	}
	if _, err := optest.Run(Defs(), n, in...); err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %q", what, err, text)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	w := shorts(2, 4)
	gives(t, "two rows", "SignalWindow", map[string]any{"shift": int64(1)}, 1, [][]float64{{100, -400, 3, 2}}, shorts(100, -200, 3, 1), w)
	gives(t, "no shift", "SignalWindow", nil, 1, [][]float64{{32767, -32768}}, shorts(32767, -32768), w)
	gives(t, "cut downwards", "SignalWindow", map[string]any{"shift": int64(2)}, 1, [][]float64{{0, -1}}, shorts(1, -1), w)
	for shift, text := range map[int64]string{-1: "shift of -1 bits", 32: "shift of 32 bits"} {
		refuses(t, "shift", "SignalWindow", map[string]any{"shift": shift}, text, shorts(1, 2), w)
	}
	refuses(t, "length", "SignalWindow", nil, "window 2 for shape 3", shorts(1, 2, 3), w)
	refuses(t, "nothing", "SignalWindow", nil, "window 0 for shape 2", shorts(1, 2), shorts())
	refuses(t, "rank", "SignalWindow", nil, "window 1x2", shorts(1, 2), optest.Of(tensor.Int16, nil, []int{1, 2}))
	refuses(t, "type", "SignalWindow", nil, "input 1 of type int32", shorts(1, 2), numbers(tensor.Int32, 1, 2))
	refuses(t, "absent", "SignalWindow", nil, "input 1 is missing", shorts(1, 2))
}

func TestAutoScale(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		x, y  []float64
		shift float64
	}{
		{[]float64{1, -2, 3}, []float64{8192, -16384, 24576}, 13},
		{[]float64{0, 0}, []float64{0, 0}, 15},
		{[]float64{16383}, []float64{32766}, 1},
		{[]float64{16384, 1}, []float64{16384, 1}, 0},
		{[]float64{-32768, 5}, []float64{-32768, 5}, 0},
		{[]float64{-16384, 5}, []float64{-16384, 5}, 0},
	} {
		gives(t, fmt.Sprint(c.x), "SignalFftAutoScale", nil, 2, [][]float64{c.y, {c.shift}}, shorts(c.x...))
	}
	gives(t, "without the shift", "SignalFftAutoScale", nil, 1, [][]float64{{16384}}, shorts(1))
}

func TestEnergy(t *testing.T) {
	t.Parallel()
	x := shorts(3, 4, -5, 12, 1, 1)
	bins := func(lo, hi int64) map[string]any { return map[string]any{"start_index": lo, "end_index": hi} }
	gives(t, "all", "SignalEnergy", nil, 1, [][]float64{{25, 169, 2}}, x)
	gives(t, "one", "SignalEnergy", bins(1, 2), 1, [][]float64{{0, 169, 0}}, x)
	gives(t, "none", "SignalEnergy", bins(2, 2), 1, [][]float64{{0, 0, 0}}, x)
	gives(t, "to the last", "SignalEnergy", bins(2, 3), 1, [][]float64{{0, 0, 2}}, x)
	gives(t, "the largest", "SignalEnergy", nil, 1, [][]float64{{1 << 31}}, shorts(-32768, -32768))
	refuses(t, "backwards", "SignalEnergy", bins(2, 1), "bins 2 to 1 of 3", x)
	refuses(t, "beyond", "SignalEnergy", bins(0, 4), "bins 0 to 4 of 3", x)
	refuses(t, "before", "SignalEnergy", bins(-1, 2), "bins -1 to 2 of 3", x)
	refuses(t, "odd", "SignalEnergy", nil, "spectrum of shape 3", shorts(1, 2, 3))
}

// Each bin falls out of one channel and rises into the next.
func TestFilterBank(t *testing.T) {
	t.Parallel()
	x, rise, fall := words(10, 20, 30), shorts(1, 2, 3), shorts(4, 5, 6)
	channels := func(n int64) map[string]any { return map[string]any{"num_channels": n} }
	gives(t, "two channels", "SignalFilterBank", channels(2), 1, [][]float64{{4*10 + 2*20, 5*20 + 3*30}}, x, rise, fall, shorts(0, 1, 2), shorts(0, 1, 2), shorts(1, 1, 1))
	gives(t, "one wide channel", "SignalFilterBank", channels(1), 1, [][]float64{{4*10 + 2*20 + 3*30}}, x, rise, fall, shorts(0, 1), shorts(0, 1), shorts(1, 2))
	gives(t, "no bins", "SignalFilterBank", channels(1), 1, [][]float64{{0}}, x, rise, fall, shorts(0, 0), shorts(0, 0), shorts(0, 0))
	gives(t, "up to the last", "SignalFilterBank", channels(1), 1, [][]float64{{6 * 30}}, x, rise, fall, shorts(2, 0), shorts(2, 0), shorts(1, 0))
	for what, tables := range map[string][3]*tensor.Tensor{
		"bins before":    {shorts(-1, 0), shorts(0, 0), shorts(1, 0)},
		"bins beyond":    {shorts(3, 0), shorts(0, 0), shorts(1, 0)},
		"weights before": {shorts(0, 0), shorts(-1, 0), shorts(1, 0)},
		"weights beyond": {shorts(0, 0), shorts(3, 0), shorts(1, 0)},
		"a negative one": {shorts(0, 0), shorts(0, 0), shorts(-1, 0)},
	} {
		refuses(t, what, "SignalFilterBank", channels(1), "channel 0 reads", x, rise, fall, tables[0], tables[1], tables[2])
	}
	for i := range 3 {
		tables := []*tensor.Tensor{shorts(0, 0), shorts(0, 0), shorts(0, 0)}
		tables[i] = shorts(0, 0, 0)
		refuses(t, "tables", "SignalFilterBank", channels(1), "1 channels with tables of", x, rise, fall, tables[0], tables[1], tables[2])
	}
	refuses(t, "no channels", "SignalFilterBank", channels(0), "0 channels", x, rise, fall, shorts(0), shorts(0), shorts(0))
}

func TestRoots(t *testing.T) {
	t.Parallel()
	x := tensor.From(tensor.Uint64, []int{8}, []uint64{0, 1, 16, 20, 21, 1<<32 - 1, 1 << 32, math.MaxUint64})
	shift := func(n float64) *tensor.Tensor { return numbers(tensor.Int32, n) }
	// Nearest, but the root of a number below 2^32 has at most 16 bits.
	gives(t, "roots", "SignalFilterBankSquareRoot", nil, 1, [][]float64{{0, 1, 4, 4, 5, 65535, 65536, math.MaxUint32}}, x, shift(0))
	gives(t, "halves", "SignalFilterBankSquareRoot", nil, 1, [][]float64{{0, 0, 2, 2, 2, 32767, 32768, math.MaxInt32}}, x, shift(1))
	gives(t, "all bits", "SignalFilterBankSquareRoot", nil, 1, [][]float64{{0, 0, 0, 0, 0, 0, 0, 0}}, x, shift(32))
	refuses(t, "two shifts", "SignalFilterBankSquareRoot", nil, "scale of shape 2", x, numbers(tensor.Int32, 1, 2))
	refuses(t, "type", "SignalFilterBankSquareRoot", nil, "input 0 of type uint32", words(1), shift(0))
}

// Noise is followed in quarters here, channel by channel with two rates; a quarter of the
// signal always stays.
func TestSubtraction(t *testing.T) {
	t.Parallel()
	for _, clamping := range []bool{false, true} {
		opts := map[string]any{
			"smoothing": int64(1), "one_minus_smoothing": int64(3), "alternate_smoothing": int64(2), "alternate_one_minus_smoothing": int64(2),
			"min_signal_remaining": int64(1), "smoothing_bits": int64(0), "spectral_subtraction_bits": int64(2), "clamping": clamping,
		}
		env := &optest.Env{}
		n := optest.Node{Domain: graph.TFLiteCustom, Op: "SignalFilterBankSpectralSubtraction", Attrs: options(t, opts), Outputs: 2}
		held := 29.0 // (8·2 + 50·2) / 4
		if clamping {
			held = 8
		}
		for i, c := range []struct{ x, y, noise []float64 }{
			{[]float64{100, 100}, []float64{75, 50}, []float64{25, 50}},
			{[]float64{40, 8}, []float64{12, 2}, []float64{28, held}},
		} {
			got, err := optest.RunEnv(env, Defs(), n, words(c.x...))
			if err != nil {
				t.Fatal(err)
			}
			optest.Near(t, fmt.Sprint("signal ", i), got[0], c.y, 0, 0)
			optest.Near(t, fmt.Sprint("noise ", i), got[1], c.noise, 0, 0)
		}
	}
	gives(t, "more bits", "SignalFilterBankSpectralSubtraction", map[string]any{"smoothing": int64(1), "spectral_subtraction_bits": int64(2), "smoothing_bits": int64(3)}, 2, [][]float64{{75}, {200}}, words(100))
	refuses(t, "smoothing", "SignalFilterBankSpectralSubtraction", map[string]any{"smoothing_bits": int64(32)}, "32 smoothing", words(1))
	refuses(t, "subtraction", "SignalFilterBankSpectralSubtraction", map[string]any{"spectral_subtraction_bits": int64(64)}, "64 subtraction bits", words(1))
}

func TestGains(t *testing.T) {
	t.Parallel()
	table := make([]int16, 4*32-3)
	for i := range table {
		table[i] = int16(1000 + i)
	}
	// A parabola in each octave: t0 + t1·f + t2·f².
	copy(table[2:], []int16{10, 6, 8})
	copy(table[6:], []int16{100, 20, 4})
	copy(table[4*13-6:], []int16{50, 40, 0})
	for noise, want := range map[uint32]int16{
		0: table[0], 1: table[1], 2: table[2], 3: 10 + 3 + 2, 4: 100, 6: 100 + 10 + 1, 5: 105, 7: 100 + 15 + 2, 4096: 50, 6144: 70, 8191: 90,
	} {
		if got := gainFor(noise, table); got != want {
			t.Errorf("gain at %d is %d, want %d", noise, got, want)
		}
	}
	for snr, want := range map[uint32]uint32{0: 0, 1024: 1, 4096: 16, 8191: 63, 8192: 64, 12288: 128} {
		if got := shrink(snr); got != want {
			t.Errorf("%d shrinks to %d, want %d", snr, got, want)
		}
	}
	ones := make([]float64, 125)
	for i := range ones {
		ones[i] = 2
	}
	opts := func(n int64) map[string]any { return map[string]any{"snr_shift": n} }
	gives(t, "gains", "SignalPCAN", opts(1), 1, [][]float64{{16, 64}}, words(4096, 8192), words(0, 1), shorts(ones...))
	refuses(t, "shift below", "SignalPCAN", opts(-1), "shift of -1 bits", words(1), words(1), shorts(ones...))
	refuses(t, "shift above", "SignalPCAN", opts(64), "shift of 64 bits", words(1), words(1), shorts(ones...))
	refuses(t, "noise", "SignalPCAN", nil, "signal 1, noise 2", words(1), words(1, 2), shorts(ones...))
	refuses(t, "table", "SignalPCAN", nil, "124 table entries", words(1), words(1), shorts(ones[1:]...))
}

func TestLogarithms(t *testing.T) {
	t.Parallel()
	opts := func(scale, shift int64) map[string]any {
		return map[string]any{"output_scale": scale, "input_correction_bits": shift}
	}
	// 1600·ln 2 and 1600·ln 4; what is below 2 has none, what is beyond 16 bits the largest.
	gives(t, "powers of two", "SignalFilterBankLog", opts(1600, 0), 1, [][]float64{{0, 0, 1109, 2218, 32767}}, words(0, 1, 2, 4, 1<<31))
	gives(t, "shifted", "SignalFilterBankLog", opts(1600, 1), 1, [][]float64{{0, 1109, 2218}}, words(0, 1, 2))
	gives(t, "no options", "SignalFilterBankLog", nil, 1, [][]float64{{0, 1, 21}}, words(1, 2, 1<<31))
	refuses(t, "below", "SignalFilterBankLog", opts(1, -1), "correction of -1 bits", words(1))
	refuses(t, "above", "SignalFilterBankLog", opts(1, 32), "correction of 32 bits", words(1))
}

func TestParts(t *testing.T) {
	t.Parallel()
	lite := func(name string) optest.Node { return optest.Node{Domain: graph.TFLite, Op: name} }
	for name, want := range map[string][]float64{"REAL": {3, -1}, "IMAG": {4, 0}, "COMPLEX_ABS": {5, 1}} {
		optest.Exactly(t, name, Defs(), lite(name), []int{2}, want, tensor.From(tensor.Complex64, []int{2}, []complex64{3 + 4i, -1}))
		optest.Exactly(t, name, Defs(), lite(name), []int{2}, want, tensor.From(tensor.Complex128, []int{2}, []complex128{3 + 4i, -1}))
		optest.Refused(t, name, Defs(), lite(name), "elements of type int16", shorts(1))
		optest.Refused(t, name, Defs(), lite(name), "input 0 is missing")
	}
	x := optest.Of(tensor.Float32, nil, []int{2, 4}, 1, 2, 3, 4, 5, 6, 7, 8)
	size := func(v ...float64) *tensor.Tensor { return numbers(tensor.Int32, v...) }
	for _, c := range []struct {
		h, w float64
		want []complex64
	}{
		{1, 4, []complex64{10, -2 + 2i, -2}},                       // the first row
		{2, 2, []complex64{14, -2, -8, 0}},                         // the first columns
		{1, 1, []complex64{1}},                                     // one element
		{3, 1, []complex64{6, -1.5 - 4.330127i, -1.5 + 4.330127i}}, // a row of zeros behind
	} {
		n := lite("RFFT2D")
		got, err := optest.Run(Defs(), n, x, size(c.h, c.w))
		if err != nil {
			t.Fatal(err)
		}
		y := tensor.Of[complex64](got[0])
		if len(y) != len(c.want) {
			t.Errorf("%v by %v: %v", c.h, c.w, y)
			continue
		}
		for i, w := range c.want {
			if d := y[i] - w; !(math.Hypot(float64(real(d)), float64(imag(d))) <= 1e-5) {
				t.Errorf("%v by %v: point %d is %v, want %v", c.h, c.w, i, y[i], w)
			}
		}
	}
	for _, s := range []*tensor.Tensor{size(0, 4), size(4, 0), size(4), size(1<<24+1, 1)} {
		optest.Refused(t, "size", Defs(), lite("RFFT2D"), "transform of size", x, s)
	}
	optest.Refused(t, "rank", Defs(), lite("RFFT2D"), "images float32 2", numbers(tensor.Float32, 1, 2), size(1, 1))
	optest.Refused(t, "type", Defs(), lite("RFFT2D"), "images int16 1x1", optest.Of(tensor.Int16, nil, []int{1, 1}), size(1, 1))
}

// What streams refuse, and rows that do not disturb each other.
func TestStreamRules(t *testing.T) {
	t.Parallel()
	o := func(kv ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			switch v := kv[i+1].(type) {
			case int:
				m[kv[i].(string)] = int64(v)
			default:
				m[kv[i].(string)] = v
			}
		}
		return m
	}
	x := shorts(1, 2, 3, 4)
	refuses(t, "step above the size", "SignalFramer", o("frame_size", 1, "frame_step", 2), "frames of 1 every 2 from 4 samples", x)
	refuses(t, "no step", "SignalFramer", o("frame_size", 1), "frames of 1 every 0", x)
	refuses(t, "part of a step", "SignalFramer", o("frame_size", 3, "frame_step", 3), "frames of 3 every 3 from 4 samples", x)
	refuses(t, "a scalar", "SignalFramer", o("frame_size", 1, "frame_step", 1), "a scalar has no last axis", optest.Of(tensor.Int16, nil, []int{}))
	refuses(t, "delay", "SignalDelay", o("delay_length", 1<<24+1), "delay of 16777217", x)
	refuses(t, "overlap of a row", "SignalOverlapAdd", o("frame_step", 1), "step 1 for frames 4", x)
	refuses(t, "overlap step", "SignalOverlapAdd", o("frame_step", 3), "step 3 for frames 1x2", optest.Of(tensor.Int16, nil, []int{1, 2}))
	refuses(t, "overlap of words", "SignalOverlapAdd", o("frame_step", 1), "elements of type int32", optest.Of(tensor.Int32, nil, []int{1, 2}))
	refuses(t, "stacker", "SignalStacker", o("num_channels", 3, "stacker_step", 1), "3 channels, contexts of 0 and 0 every 1 from 4", x)
	refuses(t, "stacker step", "SignalStacker", o("num_channels", 4), "every 0", x)
	refuses(t, "stacker context", "SignalStacker", o("num_channels", 4, "stacker_step", 1, "stacker_left_context", -1), "contexts of -1 and 0", x)
	gives(t, "saturation", "SignalOverlapAdd", o("frame_step", 1), 1, [][]float64{{30000, 32767}}, optest.Of(tensor.Int16, nil, []int{2, 2}, 30000, 30000, 30000, 1))
	gives(t, "floats", "SignalOverlapAdd", o("frame_step", 1), 1, [][]float64{{30000, 60000}}, optest.Of(tensor.Float32, nil, []int{2, 2}, 30000, 30000, 30000, 1))
	gives(t, "two rows", "SignalFramer", o("frame_size", 2, "frame_step", 1, "prefill", true), 2, [][]float64{{0, 1, 1, 2, 0, 7, 7, 8}, {1}}, optest.Of(tensor.Int16, nil, []int{2, 2}, 1, 2, 7, 8))
	gives(t, "two rows late", "SignalDelay", o("delay_length", 1), 1, [][]float64{{0, 1, 0, 7}}, optest.Of(tensor.Int16, nil, []int{2, 2}, 1, 2, 7, 8))
	for n, text := range map[int64]string{0: "", 1: "", 3: "", 1<<24 + 2: ""} {
		refuses(t, "length", "SignalRfft", map[string]any{"fft_length": n}, text, x)
		refuses(t, "length back", "SignalIrfft", map[string]any{"fft_length": n}, text, x)
	}
	refuses(t, "too long", "SignalRfft", o("fft_length", 2), "frame of 4 for a transform of 2", x)
	refuses(t, "another spectrum", "SignalIrfft", o("fft_length", 4), "spectrum of 4 numbers for a transform of 4", x)
	refuses(t, "bytes", "SignalRfft", o("fft_length", 4), "elements of type int8", numbers(tensor.Int8, 1))
	// Zeros stand behind a short frame.
	gives(t, "padded", "SignalRfft", o("fft_length", 4), 1, [][]float64{{3, 0, 1, -2, -1, 0}}, numbers(tensor.Float32, 1, 2))
	gives(t, "and back", "SignalIrfft", o("fft_length", 4), 1, [][]float64{{1, 2, 0, 0}}, numbers(tensor.Float32, 3, 0, 1, -2, -1, 0))
}

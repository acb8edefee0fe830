package opmeter_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/testing/decoder"
	"github.com/opmeter/opmeter/profile"
)

// pairFolder writes the files of a small model with an encoder and a decoder.
func pairFolder(t *testing.T, form decoder.Form) (dir string, files []string) {
	t.Helper()
	dir = t.TempDir()
	write := func(name string, data []byte, err error) {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p := decoder.NewPair(decoder.Small, form)
	for _, m := range []*graph.Model{p.Encoder, p.Start, p.Decoder} {
		if m != nil {
			data, err := onnx.Encode(m)
			write(m.Path, data, err)
			files = append(files, filepath.Join(dir, m.Path))
		}
	}
	name, text := decoder.Settings(decoder.Small, form)
	write(name, []byte(text), nil)
	return dir, files
}

// TestPairs measures an encoder and its decoder: as a folder, as files, and the decoder alone.
func TestPairs(t *testing.T) {
	const (
		position = 2 * 2 * 4 * 8 * 4 // bytes of keys and values in two layers of four heads of 8
		batch    = 2
	)
	for _, test := range []struct {
		name         string
		form         decoder.Form
		phases       []string
		length       int64
		written      int // index of the phase that makes the keys and values of the encoder's positions
		files, alone []string
	}{
		{"merged", decoder.Merged, []string{"encode 24", "prefill 3", "prefill 5", "decode at 0", "decode at 7"}, decoder.Positions, 1, []string{"encoder_model.onnx"}, []string{"prefill 1", "decode at 0", "decode at 7"}},
		{"separate", decoder.Separate, []string{"encode 3", "encode 5", "prefill 1", "decode at 0", "decode at 7"}, 5, 2, []string{"encoder_model.onnx", "decoder_model.onnx"}, []string{"prefill 1", "decode at 0", "decode at 7"}},
		{"crossed", decoder.Crossed, []string{"encode 24", "prefill 3", "prefill 5", "decode at 0", "decode at 7"}, decoder.Positions, 0, []string{"encoder.onnx"}, []string{"prefill 3", "prefill 5", "decode at 0", "decode at 7"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, files := pairFolder(t, test.form)
			open := func(m *opmeter.Model, err error) *profile.LanguageModel {
				t.Helper()
				if err != nil || m == nil {
					t.Fatal(m, err)
				}
				defer m.Close()
				o := few(&opmeter.Phases{Prompts: []int{5, 3}, Contexts: []int{7, 0}})
				o.Inputs.Batch = batch
				p, err := opmeter.Profile(t.Context(), m, o)
				if err != nil {
					t.Fatal(err)
				}
				alone := slices.ContainsFunc(p.Findings, func(f profile.Finding) bool { return f.ID == "phases.encoder" })
				ttft, ok := p.Totals.Value("ttft_s")
				if ok == alone {
					t.Errorf("time to first token %v, %t, without an encoder: %t", ttft, ok, alone)
				}
				var encode, prefill float64
				for i := range p.Language.Phases {
					ph := &p.Language.Phases[i]
					v, ok := ph.Latency.Best()
					if !ok || !(v > 0) {
						t.Errorf("%s has no latency", ph.Name())
					}
					switch ph.Kind {
					case profile.EncodePhase:
						encode = v
					case profile.PrefillPhase:
						prefill = v
					}
				}
				if !alone && ttft != encode+prefill {
					t.Errorf("time to first token %v, want %v + %v", ttft, encode, prefill)
				}
				for _, name := range test.files {
					said := slices.ContainsFunc(p.Findings, func(f profile.Finding) bool { return strings.Contains(f.Text, " runs "+name+",") })
					if said == alone {
						t.Errorf("findings %+v, want one of %s: %t", p.Findings, name, !alone)
					}
				}
				return p.Language
			}
			names := func(l *profile.LanguageModel) (list []string) {
				for i := range l.Phases {
					list = append(list, strings.TrimSuffix(l.Phases[i].Name(), ", batch 2"))
				}
				return list
			}
			l := open(opmeter.Open(dir))
			if got := names(l); !slices.Equal(got, test.phases) {
				t.Errorf("phases %q, want %q", got, test.phases)
			}
			cross := position * test.length
			if *l.EncoderLength != test.length || *l.Cache.CrossBytes != cross || l.Cache.PositionBytes != position || *l.ContextLength != 64 {
				t.Errorf("%+v, %+v", l, l.Cache)
			}
			for i := range l.Phases {
				ph := &l.Phases[i]
				read, written := int64(0), int64(0)
				if ph.Kind != profile.EncodePhase {
					read, written = batch*ph.Context*position, batch*ph.Tokens*position
				}
				if ph.Kind == profile.DecodePhase || ph.Kind == profile.PrefillPhase && test.written == 0 {
					read += batch * cross
				}
				if ph.Kind == l.Phases[test.written].Kind {
					written += batch * cross
				}
				if ph.CacheReadBytes != read || ph.CacheWrittenBytes != written {
					t.Errorf("%s reads %d bytes of caches and writes %d, want %d and %d", ph.Name(), ph.CacheReadBytes, ph.CacheWrittenBytes, read, written)
				}
			}
			slices.Reverse(files)
			if got := names(open(opmeter.OpenParts(files...))); !slices.Equal(got, test.phases) {
				t.Errorf("files: phases %q, want %q", got, test.phases)
			}
			if got := names(open(opmeter.Open(files[0]))); !slices.Equal(got, test.alone) {
				t.Errorf("decoder alone: phases %q, want %q", got, test.alone)
			}
		})
	}
}

// TestSharedFolder measures a folder of ONNX Runtime GenAI whose caches are buffers of the length that
// the phases need.
func TestSharedFolder(t *testing.T) {
	c := decoder.Small
	c.Shared, c.Open = true, true
	data, err := onnx.Encode(decoder.New(c))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{
		"net.onnx": data,
		"genai_config.json": []byte(`{"model": {"context_length": 32, "decoder": {"filename": "net.onnx"}, "vision": {"filename": "vision.onnx"}},
			"search": {"past_present_share_buffer": true}}`),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := opmeter.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p, err := opmeter.Profile(t.Context(), m, few(&opmeter.Phases{Prompts: []int{4}, Contexts: []int{9, 0}}))
	if err != nil {
		t.Fatal(err)
	}
	if k := p.Language.Cache; !k.Shared || *k.Capacity != 10 || *p.Language.ContextLength != 32 {
		t.Errorf("caches %+v, want buffers of 10 positions; %d positions at most", k, *p.Language.ContextLength)
	}
	if !slices.ContainsFunc(p.Findings, func(f profile.Finding) bool { return strings.Contains(f.Text, "vision.onnx") }) {
		t.Errorf("findings %+v", p.Findings)
	}
}

// TestPartsRefused: what makes no model is not one, and a broken file is named.
func TestPartsRefused(t *testing.T) {
	t.Parallel()
	dir, files := pairFolder(t, decoder.Merged)
	if m, err := opmeter.OpenParts(files[0]); m != nil || err != nil {
		t.Errorf("one file: %v, %v", m, err)
	}
	if m, err := opmeter.OpenParts(files[1], files[1]); m != nil || err != nil {
		t.Errorf("two decoders: %v, %v", m, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "decoder_q4.onnx"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := opmeter.OpenParts(dir); m != nil || err != nil {
		t.Errorf("a folder with other models: %v, %v", m, err)
	}
	if err := os.WriteFile(files[0], []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := opmeter.OpenParts(files...); err == nil || !strings.Contains(err.Error(), "encoder_model.onnx") {
		t.Errorf("a broken encoder: %v", err)
	}
}

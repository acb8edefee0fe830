package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/testing/decoder"
	"github.com/opmeter/opmeter/profile"
)

// smallLanguage writes a small language model and returns its file.
func smallLanguage(t *testing.T) string {
	t.Helper()
	data, err := onnx.Encode(decoder.New(decoder.Small))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "llm.onnx")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPhases measures a language model in phases unless flags say otherwise, and refuses flags that
// would be ignored.
func TestPhases(t *testing.T) {
	t.Parallel()
	file := smallLanguage(t)
	const said = "opmeter: a language model with caches: measuring a prompt of 32 tokens, and one token after 0 and 63 (--phases=false: one inference)\n"
	for _, tt := range []struct {
		args   string
		status int
		has    []string
		lacks  string
		err    string // all of standard error, or a part of it if it fails
	}{
		{"", statusDone, []string{"Prefill 32 ", "Decode at 0 ", "Decode at 63 ", " tokens/s · TTFT ", " tokens/s · TPOT ", "quality: ", "tokenizer and sampling", "Limit of decode at 63 ", "2 layers of 4 heads of 8, float32, 512 B for each position", "Memory by context ", "prefill 32"}, "Latency ", said},
		{"--prompt 4,8 --context 5 --batch 2", statusDone, []string{"Prefill 4, batch 2 ", "Prefill 8, batch 2 ", "Decode at 5, batch 2 "}, "Decode at 0", ""},
		{"--phases", statusDone, []string{"Prefill 32 "}, "Latency ", ""},
		{"--phases=false", statusDone, []string{"Latency "}, "Prefill", ""},
		{"--dim sequence_length=3", statusDone, []string{"Latency "}, "Prefill", ""},
		{"--prompt 4 --context 5 --batch 1,3", statusDone, []string{"Prefill 4 ", "Prefill 4, batch 3 ", "Decode at 5 ", "Decode at 5, batch 3 ", "prefill 4, batch 3  decode at 5 "}, "Decode at 0", ""},
		{"--dim past_sequence_length=0,7 --batch 1,2", statusDone, []string{"Latency ", "With batch 1, past_sequence_length 0 ", "With batch 2, past_sequence_length 0 ", "those of batch 2, past_sequence_length 7"}, "Prefill", ""},
		{"--prompt 4 --batch 1,2,3,4,5,6,7,8", statusUse, nil, "", "--phases: these are 24 phases: use up to 16"},
		{"--dim a=1,2,3,4,5 --dim b=1,2,3,4", statusUse, nil, "", "--batch and --dim: these are more than 16 combinations: use fewer sizes"},
		{"--dim a=1,1", statusUse, nil, "", "--dim a=1,1: has 1 twice"},
		{"--dim a=1,2 --check", statusUse, nil, "", "take lists for one engine on this computer, without --check"},
		{"--dim a=1,2 --streams 2", statusUse, nil, "", "--streams: leave it out: it does not go with lists of sizes"},
		{"--batch 1,2 --on stm32l4r5", statusUse, nil, "", "take lists for one engine on this computer"},
		{"--phases=false --prompt 4", statusUse, nil, "", "--prompt is for phases: leave out --phases=false"},
		{"--prompt 4 --dim sequence_length=3", statusUse, nil, "", "--dim does not go with phases, which set the inputs: leave it out, or add --phases=false"},
		{"--phases --streams 2", statusUse, nil, "", "--streams does not go with phases"},
		{"--context 64", statusUse, nil, "", "--context: the model has 64 positions: 64 in the cache and 1 new are too many"},
		{"--prompt 4,65", statusUse, nil, "", "--prompt: the model has 64 positions: 0 in the cache and 65 new are too many"},
		{"--prompt 0", statusUse, nil, "", "--prompt: write numbers from 1 to 1048576 with commas between them"},
		{"--prompt 4 --on stm32l4r5", statusUse, nil, "", "--prompt says how to run a model on this computer"},
	} {
		var out, errw bytes.Buffer
		args := append([]string{"profile", file, "--runs", "4"}, strings.Fields(tt.args)...)
		if !strings.Contains(tt.args, "--on ") {
			args = append(args, "--warmup", "0s")
		}
		if got := run(t.Context(), args, strings.NewReader(""), &out, &errw); got != tt.status {
			t.Errorf("%s: status %d, want %d: %s", tt.args, got, tt.status, errw.String())
		}
		for _, want := range tt.has {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: output lacks %q:\n%s", tt.args, want, out.String())
			}
		}
		if tt.lacks != "" && strings.Contains(out.String(), tt.lacks) || tt.status != statusDone && out.Len() > 0 {
			t.Errorf("%s: output has %q:\n%s", tt.args, tt.lacks, out.String())
		}
		if tt.status == statusDone && errw.String() != tt.err || !strings.Contains(errw.String(), tt.err) {
			t.Errorf("%s: standard error is %q, want %q", tt.args, errw.String(), tt.err)
		}
	}
}

// TestPhasesOfSeveral has the figures of tokens in the list of models if phases are asked for.
func TestPhasesOfSeveral(t *testing.T) {
	t.Parallel()
	data, err := onnx.Encode(decoder.New(decoder.Small))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "a.onnx"), filepath.Join(dir, "b.onnx")}
	for _, file := range files {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]bool{"--prompt 4 --context 5": true, "": false} {
		var out, errw bytes.Buffer
		all := append(append([]string{"profile"}, files...), append(strings.Fields(args), "--runs", "3", "--warmup", "0s")...)
		if got := run(t.Context(), all, strings.NewReader(""), &out, &errw); got != statusDone {
			t.Fatalf("status %d: %s", got, errw.String())
		}
		if strings.Contains(out.String(), "prefill/s  decode/s  first token  per token") != want {
			t.Errorf("%q: figures of tokens expected: %t, list:\n%s", args, want, out.String())
		}
	}
}

// TestPhasesEstimated estimates the phases of a model that is not run.
func TestPhasesEstimated(t *testing.T) {
	t.Parallel()
	file := smallLanguage(t)
	for _, tt := range []struct {
		args   string
		status int
		has    []string
	}{
		{"--prompt 8 --context 0,5 --batch 2", statusDone, []string{"Prefill 8, batch 2 ", "Decode at 0, batch 2 ", "Decode at 5, batch 2 ", "estimated", " expected · weights ", "Memory by context "}},
		{"--context 64", statusUse, []string{"the model has 64 positions"}},
		{"--threads 2", statusUse, []string{"--threads is for estimates of phases: add --prompt or --context"}},
		{"--prompt 8 --dim sequence_length=3", statusUse, []string{"--dim does not go with phases"}},
	} {
		var out, errw bytes.Buffer
		if got := run(t.Context(), append([]string{"summary", file}, strings.Fields(tt.args)...), strings.NewReader(""), &out, &errw); got != tt.status {
			t.Errorf("%s: status %d, want %d: %s", tt.args, got, tt.status, errw.String())
		}
		for _, want := range tt.has {
			if !strings.Contains(out.String()+errw.String(), want) {
				t.Errorf("%s: output lacks %q:\n%s%s", tt.args, want, out.String(), errw.String())
			}
		}
	}
}

// TestPhasesOfLists measures an inference of each model of a list, unless phases are asked for.
func TestPhasesOfLists(t *testing.T) {
	t.Parallel()
	data, err := onnx.Encode(decoder.New(decoder.Small))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"a.onnx", "b.onnx"} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		flags  []string
		phases bool
	}{{nil, false}, {[]string{"--phases"}, true}} {
		var out, errw bytes.Buffer
		args := append([]string{"profile", dir, "--runs", "3", "--warmup", "0s", "--format", "json"}, tt.flags...)
		if got := run(t.Context(), args, strings.NewReader(""), &out, &errw); got != statusDone || errw.Len() > 0 {
			t.Errorf("%v: status %d: %s", tt.flags, got, errw.String())
		}
		if n := strings.Count(out.String(), `"language_model"`); n > 0 != tt.phases {
			t.Errorf("%v: %d profiles have phases", tt.flags, n)
		}
	}
}

// TestPhasesOfParts measures an encoder and a decoder as one model, as a folder or as files.
func TestPhasesOfParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := decoder.NewPair(decoder.Small, decoder.Merged)
	var files []string
	for _, m := range []*graph.Model{p.Encoder, p.Decoder} {
		data, err := onnx.Encode(m)
		files = append(files, filepath.Join(dir, m.Path))
		if err == nil {
			err = os.WriteFile(files[len(files)-1], data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"max_target_positions": 64}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const said = "opmeter: a language model with caches: measuring a prompt of 4 tokens, and one token after 0 and 63 (--phases=false: one inference)\n"
	for _, tt := range []struct {
		args  []string
		has   []string
		lacks string
		err   string
	}{
		{[]string{dir}, []string{"decoder_model_merged.onnx on this", "Encode 24 ", " positions/s · time ", "Prefill 4 ", "Decode at 63 ", "Time to first token ", ": the encoder and prefill", "; 12.0 KiB for 24 positions of the encoder", "encode 24 runs encoder_model.onnx"}, " TTFT ", said},
		{files, []string{"Encode 24 ", "Decode at 63 "}, " TTFT ", said},
		{[]string{dir, "--prompt", "2", "--context", "5"}, []string{"Encode 24 ", "Prefill 2 ", "Decode at 5 "}, "Decode at 63", ""},
		{files[1:], []string{"Prefill 1 ", "Decode at 0 ", "whose time is not included"}, "Encode", ""},
		{[]string{dir, "--phases=false"}, []string{"decoder_model_merged", "encoder_model"}, "Encode 24", ""},
	} {
		var out, errw bytes.Buffer
		args := append([]string{"profile", "--runs", "4", "--warmup", "0s"}, tt.args...)
		if len(tt.args) == 1 && tt.args[0] == files[1] {
			args = append(args, "--context", "0")
		}
		if got := run(t.Context(), args, strings.NewReader(""), &out, &errw); got != statusDone || errw.String() != tt.err {
			t.Errorf("%v: status %d: %s", tt.args, got, errw.String())
		}
		for _, want := range tt.has {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v: output lacks %q:\n%s", tt.args, want, out.String())
			}
		}
		if strings.Contains(out.String(), tt.lacks) {
			t.Errorf("%v: output has %q:\n%s", tt.args, tt.lacks, out.String())
		}
	}
	var estimated, errs bytes.Buffer
	got := run(t.Context(), []string{"summary", dir, "--prompt", "2", "--context", "5"}, strings.NewReader(""), &estimated, &errs)
	for _, want := range []string{"Encode 24 ", "Prefill 2 ", "Decode at 5 ", "estimated"} {
		if got != statusDone || !strings.Contains(estimated.String(), want) {
			t.Errorf("summary of the folder: status %d, %s, output lacks %q:\n%s", got, errs.String(), want, estimated.String())
		}
	}
	broken := filepath.Join(dir, "genai_config.json")
	if err := os.WriteFile(broken, []byte(`{"model": {"decoder": {"pipeline": [{}, {}, {}]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errw bytes.Buffer
	if got := run(t.Context(), []string{"profile", dir}, strings.NewReader(""), &out, &errw); got != statusInput || !strings.Contains(errw.String(), broken+": model.decoder.pipeline has a decoder in parts (3)") {
		t.Errorf("status %d: %s", got, errw.String())
	}
}

// TestPhasesSaved writes phases to files and compares them.
func TestPhasesSaved(t *testing.T) {
	t.Parallel()
	data, err := onnx.Encode(decoder.New(decoder.Small))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "llm.onnx")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	call := func(args ...string) string {
		var out, errw bytes.Buffer
		if got := run(t.Context(), args, strings.NewReader(""), &out, &errw); got != statusDone {
			t.Fatalf("%v: status %d: %s", args, got, errw.String())
		}
		return out.String()
	}
	var saved []string
	for _, name := range []string{"a.opmeter", "b.opmeter"} {
		saved = append(saved, filepath.Join(dir, name))
		call("profile", file, "--runs", "4", "--warmup", "0s", "-o", saved[len(saved)-1])
	}
	p, err := profile.Read(saved[0])
	if err != nil {
		t.Fatal(err)
	}
	var shown profile.Profile
	if err := json.Unmarshal([]byte(call("report", saved[0], "--format", "json")), &shown); err != nil || len(shown.Language.Phases) != 3 || shown.Language.Cache != p.Language.Cache && shown.Language.Cache.PositionBytes != 512 {
		t.Errorf("%v, %+v", err, shown.Language)
	}
	if s := call("report", saved[0], "--format", "csv"); !strings.Contains(s, ",prefill_32_s,decode_0_s,") {
		t.Errorf("columns of the phases are missing in\n%.400s", s)
	}
	text := call("compare", saved[0], saved[1])
	for _, want := range []string{"prefill tokens/s", "decode tokens/s", "time to first token", "time per output token"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if s := call("compare", saved[0], saved[1], "--quantity", "prefill_32_s"); !strings.Contains(s, "time in prefill 32") {
		t.Error(s)
	}
}

package llm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/internal/testing/decoder"
)

// folder writes files with their contents; models are empty.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFolder(t *testing.T) {
	t.Parallel()
	name, crossed := decoder.Settings(decoder.Small, decoder.Crossed)
	self := func(kind string) llm.Pair {
		return llm.Pair{Past: "past_" + kind + "_self_%d", Present: "present_" + kind + "_self_%d"}
	}
	cross := func(kind string) llm.Pair {
		return llm.Pair{Past: "past_" + kind + "_cross_%d", Kind: llm.Cross}
	}
	type files = map[string]string
	for _, test := range []struct {
		name  string
		files files
		want  *llm.Files
	}{
		{"nothing", files{"a.onnx": ""}, nil},
		{"another model", files{"decoder_model_merged.onnx": "", "decoder_model_merged_q4.onnx": ""}, nil},
		{"encoder alone", files{"encoder_model.onnx": ""}, nil},
		{"decoder", files{"model.onnx": "", "config.json": `{"max_position_embeddings": 77}`}, &llm.Files{Decoder: "model.onnx", Setup: llm.Setup{Context: 77}}},
		{
			"sound",
			files{"onnx/encoder_model.onnx": "", "onnx/decoder_model.onnx": "", "onnx/decoder_with_past_model.onnx": "", "onnx/decoder_model_merged.onnx": "", "config.json": `{"max_target_positions": 448, "max_source_positions": 1500, "num_mel_bins": 80, "x": NaN}`},
			&llm.Files{Decoder: "onnx/decoder_model_merged.onnx", Encoder: "onnx/encoder_model.onnx", Setup: llm.Setup{Context: 448, Encoder: 1500, Bands: 80}},
		},
		{
			"image",
			files{"encoder_model.onnx": "", "decoder_model_merged.onnx": "", "config.json": `{"encoder": {"image_size": 384, "num_channels": 3}, "decoder": {"max_position_embeddings": 512}}`},
			&llm.Files{Decoder: "decoder_model_merged.onnx", Encoder: "encoder_model.onnx", Setup: llm.Setup{Context: 512, Channels: 3, Pixels: 384}},
		},
		{
			"text",
			files{"encoder_model.onnx": "", "decoder_model.onnx": "", "decoder_with_past_model.onnx": "", "config.json": `{"n_positions": -1, "n_ctx": 512.0}`},
			&llm.Files{Decoder: "decoder_with_past_model.onnx", Start: "decoder_model.onnx", Encoder: "encoder_model.onnx", Setup: llm.Setup{Context: 512}},
		},
		{
			"ONNX Runtime GenAI",
			files{name: crossed, "other.onnx": "", "config.json": `{"max_source_positions": 1500, "max_position_embeddings": 9}`},
			&llm.Files{Decoder: "decoder.onnx", Encoder: "encoder.onnx", Setup: llm.Setup{
				Context: 64, Encoder: 1500, Roles: map[string]llm.Role{"input_ids": llm.Tokens, "audio_features": llm.Features},
				Caches: []llm.Pair{self("key"), self("value"), cross("key"), cross("value")},
			}},
		},
		{
			"parts of other senses",
			files{name: `{"model": {"decoder": {"filename": "text.onnx", "inputs": {"inputs_embeds": "e", "past_names": "kv_%d", "past_key_names": 3}, "outputs": {"present_names": "new_%d"}}, "vision": {"filename": "see.onnx"}}, "search": {"past_present_share_buffer": true}}`},
			&llm.Files{Decoder: "text.onnx", Excluded: []string{"see.onnx"}, Setup: llm.Setup{Roles: map[string]llm.Role{"e": llm.Embeddings}, Caches: []llm.Pair{{Past: "kv_%d", Present: "new_%d"}}, Shared: true}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, test.files)
			got, err := llm.Folder(dir)
			if err != nil {
				t.Fatal(err)
			}
			if want := test.want; want != nil {
				for _, p := range []*string{&want.Decoder, &want.Encoder, &want.Start} {
					if *p != "" {
						*p = filepath.Join(dir, filepath.FromSlash(*p))
					}
				}
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
	const genai = "genai_config.json"
	for want, text := range map[string]string{
		`model.decoder.pipeline has a decoder in parts (2): phases need a decoder in one file`: `{"model": {"decoder": {"pipeline": [{}, {}]}}}`,
		`model.decoder.filename is missing`:                                                    `{"model": {}}`,
		`model.context_length: expected a number of positions from 1 to 2147483647`:            `{"model": {"context_length": -5, "decoder": {"filename": "x.onnx"}}}`,
		`search.past_present_share_buffer: expected true or false`:                             `{"model": {"decoder": {"filename": "x.onnx"}}, "search": {"past_present_share_buffer": "true"}}`,
		`model.decoder.filename: expected the name of a file in the folder`:                    `{"model": {"decoder": {"filename": "../x.onnx"}}}`,
		`the name "a%d%d" of caches needs one %d for the layer`:                                `{"model": {"decoder": {"filename": "x.onnx", "inputs": {"past_names": "a%d%d"}, "outputs": {"present_names": "b%d"}}}}`,
		"is not a JSON object": `[]`,
		"want a value":         `{"model": `,
		"nests deeper than":    strings.Repeat(`{"a":`, 100),
		"is larger than":       strings.Repeat(" ", 2<<20),
	} {
		dir := folder(t, map[string]string{genai: text})
		if _, err := llm.Folder(dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), genai) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzFolder: no settings make the reader panic or name a file outside of the folder.
func FuzzFolder(f *testing.F) {
	for _, form := range []decoder.Form{decoder.Merged, decoder.Crossed} {
		_, text := decoder.Settings(decoder.Small, form)
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"model": {"decoder": {"filename": "/x", "pipeline": []}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"genai_config.json", "config.json"} {
			dir := folder(t, map[string]string{name: string(data), "model.onnx": ""})
			files, err := llm.Folder(dir)
			if err != nil || files == nil {
				continue
			}
			for _, path := range []string{files.Decoder, files.Encoder, files.Start} {
				if rel, err := filepath.Rel(dir, path); path != "" && (err != nil || !filepath.IsLocal(rel)) {
					t.Errorf("%q is outside of the folder", path)
				}
			}
			for _, p := range files.Setup.Caches {
				if strings.Count(p.Past, "%d") != 1 {
					t.Errorf("a name %q of caches", p.Past)
				}
			}
		}
	})
}

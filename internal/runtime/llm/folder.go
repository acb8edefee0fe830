package llm

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/base/jsontree"
)

// Files names the files of a language model.
type Files struct {
	Decoder string
	// Encoder is "" for models without one. Start runs the first tokens where Decoder does not, and
	// is "" otherwise.
	Encoder, Start string
	Setup          Setup
	// Excluded says what else the model consists of, such as "vision.onnx".
	Excluded []string
}

// Names of the files that say what is in a folder.
const (
	genaiName  = "genai_config.json"
	configName = "config.json"
)

// encoderName is that of an encoder in folders of Optimum.
const encoderName = "encoder_model.onnx"

// layouts are the decoders in folders of Optimum, the best first.
var layouts = []struct{ decoder, start string }{
	{"decoder_model_merged.onnx", ""},
	{"decoder_with_past_model.onnx", "decoder_model.onnx"},
	{"model.onnx", ""},
}

// Folder returns the language model in a folder with a genai_config.json of ONNX Runtime GenAI, or
// with the files that Optimum writes, also where these are in a folder onnx. A config.json tells
// sizes. It is nil for other folders, and for those that have more models.
func Folder(dir string) (*Files, error) {
	if _, err := os.Stat(filepath.Join(dir, genaiName)); err == nil {
		return genai(dir)
	}
	for _, sub := range []string{dir, filepath.Join(dir, "onnx")} {
		entries, err := os.ReadDir(sub)
		if err != nil {
			continue
		}
		var have []string
		for _, e := range entries {
			if strings.EqualFold(filepath.Ext(e.Name()), ".onnx") {
				have = append(have, e.Name())
			}
		}
		if f := optimum(sub, have); f != nil {
			return f, f.Setup.config(filepath.Join(dir, configName))
		}
	}
	return nil, nil //nolint:nilnil // not such a folder, which is no fault
}

// optimum chooses among files by their names, nil if they do not make one model.
func optimum(dir string, have []string) *Files {
	known := []string{encoderName}
	for _, l := range layouts {
		known = append(known, l.decoder, l.start)
	}
	for _, name := range have {
		if !slices.Contains(known, name) {
			return nil
		}
	}
	for _, l := range layouts {
		if !slices.Contains(have, l.decoder) {
			continue
		}
		f := &Files{Decoder: filepath.Join(dir, l.decoder)}
		if l.start != "" && slices.Contains(have, l.start) {
			f.Start = filepath.Join(dir, l.start)
		}
		if slices.Contains(have, encoderName) {
			f.Encoder = filepath.Join(dir, encoderName)
		}
		return f
	}
	return nil
}

// Group returns the language model that files make by their names: one with "decoder", one with
// "encoder" or two decoders, of which one has "with_past". It is nil for other files. A config.json
// beside the decoder tells sizes.
func Group(paths []string) (*Files, error) {
	f := &Files{}
	var decoders []string
	for _, p := range paths {
		name := strings.ToLower(filepath.Base(p))
		encoder, decoder := strings.Contains(name, "encoder"), strings.Contains(name, "decoder")
		switch {
		case encoder == decoder || encoder && f.Encoder != "" || filepath.Ext(name) != ".onnx":
			return nil, nil //nolint:nilnil // not such files
		case encoder:
			f.Encoder = p
		default:
			decoders = append(decoders, p)
		}
	}
	past := slices.IndexFunc(decoders, func(p string) bool { return strings.Contains(strings.ToLower(filepath.Base(p)), "with_past") })
	switch {
	case len(decoders) == 2 && past >= 0:
		f.Decoder, f.Start = decoders[past], decoders[1-past]
	case len(decoders) == 1 && f.Encoder != "":
		f.Decoder = decoders[0]
	default:
		return nil, nil //nolint:nilnil // not such files
	}
	return f, f.Setup.config(filepath.Join(filepath.Dir(f.Decoder), configName))
}

// mostConfig bounds the size of a file with settings.
const mostConfig = 1 << 20

// settings reads a JSON object. The error is a [fs.PathError].
func settings(path string) (*jsontree.Value, error) {
	data, err := infile.Read(path, mostConfig)
	if err != nil {
		return nil, err
	}
	v, err := jsontree.Parse(data)
	if err == nil && v.Kind != jsontree.Object {
		err = errors.New("is not a JSON object")
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return v, nil
}

// count is the first integer above 0 of some members, 0 without one.
func count(v *jsontree.Value, keys ...string) int {
	for _, k := range keys {
		if x := v.Get(k); x != nil && x.Kind == jsontree.Number && x.Num >= 1 && x.Num <= math.MaxInt32 && x.Num == math.Trunc(x.Num) {
			return int(x.Num)
		}
	}
	return 0
}

// config reads the sizes of a model from its config.json, which may be absent.
func (s *Setup) config(path string) error {
	v, err := settings(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, of := range []*jsontree.Value{v.Get("decoder"), v} {
		s.Context = cmp.Or(s.Context, count(of, "max_target_positions", "max_position_embeddings", "n_positions", "n_ctx"))
	}
	s.Encoder, s.Bands = count(v, "max_source_positions"), count(v, "num_mel_bins")
	image := v.Get("encoder")
	s.Channels, s.Pixels = count(image, "num_channels"), count(image, "image_size")
	return nil
}

// roles has those of the inputs that a genai_config.json names.
var roles = map[string]Role{
	"input_ids": Tokens, "embeddings": Embeddings, "inputs_embeds": Embeddings, "attention_mask": Mask, "position_ids": Positions,
	"past_sequence_length": Past, "total_sequence_length": Total, "audio_features": Features,
	"encoder_hidden_states": States, "encoder_attention_mask": StatesMask,
}

// genaiCaches are the members with names of caches.
var genaiCaches = []struct {
	past, present string
	kind          Kind
}{
	{"past_key_names", "present_key_names", Self},
	{"past_value_names", "present_value_names", Self},
	{"past_names", "present_names", Self},
	{"cross_past_key_names", "", Cross},
	{"cross_past_value_names", "", Cross},
}

// genai reads the settings of ONNX Runtime GenAI.
func genai(dir string) (*Files, error) {
	path := filepath.Join(dir, genaiName)
	v, err := settings(path)
	if err != nil {
		return nil, err
	}
	wrong := func(format string, args ...any) error {
		return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf(format, args...)}
	}
	f := &Files{}
	m := v.Get("model")
	decoder := m.Get("decoder")
	if p := decoder.Get("pipeline"); p != nil && len(p.Items) > 0 {
		return nil, wrong("model.decoder.pipeline has a decoder in parts (%d): phases need a decoder in one file; profile the files one by one", len(p.Items))
	}
	for _, part := range []struct {
		key string
		to  *string
	}{{"decoder", &f.Decoder}, {"encoder", &f.Encoder}, {"embedding", nil}, {"vision", nil}, {"speech", nil}} {
		name := m.Get(part.key).Get("filename")
		switch {
		case name == nil || name.Text == "":
			continue
		case name.Kind != jsontree.String || !filepath.IsLocal(name.Text):
			return nil, wrong("model.%s.filename: expected the name of a file in the folder", part.key)
		case part.to == nil:
			f.Excluded = append(f.Excluded, name.Text)
		default:
			*part.to = filepath.Join(dir, name.Text)
		}
	}
	if f.Decoder == "" {
		return nil, wrong("model.decoder.filename is missing: expected the file of the decoder")
	}
	s := &f.Setup
	s.Context = count(m, "context_length")
	if x := m.Get("context_length"); x != nil && s.Context == 0 {
		return nil, wrong("model.context_length: expected a number of positions from 1 to %d", math.MaxInt32)
	}
	if x := v.Get("search").Get("past_present_share_buffer"); x != nil {
		if x.Kind != jsontree.Bool {
			return nil, wrong("search.past_present_share_buffer: expected true or false")
		}
		s.Shared = x.Text == "true"
	}
	s.Roles = map[string]Role{}
	in, out := decoder.Get("inputs"), decoder.Get("outputs")
	for _, from := range []*jsontree.Value{in, m.Get("encoder").Get("inputs")} {
		for key, role := range roles {
			if name := from.Get(key); name != nil && name.Kind == jsontree.String {
				s.Roles[name.Text] = role
			}
		}
	}
	for _, c := range genaiCaches {
		past, present := in.Get(c.past), out.Get(c.present)
		if past == nil || past.Kind != jsontree.String || c.present != "" && present == nil {
			continue
		}
		pair := Pair{Past: past.Text, Kind: c.kind}
		if present != nil {
			pair.Present = present.Text
		}
		for _, name := range []string{pair.Past, pair.Present} {
			if name != "" && strings.Count(name, "%d") != 1 {
				return nil, wrong("model.decoder: the name %q of caches needs one %%d for the layer", name)
			}
		}
		s.Caches = append(s.Caches, pair)
	}
	return f, s.beside(filepath.Join(dir, configName))
}

// beside takes from a config.json what the settings do not say.
func (s *Setup) beside(path string) error {
	var c Setup
	err := c.config(path)
	s.Encoder, s.Bands, s.Channels, s.Pixels = c.Encoder, c.Bands, c.Channels, c.Pixels
	s.Context = cmp.Or(s.Context, c.Context)
	return err
}

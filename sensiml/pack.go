package sensiml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/base/jsontree"
)

// Bounds of a model.json.
const (
	maxPackBytes  = 64 << 20
	maxModels     = 1000
	maxGenerators = 10_000
	maxName       = 500
)

// Pack is what a model.json says of the models in a knowledge pack.
type Pack struct {
	// Models in the order of their numbers.
	Models []Model
	// Notes say what is odd about the file, a sentence each.
	Notes []string

	// doc is the whole document, for the exact results of the vendor's parser.
	doc *jsontree.Value
}

// Model is one model of a pack.
type Model struct {
	// Index is the number that the device prints.
	Index int
	// Name, UUID and Type ("PME", "Decision Tree Ensemble" and so on) as the file has them, "" for
	// none.
	Name, UUID, Type string
	// Classes are the labels by class number; empty for regression.
	Classes []Class
	// Features are the selected features in the order of the feature vector.
	Features []Feature
	// Sensors are the columns of raw data.
	Sensors []string
	// Generators in the order in which the device runs them, with the slots of their figures.
	Generators []Generator
	// Layout says how the slots are known.
	Layout Layout
	// Banks is the number of segments that a cascade gathers, 1 without one. Each has the slots of
	// all generators: bank b begins at slot b*BankSlots.
	Banks, BankSlots int
	// Slide says that a cascade classifies after every segment, and not after each Banks segments;
	// nil if absent or the file does not say.
	Slide *bool
	// Segmenter is the name of the segmenter, "" for not known. Window and Delta are the length and
	// the step of its windows in samples, 0 where it has none or they are not known.
	Segmenter     string
	Window, Delta int
	// SampleRate in Hz, as far as the file tells it; 0 if not.
	SampleRate float64
	// Steps are the names of the pipeline's steps, in order. Those that are neither generators nor
	// classifier are not timed by the firmware.
	Steps []string
}

// Layout says how the slots of a model's generators are known.
type Layout string

// Ways of knowing the slots.
const (
	// LayoutPipeline: the file has the pipeline.
	LayoutPipeline Layout = "pipeline"
	// LayoutFeatures: the file lists features and their generators; slots are right where each
	// feature is one call of a generator.
	LayoutFeatures Layout = "features"
	// LayoutNames: the file has names of features only; the same holds.
	LayoutNames Layout = "names"
	// LayoutNone: there is no file, or nothing in it: figures are of numbered slots.
	LayoutNone Layout = "none"
)

// Class is the label of a class number.
type Class struct {
	Number int
	Label  string
}

// Feature is an element of the feature vector.
type Feature struct {
	// Name as the file has it, without the number of its generator.
	Name string
	// Function is the name of its generator, "" in files from before the middle of 2021.
	Function string
}

// Param is a parameter of a generator, in the order of the file.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (p Param) number() (float64, bool) {
	v, err := strconv.ParseFloat(p.Value, 64)
	return v, err == nil
}

// Generator is one call of a feature generator.
type Generator struct {
	// Function is the generator's name, such as "Power Spectrum".
	Function string
	// Label is the name of its feature where the file has no pipeline, "" otherwise.
	Label string
	// Columns are the sensor columns that it reads, nil for not known.
	Columns []string
	// Params are its other parameters.
	Params []Param
	// Slot is the first of its Slots slots in a bank; the figure stands there and the others hold
	// zero. -1 where it is not known, because the number of slots of one before it is not.
	Slot, Slots int
	// Outputs are the features of a family that were selected; the device computes them all.
	Outputs []int

	// counts are the numbers of slots that firmwares may use, the usual one first.
	counts []int
}

// Category is the family of the generator, "" for one that is not known.
func (g *Generator) Category() string { return Category(g.Function) }

// Name is the generator and what it reads, such as "Mean AccelerometerX".
func (g *Generator) Name() string {
	switch {
	case len(g.Columns) > 0 && g.Function != "":
		return g.Function + " " + strings.Join(g.Columns, "+")
	case g.Label != "" && g.Function != "":
		return g.Function + " (" + g.Label + ")"
	}
	return g.Label + g.Function
}

// OpenPack reads the model.json at a path.
func OpenPack(path string) (*Pack, error) {
	b, err := infile.Read(path, maxPackBytes)
	if err != nil {
		return nil, err
	}
	p, err := ReadPack(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

var errNotPack = errors.New(`has no "ModelDescriptions" and is not an export of a knowledge pack: expected the model.json that lies beside the library`)

// ReadPack reads a model.json of any generation, or the export of a knowledge pack. Of a damaged
// file it takes nothing: a wrong layout puts wrong names on figures.
func ReadPack(r io.Reader) (*Pack, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPackBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxPackBytes {
		return nil, fmt.Errorf("is larger than %d bytes: no model.json", maxPackBytes)
	}
	doc, err := jsontree.Parse(b)
	if err != nil {
		return nil, err
	}
	p := &Pack{doc: doc}
	switch descriptions := doc.Get("ModelDescriptions"); {
	case descriptions != nil && (descriptions.Kind == jsontree.List || descriptions.Kind == jsontree.Object):
		err = p.models(doc, descriptions)
	case doc.Has("feature_summary", "knowledgepack_summary") || doc.Has("model_configuration", "knowledgepack_summary"):
		p.export(doc)
	default:
		err = errNotPack
	}
	if err != nil {
		return nil, err
	}
	if len(p.Models) == 0 {
		return nil, errors.New("describes no model")
	}
	return p, nil
}

func (p *Pack) note(format string, args ...any) {
	if len(p.Notes) < 50 {
		p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
	}
}

// names are what ModelIndexes says, whichever way round it stands.
func (p *Pack) names(v *jsontree.Value) map[int]string {
	out := map[int]string{}
	reversed := false
	for key, value := range v.Members() {
		if i, err := strconv.Atoi(key); err == nil {
			out[i] = clip(value.Str())
			continue
		}
		if i, ok := value.Int(); ok && i >= 0 && i < maxModels {
			out[int(i)], reversed = clip(key), true
		}
	}
	if reversed {
		p.note("ModelIndexes has names for keys and numbers for values; it is read that way.")
	}
	return out
}

// models reads the descriptions of a model.json: a list, or an object keyed by number.
func (p *Pack) models(doc, descriptions *jsontree.Value) error {
	names := p.names(doc.Get("ModelIndexes"))
	if n := len(descriptions.Items); n > maxModels {
		return fmt.Errorf("describes %d models, more than %d", n, maxModels)
	}
	seen := map[int]bool{}
	for i, d := range descriptions.Items {
		if d.Kind != jsontree.Object {
			p.note("Description %d is not an object and is left out.", i)
			continue
		}
		index := i
		if descriptions.Kind == jsontree.Object {
			n, err := strconv.Atoi(descriptions.Keys[i])
			if err != nil || n < 0 || n >= maxModels {
				return fmt.Errorf("ModelDescriptions has the key %q: expected the number of a model", clip(descriptions.Keys[i]))
			}
			index = n
		}
		if seen[index] {
			return fmt.Errorf("describes model %d twice", index)
		}
		seen[index] = true
		m := Model{Index: index, Name: clip(d.Get("Name").Str()), Type: clip(d.Get("ModelType").Str()), UUID: clip(d.Get("uuid").Str())}
		if m.Name == "" {
			m.Name = names[index]
		}
		m.Classes = classes(d.Get("ClassMaps"))
		functions := d.Get("FeatureFunctions").List()
		for k, f := range d.Get("FeatureNames").List() {
			x := Feature{Name: featureName(f.Str())}
			if k < len(functions) {
				x.Function = clip(functions[k].Str())
			}
			m.Features = append(m.Features, x)
		}
		for k := len(m.Features); k < len(functions); k++ {
			m.Features = append(m.Features, Feature{Function: clip(functions[k].Str())})
		}
		if len(m.Features) > maxSlots {
			return fmt.Errorf("model %d has %d features, more than %d", index, len(m.Features), maxSlots)
		}
		m.Sensors = texts(d.Get("sensors_columns"))
		if err := m.pipeline(d.Get("knowledgepack_summary").List()); err != nil {
			return fmt.Errorf("model %d: %w", index, err)
		}
		p.Models = append(p.Models, m)
	}
	if n, ok := doc.Get("NumModels").Int(); ok && int(n) != len(p.Models) {
		p.note("NumModels is %d and %d are described.", n, len(p.Models))
	}
	sortModels(p.Models)
	return nil
}

// export reads the export of a knowledge pack, which is of one model.
func (p *Pack) export(doc *jsontree.Value) {
	m := Model{Name: clip(doc.Get("name").Str()), UUID: clip(doc.Get("uuid").Str()), Type: clip(doc.Get("model_configuration").Get("classifier").Str())}
	m.Classes = classes(doc.Get("class_map"))
	if v, ok := doc.Get("model_configuration").Get("sample_rate").Float(); ok && v > 0 {
		m.SampleRate = v
	}
	for _, f := range doc.Get("feature_summary").List() {
		if len(m.Features) < maxSlots {
			m.Features = append(m.Features, Feature{Name: featureName(f.Get("Feature").Str()), Function: clip(f.Get("Generator").Str())})
		}
	}
	summary := doc.Get("knowledgepack_summary")
	m.Sensors = texts(summary.Get("sensor_columns"))
	if err := m.pipeline(summary.Get("recognition_pipeline").List()); err != nil {
		p.note("The pipeline is not read: %v.", err)
		m.fromFeatures()
	}
	p.Models = []Model{m}
}

// featureName drops the number of the generator before a feature's name: "gen_0001_", and the
// remains of a cascade's.
func featureName(s string) string {
	s = clip(s)
	for range 2 {
		t := strings.TrimPrefix(s, "_")
		if rest, ok := strings.CutPrefix(t, "gen_"); ok && len(rest) > 5 && rest[4] == '_' || ok && len(rest) > 6 && rest[0] == 'c' && rest[5] == '_' {
			if rest[0] == 'c' {
				s = rest[6:]
			} else {
				s = rest[5:]
			}
		}
	}
	return s
}

func classes(v *jsontree.Value) (out []Class) {
	for key, label := range v.Members() {
		n, err := strconv.Atoi(key)
		if err != nil || len(out) >= maxSlots || label.Kind == jsontree.Null {
			continue
		}
		out = append(out, Class{Number: n, Label: clip(label.Str())})
	}
	return out
}

func texts(v *jsontree.Value) (out []string) {
	for _, x := range v.List() {
		if len(out) < maxGenerators && x.Str() != "" {
			out = append(out, clip(x.Str()))
		}
	}
	return out
}

// clip bounds a text of a file, and makes it fit for a line.
func clip(s string) string {
	if len(s) > maxName {
		s = s[:maxName]
	}
	s = strings.ToValidUTF8(s, "\ufffd")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// Find returns the model with a number, nil where the pack has none.
func (p *Pack) Find(index int) *Model {
	if p == nil {
		return nil
	}
	for i := range p.Models {
		if p.Models[i].Index == index {
			return &p.Models[i]
		}
	}
	return nil
}

// Class is the label of a class number, "" for one that has none.
func (m *Model) Class(number int) string {
	if m == nil {
		return ""
	}
	for _, c := range m.Classes {
		if c.Number == number {
			return c.Label
		}
	}
	return ""
}

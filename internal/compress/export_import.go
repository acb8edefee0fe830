package compress

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/compress/sparsify"
	"github.com/opmeter/opmeter/study"
)

// Exports lists the export formats for other tools.
func Exports() []string {
	return []string{"sparsify-analysis", "sparsify-perf", "sparsify-loss", "recipe", "recipe-json", "nncf", "neural-compressor"}
}

// ExportOptions configure an export.
type ExportOptions struct {
	// Kind is one of [Exports].
	Kind string
	// Speed, Loss and Plan name the exported item, "" for the last one.
	Speed, Loss, Plan string
	// Structure selects the points of profiles, "" for unstructured sparsity.
	Structure study.Structure
	// Compat counts operations as Sparsify does, defects included.
	Compat bool
	// Epochs is the training length of a recipe, 0 for Sparsify's default. InitialRate and
	// FinalRate are learning rates, nil for none.
	Epochs                 int
	InitialRate, FinalRate *float64
}

// Export writes a part of a study in another tool's format. lost names what that format cannot
// represent.
func (j *Job) Export(o ExportOptions) (data []byte, lost []string, err error) {
	s := j.Study()
	sp, lo, err := j.profiles(o.Speed, o.Loss)
	if err != nil {
		return nil, nil, err
	}
	structure := cmp.Or(o.Structure, study.Unstructured)
	switch o.Kind {
	case "sparsify-analysis":
		data, err = sparsify.Analyse(j.m, j.dims, s.Layers, o.Compat).JSON()
	case "sparsify-perf":
		if sp == nil {
			return nil, nil, optionError("Speed", "the study has no performance profile")
		}
		p := sparsify.FromSpeed(sp, s.Layers, structure)
		if p == nil {
			return nil, nil, optionError("Speed", "the performance profile %q has no times", sp.Name)
		}
		data, err = p.JSON()
	case "sparsify-loss":
		if lo == nil {
			return nil, nil, optionError("Loss", "the study has no loss profile")
		}
		data, err = sparsify.FromLoss(lo, s.Layers, structure).JSON()
	case "recipe", "recipe-json", "nncf", "neural-compressor":
		return j.exportPlan(&o)
	default:
		return nil, nil, optionError("Kind", "no kind %q: use one of %v", o.Kind, Exports())
	}
	return data, nil, err
}

// exportPlan writes the formats that are made from a plan.
func (j *Job) exportPlan(o *ExportOptions) (data []byte, lost []string, err error) {
	p, err := j.plan(o.Plan)
	if err != nil {
		return nil, nil, err
	}
	layers := j.Study().Layers
	var kept []int
	for _, c := range p.Choices {
		if c.Change.IsZero() {
			kept = append(kept, c.Layer)
		}
	}
	switch o.Kind {
	case "nncf":
		data, err = sparsify.NNCF(layers, kept)
		return data, nil, err
	case "neural-compressor":
		return sparsify.NeuralCompressor(layers, kept), nil, nil
	}
	r, lost := sparsify.NewRecipe(p, layers, sparsify.Training{Epochs: o.Epochs, InitialRate: o.InitialRate, FinalRate: o.FinalRate})
	if o.Kind == "recipe-json" {
		data, err = r.JSON()
		return data, lost, err
	}
	return r.YAML(), lost, nil
}

// Imported describes the result of an import.
type Imported struct {
	// Kind is "speed", "loss", "plan" or "excluded". Name is the name in the study.
	Kind, Name string
	// Excluded are the layers of an exclusion list.
	Excluded []int
	// Unmatched are names that no layer has, and entries that were not understood.
	Unmatched []string
}

// Import reads a Sparsify profile or a recipe into the study, or reads a list of excluded layers.
// name is the name in the study, "" for a default.
func (j *Job) Import(data []byte, file, name string) (*Imported, error) {
	layers := j.Study().Layers
	text := bytes.TrimSpace(data)
	if bytes.HasPrefix(text, []byte("{")) {
		if p, err := j.parseChanges(data, file); p != nil || err != nil {
			if err != nil {
				return nil, err
			}
			p.Name, p.Created = cmp.Or(name, "own"), now()
			return &Imported{Kind: "plan", Name: p.Name}, j.File.Append(study.Record{Plan: p})
		}
		if p, err := sparsify.ParseProfile(data, file); err == nil {
			return j.importProfile(p, name)
		}
	}
	r, err := sparsify.ParseRecipe(data, file)
	if err == nil && len(r.Modifiers)+len(r.Ignored) > 0 {
		p, unmatched, err := r.Plan(layers)
		if err != nil {
			return nil, err
		}
		p.Name, p.Created = cmp.Or(name, "recipe"), now()
		return &Imported{Kind: "plan", Name: p.Name, Unmatched: append(unmatched, r.Ignored...)}, j.File.Append(study.Record{Plan: p})
	}
	x, err2 := sparsify.ParseExclusions(data, file)
	if err2 == nil {
		out := &Imported{Kind: "excluded"}
		out.Excluded, out.Unmatched = x.Match(layers)
		return out, nil
	}
	if bytes.HasPrefix(text, []byte("{")) {
		_, err = sparsify.ParseProfile(data, file)
	}
	err = cmp.Or(err, err2)
	if _, ok := errors.AsType[*sparsify.FileError](err); !ok {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return nil, err
}

// parseChanges reads a list of changes by layer as a plan, nil if the file is of another kind.
// Layers that it does not name stay unchanged.
func (j *Job) parseChanges(data []byte, file string) (*study.Plan, error) {
	var list struct {
		Changes []struct {
			Layer int `json:"layer"`
			study.Change
		} `json:"changes"`
	}
	if jsonx.Unmarshal(data, &list) != nil || list.Changes == nil {
		return nil, nil //nolint:nilerr // the other readers say what is wrong with it
	}
	layers := j.Study().Layers
	p := &study.Plan{Choices: make([]study.Choice, len(layers))}
	for i := range layers {
		p.Choices[i].Layer = i
	}
	for _, c := range list.Changes {
		fail := func(text string, args ...any) error {
			return &sparsify.FileError{File: file, Text: fmt.Sprintf("change of layer %d: "+text, append([]any{c.Layer}, args...)...)}
		}
		switch {
		case c.Layer < 0 || c.Layer >= len(layers):
			return nil, fail("the model has layers 0 to %d", len(layers)-1)
		case c.Structure != study.Dense && !slices.Contains(study.Structures(), c.Structure):
			return nil, fail("structure %q: use one of %v", c.Structure, study.Structures())
		case c.Format != study.OriginalFormat && !slices.Contains(study.Formats(), c.Format):
			return nil, fail("format %q: use one of %v", c.Format, study.Formats())
		}
		if err := c.Validate(); err != nil {
			return nil, fail("%s", err)
		}
		p.Choices[c.Layer].Change = c.Change
	}
	if sp, lo, err := j.profiles("", ""); err == nil {
		if sp != nil {
			p.Speed = sp.Name
		}
		if lo != nil {
			p.Loss = lo.Name
		}
	}
	return p, nil
}

// importProfile adds a Sparsify profile to the study.
func (j *Job) importProfile(p *sparsify.Profile, name string) (*Imported, error) {
	layers := j.Study().Layers
	if p.PruningEstimationType != "" {
		s, unmatched := sparsify.ToLoss(p, layers)
		s.Name, s.Created, s.Done = cmp.Or(name, "sparsify-loss"), now(), true
		return &Imported{Kind: "loss", Name: s.Name, Unmatched: unmatched}, j.File.Append(study.Record{Loss: s})
	}
	s, unmatched := sparsify.ToSpeed(p, layers)
	s.Name, s.Created, s.Done = cmp.Or(name, "sparsify-perf"), now(), true
	return &Imported{Kind: "speed", Name: s.Name, Unmatched: unmatched}, j.File.Append(study.Record{Speed: s})
}

package compress

import (
	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/study"
)

// ExportOptions configures [Job.Export].
type ExportOptions struct {
	// Kind is one of [ExportKinds].
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

// ExportKinds lists the kinds that [Job.Export] writes.
func ExportKinds() []string { return compress.Exports() }

// Export writes a part of the study in another tool's format. lost names what that format cannot
// represent.
func (c *Job) Export(o ExportOptions) (data []byte, lost []string, err error) {
	err = c.do(func() error { data, lost, err = c.j.Export(compress.ExportOptions(o)); return err })
	return data, lost, err
}

// Imported is the result of [Job.Import].
type Imported struct {
	// Kind is "speed", "loss", "plan" or "excluded". Name is the name in the study.
	Kind, Name string
	// Excluded are the layers of an exclusion list.
	Excluded []int
	// Unmatched are names that no layer has, and entries that were not understood.
	Unmatched []string
}

// Import reads a Sparsify profile or a SparseML recipe into the study, or reads a list of layers
// that other tools exclude. name is the name in the study, "" for a default. The error is a
// [DataError].
func (c *Job) Import(data []byte, file, name string) (*Imported, error) {
	var i *compress.Imported
	err := c.do(func() (err error) { i, err = c.j.Import(data, file, name); return err })
	return (*Imported)(i), err
}

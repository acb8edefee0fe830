// Package gate decides whether a change makes a model worse. It compares figures of two versions by
// the rules of a policy, keeps baselines in the repository, and chooses through git which run is
// the base.
//
// Exact figures (counts, sizes, instructions of an emulator, estimates) decide by themselves. Times
// are measured by package ab. The package runs no model: the caller does, and passes profiles.
// docs/ci.md describes the files and the rules.
package gate

import (
	"github.com/opmeter/opmeter/profile"
)

// SchemaV1 is the value of [Result.Schema].
const SchemaV1 = "opmeter/gate/v1"

// Verdict is the answer about a figure, a job or a whole run.
type Verdict string

// Verdicts.
const (
	Better    Verdict = "better"    // changed in the right direction
	Equal     Verdict = "equal"     // did not change
	Within    Verdict = "within"    // worse by no more than is allowed
	Worse     Verdict = "worse"     // worse by more than is allowed
	Undecided Verdict = "undecided" // the samples or the baseline do not say
	New       Verdict = "new"       // the base has no such model or figure
)

// worst returns the verdict of several together. Better, Equal, Within and New are not worse: they
// become Equal if nothing else occurs.
func worst(list []Verdict) Verdict {
	out := Equal
	for _, v := range list {
		switch {
		case v == Worse:
			return Worse
		case v == Undecided:
			out = Undecided
		}
	}
	return out
}

// Result is the answer of one run over models and targets.
type Result struct {
	Schema  string `json:"schema"`
	Version string `json:"version"`
	Created string `json:"created"`
	// Verdict is worse, undecided, or equal for not worse.
	Verdict Verdict `json:"verdict"`
	// Commit is that of the working tree, Dirty says that it has changes.
	Commit string `json:"commit,omitzero"`
	Dirty  bool   `json:"dirty,omitzero"`
	// Base is the version that the figures are compared with.
	Base Base `json:"base"`
	// Policy is the file with the rules, PolicySHA256 the hash of its content, or of the built-in
	// rules.
	Policy       string `json:"policy"`
	PolicySHA256 string `json:"policy_sha256"`
	// Tests is the number of measured comparisons that the confidence level is corrected for.
	Tests int   `json:"tests,omitzero"`
	Jobs  []Job `json:"jobs"`
	// Notes says what the reader should know: damaged lines, ignored figures that expired.
	Notes []string `json:"notes,omitzero"`
}

// Job is one model on one target.
type Job struct {
	Model  string `json:"model"`
	Target string `json:"target"`
	// Machine and Settings are parts of the place of its baseline.
	Machine  string `json:"machine"`
	Settings string `json:"settings"`
	// SHA256 and BaseSHA256 are the hashes of the two model files.
	SHA256     string `json:"sha256,omitzero"`
	BaseSHA256 string `json:"base_sha256,omitzero"`
	// OutputsSHA256 is the hash of the outputs of the new version for random inputs of seed 0: equal
	// on every machine for models that compute in integers.
	OutputsSHA256 string `json:"outputs_sha256,omitzero"`
	// From says where the figures of the base come from.
	From    string  `json:"from,omitzero"`
	Verdict Verdict `json:"verdict"`
	Figures []Row   `json:"figures"`
	// Layers lists the layers that differ, by the figure that the target is judged by.
	Layers []LayerChange `json:"layers,omitzero"`
	Notes  []string      `json:"notes,omitzero"`
	// Removed says that the base has the model and this version lacks it, which is worse.
	Removed bool `json:"removed,omitzero"`
	// Error is why the model could not be judged.
	Error string `json:"error,omitzero"`
}

// Row is one figure of a job.
type Row struct {
	Figure string `json:"figure"`
	Name   string `json:"name"`
	Unit   string `json:"unit,omitzero"`
	// Kind says whether the figure was counted, measured or estimated.
	Kind profile.Kind `json:"kind"`
	// Base and New are absent if unknown.
	Base *float64 `json:"base,omitzero"`
	New  *float64 `json:"new,omitzero"`
	// Allowed is the largest change in the wrong direction that the rule allows, in the unit.
	Allowed float64 `json:"allowed"`
	// Better is the direction of the rule: lower, higher or same.
	Better   string  `json:"better"`
	Required bool    `json:"required"`
	Verdict  Verdict `json:"verdict"`
	// Ratio, Low and High are those of a measured figure, New divided by Base, with its interval.
	Ratio *float64 `json:"ratio,omitzero"`
	Low   *float64 `json:"low,omitzero"`
	High  *float64 `json:"high,omitzero"`
	// Hidden is the largest relative change for the worse that an undecided measurement allows.
	Hidden *float64 `json:"hidden,omitzero"`
	// Detectable is the smallest relative change that the measurement shows in 95 of 100 runs.
	Detectable *float64 `json:"detectable,omitzero"`
	// Ignored is the acknowledgement that keeps the figure from counting.
	Ignored *Ignore `json:"ignored,omitzero"`
	// Why says why the figure is undecided.
	Why string `json:"why,omitzero"`
}

// LayerChange is a layer, or several that do the same work, whose figure differs.
type LayerChange struct {
	Name   string `json:"name"`
	Op     string `json:"op"`
	Figure string `json:"figure"`
	// Kind is how the layers of both versions correspond: see package align.
	Kind string   `json:"kind"`
	Base *float64 `json:"base,omitzero"`
	New  *float64 `json:"new,omitzero"`
	// Certain is false if another pair is possible.
	Certain bool `json:"certain"`
}

// counts reports whether a row takes part in the verdict of its job.
func (r *Row) counts() bool { return r.Required && r.Ignored == nil }

// Decide sets the verdicts of the jobs and of the whole from those of their rows.
func (r *Result) Decide() {
	var all []Verdict
	for i := range r.Jobs {
		j := &r.Jobs[i]
		var list []Verdict
		for k := range j.Figures {
			if j.Figures[k].counts() {
				list = append(list, j.Figures[k].Verdict)
			}
		}
		if j.Removed {
			list = append(list, Worse)
		}
		if j.Error != "" {
			list = append(list, Undecided)
		}
		j.Verdict = worst(list)
		all = append(all, j.Verdict)
	}
	r.Verdict = worst(all)
}

package study

import (
	"time"

	"github.com/opmeter/opmeter/profile"
)

// Study is all that is known of a model.
type Study struct {
	// Created is when the study was begun.
	Created time.Time `json:"created"`
	// Model is what it is of.
	Model profile.Model `json:"model"`
	// Layers are the weights that the model has, in the order of its operators.
	Layers  []Layer  `json:"layers"`
	Speeds  []*Speed `json:"speeds,omitzero"`
	Losses  []*Loss  `json:"losses,omitzero"`
	Plans   []*Plan  `json:"plans,omitzero"`
	Benches []*Bench `json:"benches,omitzero"`
}

// SpeedSettings say how times were taken.
type SpeedSettings struct {
	// Name tells it from others of the study.
	Name string `json:"name"`
	// Target is "host", or the id of a target whose times are estimates.
	Target string `json:"target"`
	// Batch is the size of the batch, 0 for that of the file.
	Batch   int `json:"batch,omitzero"`
	Threads int `json:"threads,omitzero"`
	// Shapes are those of the inputs, such as "x 1x3x224x224, mask 1x5"; "" where they are not known.
	Shapes string `json:"shapes,omitzero"`
	// KernelSet is the set of instructions of the engine.
	KernelSet string `json:"kernel_set,omitzero"`
	// Changes are those that were tried on all layers.
	Changes []Change `json:"changes"`
	// Counted says that nothing was measured: operations stand for times.
	Counted bool `json:"counted,omitzero"`
}

// Speed tells what each layer's time would be with each change: a performance profile.
type Speed struct {
	SpeedSettings
	Created time.Time `json:"created"`
	// Latency is the time of an inference of the unchanged model.
	Latency *profile.Metric `json:"latency_s,omitzero"`
	// Energy is that of an inference of the unchanged model in joules, of targets that tell it.
	Energy *profile.Metric `json:"energy_j,omitzero"`
	// Layers are the times of the unchanged model's layers, by position in [Study.Layers];
	// what stands in no layer is left out.
	Layers []LayerTime `json:"layers,omitzero"`
	// Points are what was measured of the changed layers.
	Points []SpeedPoint `json:"points,omitzero"`
	// Mixed are models whose layers have different changes: they tell how well the times of layers add up to that of a model.
	Mixed []Mixed `json:"mixed,omitzero"`
	// Done says that every change was measured.
	Done bool `json:"done,omitzero"`
}

// Timed reports whether times were measured on this computer, rather than estimated of a target or counted. s may be nil.
func (s *Speed) Timed() bool { return s != nil && s.Target == "host" && !s.Counted }

// Mixed is a model whose layers have different changes.
type Mixed struct {
	// Changes are by layer.
	Changes []Change `json:"changes"`
	// Ratio is the time of the whole model by that of the unchanged one, both of the same turns; nil where it does not run.
	Ratio *profile.Metric `json:"ratio,omitzero"`
}

// LayerTime is the time of an unchanged layer.
type LayerTime struct {
	Layer   int             `json:"layer"`
	Latency *profile.Metric `json:"latency_s,omitzero"`
	// Energy is in joules.
	Energy *profile.Metric `json:"energy_j,omitzero"`
	// MACs and Ops are set where operations stand for times.
	Ops *int64 `json:"ops,omitzero"`
	// Kernel names the loops that computed it, Fused the operators whose time it holds besides
	// its own, by position.
	Kernel string `json:"kernel,omitzero"`
	Fused  []int  `json:"fused,omitzero"`
	// Limit says what bounds it: "compute", "memory", "overhead", "" if that is not known.
	Limit string `json:"limit,omitzero"`
}

// SpeedPoint is the time of a layer with a change.
type SpeedPoint struct {
	Layer  int    `json:"layer"`
	Change Change `json:"change"`
	// Latency is the time with the change, nil where it could not be found.
	Latency *profile.Metric `json:"latency_s,omitzero"`
	// Ratio is that time by the unchanged one, both of the same turns, with its 95 %
	// interval, or for estimates the band.
	Ratio *profile.Metric `json:"ratio,omitzero"`
	// Energy is that with the change in joules.
	Energy *profile.Metric `json:"energy_j,omitzero"`
	// Others are the layers that become smaller with this one, such as those that read what a filter makes: a plan multiplies
	// their times by the ratios. RestS is what operators without weights take more (less where below 0), in seconds.
	Others []OtherTime     `json:"others,omitzero"`
	RestS  *profile.Metric `json:"rest_s,omitzero"`
	// RestJ is the same in joules.
	RestJ *profile.Metric `json:"rest_j,omitzero"`
	// With are layers that must have the same change for this one to be made: channels that are added up go together. Others and
	// RestS stand with the first of them.
	With   []int  `json:"with,omitzero"`
	Kernel string `json:"kernel,omitzero"`
	// Cause says why there is no gain or no figure.
	Cause Cause `json:"cause,omitzero"`
}

// OtherTime is what the change of one layer makes of the time of another one.
type OtherTime struct {
	Layer int `json:"layer"`
	// Ratio is the time with the change by that without.
	Ratio *profile.Metric `json:"ratio"`
	// Energy is that with the change in joules.
	Energy *profile.Metric `json:"energy_j,omitzero"`
}

// Method is how a loss was found.
type Method string

// Methods.
const (
	// Approximated follows from the sizes of inputs, outputs and weights, without looking at weights.
	Approximated Method = "approximated"
	// Magnitude is the mean magnitude of the slice of weights that a level takes beyond the level before.
	Magnitude Method = "magnitude"
	// OutputError is the relative squared error of the layer's own output on data.
	OutputError Method = "output"
	// Calibrated is what the model's outputs lose by the error of the layer's own output, as a few changes of the layer say that were run end to end on
	// a few samples.
	Calibrated Method = "calibrated"
	// EndToEnd compares outputs of the model on data, with one layer changed.
	EndToEnd Method = "end_to_end"
	// OneShot is the divergence of shifted and normalised outputs.
	OneShot Method = "one_shot"
)

// Methods lists all of them, cheapest first.
func Methods() []Method {
	return []Method{Approximated, Magnitude, OutputError, Calibrated, EndToEnd, OneShot}
}

// LossSettings say how losses were found.
type LossSettings struct {
	Name   string `json:"name"`
	Method Method `json:"method"`
	// Metric names what a value is: "relative_error", "snr_db", "cosine", "kl", "top1",
	// "accuracy", "command", "magnitude", "sensitivity".
	Metric string `json:"metric"`
	// Higher says that more is better, as of accuracy; a loss is then the value less.
	Higher bool `json:"higher,omitzero"`
	// Data says where samples came from, "" for none or made ones; Samples how many were used.
	Data    string `json:"data,omitzero"`
	Samples int    `json:"samples,omitzero"`
	// DataSHA256 is the hash of the samples and labels as the model takes them, those held out included; "" for made ones and in
	// studies of older versions.
	DataSHA256 string `json:"data_sha256,omitzero"`
	// Random says that inputs were made: ranks at best can be read off.
	Random bool `json:"random,omitzero"`
	// Labels is the file of labels, with the column where one was named; Mean and Std make numbers of images.
	Labels string    `json:"labels,omitzero"`
	Mean   []float32 `json:"mean,omitzero"`
	Std    []float32 `json:"std,omitzero"`
	// Seed is that of random inputs, of which samples were drawn, and of intervals; Shapes are those of inputs: see [SpeedSettings].
	Seed   uint64 `json:"seed,omitzero"`
	Shapes string `json:"shapes,omitzero"`
	// Choice is what decided which weights go: "magnitude" or "error".
	Choice  string   `json:"choice,omitzero"`
	Changes []Change `json:"changes"`
}

// Loss tells what each layer's change does to outputs: a loss profile.
type Loss struct {
	LossSettings
	Created time.Time `json:"created"`
	// Base is the metric of the unchanged model, nil where it has none.
	Base *profile.Metric `json:"base,omitzero"`
	// Points are by layer and change.
	Points []LossPoint `json:"points,omitzero"`
	// Energies are by what weights go where they are chosen by error on the data. Layers that have none, and all of other choices,
	// have theirs chosen by magnitude.
	Energies []Energy `json:"energies,omitzero"`
	// Anchors are the changes that were run end to end for [Calibrated], by layer.
	Anchors []LossPoint `json:"anchors,omitzero"`
	Done    bool        `json:"done,omitzero"`
}

// Energy is that of what a layer reads: the mean of the squares of each column of each group, group by group. The least squares of
// weights times these go first.
type Energy struct {
	Layer int       `json:"layer"`
	Means []float32 `json:"means"`
}

// Energy finds that of a layer, nil where there is none.
func (l *Loss) Energy(layer int) []float32 {
	for i := range l.Energies {
		if l.Energies[i].Layer == layer {
			return l.Energies[i].Means
		}
	}
	return nil
}

// LossPoint is the loss of one layer with one change.
type LossPoint struct {
	Layer  int    `json:"layer"`
	Change Change `json:"change"`
	// Value is the metric with the change and its 95 % interval over the samples, where
	// there are some; nil where it could not be found.
	Value *profile.Metric `json:"value,omitzero"`
	// More holds further metrics of the same run by name.
	More map[string]float64 `json:"more,omitzero"`
	// With are layers that only lose channels or filters together with this one, and have the change, too: the loss is that of all, and each
	// of their points has it.
	With  []int `json:"with,omitzero"`
	Cause Cause `json:"cause,omitzero"`
}

// Goal is what a plan is for: one of the first five fields is set.
type Goal struct {
	// Speedup asks for a model so many times as fast, at the least loss.
	Speedup *float64 `json:"speedup,omitzero"`
	// MaxLoss bounds the loss, in the metric of the loss profile (of accuracy: how much is lost).
	MaxLoss *float64 `json:"max_loss,omitzero"`
	// Sparsity asks for a share of zero weights, at the least loss.
	Sparsity *float64 `json:"sparsity,omitzero"`
	// Size bounds the bytes of the weights.
	Size *int64 `json:"size,omitzero"`
	// Fit is a target whose memory the model has to fit into.
	Fit string `json:"fit,omitzero"`
	// Cost is what is made small: "time", "energy", "ram", "flash", "macs", "size".
	Cost string `json:"cost,omitzero"`
	// Exclude are layers, by position, that stay as they are.
	Exclude []int `json:"exclude,omitzero"`
	// WithoutStructures and WithoutFormats are changes that no layer has. Ends lets the first layer and those that make outputs change.
	WithoutStructures []Structure `json:"without_structures,omitzero"`
	WithoutFormats    []Format    `json:"without_formats,omitzero"`
	Ends              bool        `json:"ends,omitzero"`
}

// Plan is a change for every layer.
type Plan struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Goal    Goal      `json:"goal"`
	// Speed and Loss name the profiles that it was made from.
	Speed string `json:"speed"`
	Loss  string `json:"loss"`
	// Compat is "sparsify" for plans of its rules, else "".
	Compat string `json:"compat,omitzero"`
	// Choices are by layer.
	Choices []Choice `json:"choices"`
	// Predicted is what follows from the profiles, Measured what the changed model did; nil
	// where it was not run.
	Predicted Outcome  `json:"predicted"`
	Measured  *Outcome `json:"measured,omitzero"`
	// Bound is the least cost that any plan for the goal could have, by the profiles, or for a goal that
	// bounds the cost the least loss; Gap how far this one is above it, as a share.
	Bound *float64 `json:"bound,omitzero"`
	Gap   *float64 `json:"gap,omitzero"`
	// Front are the plans for other goals: cost against loss, in order of cost.
	Front []FrontPoint `json:"front,omitzero"`
	// Adds says how losses of layers add up to that of the plan: a word of package choose.
	Adds string `json:"adds,omitzero"`
	// Ranges are where values reach from and to on the data, by name, where layers get activations of 8 bits.
	Ranges map[string][2]float32 `json:"ranges,omitzero"`
	// Moves are the next steps of layers, the one that gains most for its loss first.
	Moves []Move `json:"moves,omitzero"`
}

// Choice is what a plan does to a layer.
type Choice struct {
	Layer  int    `json:"layer"`
	Change Change `json:"change"`
	// TimeS is the predicted time of the layer, LossValue its share of the predicted loss.
	TimeS     *float64 `json:"time_s,omitzero"`
	LossValue *float64 `json:"loss,omitzero"`
	// Cause says why the layer stays as it is.
	Cause Cause `json:"cause,omitzero"`
}

// Outcome is what a changed model is like.
type Outcome struct {
	LatencyS *profile.Metric `json:"latency_s,omitzero"`
	Speedup  *profile.Metric `json:"speedup,omitzero"`
	Loss     *profile.Metric `json:"loss,omitzero"`
	Params   *int64          `json:"params,omitzero"`
	Zeros    *int64          `json:"zeros,omitzero"`
	Bytes    *int64          `json:"weight_bytes,omitzero"`
	MACs     *int64          `json:"macs,omitzero"`
	// Energy is that of an inference in joules.
	Energy *profile.Metric `json:"energy_j,omitzero"`
	// RAM and Flash are what the model takes of a target's memory, and of this computer's: what is alive at one time.
	RAM   *Room `json:"ram,omitzero"`
	Flash *Room `json:"flash,omitzero"`
}

// Room is what is taken of a memory.
type Room struct {
	Bytes int64 `json:"bytes"`
	// Limit is what there is, nil where that is not known.
	Limit *int64 `json:"limit,omitzero"`
	// Least says that a runtime takes more besides, nobody knows how much.
	Least bool `json:"least,omitzero"`
}

// FrontPoint is a plan of the Pareto front.
type FrontPoint struct {
	// Cost is of the whole model, in the unit of the goal.
	Cost float64 `json:"cost"`
	// Loss is what adds up over layers: how much accuracy is lost, the error, the noise's power
	// by the signal's where the metric is a ratio in decibels.
	Loss    float64  `json:"loss"`
	Changes []Change `json:"changes"` // by layer
	// Chosen marks the point that the plan takes.
	Chosen bool `json:"chosen,omitzero"`
}

// Bench compares models in turns.
type Bench struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// SHA256 is the hash of the compressed model's file. Points of another file do not belong to it.
	SHA256 string       `json:"sha256,omitzero"`
	Points []BenchPoint `json:"points,omitzero"`
}

// BenchPoint is one engine at one number of threads and size of batch.
type BenchPoint struct {
	Engine  string `json:"engine"`
	Threads int    `json:"threads"`
	Batch   int    `json:"batch,omitzero"`
	// Before and After are times of an inference of the unchanged and of the changed model,
	// Speedup the first by the second, of the same turns.
	Before  *profile.Metric `json:"before_s,omitzero"`
	After   *profile.Metric `json:"after_s,omitzero"`
	Speedup *profile.Metric `json:"speedup,omitzero"`
	// Cause says why there is no gain, Error why there is no figure.
	Cause Cause  `json:"cause,omitzero"`
	Error string `json:"error,omitzero"`
}

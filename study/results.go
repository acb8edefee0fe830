package study

import (
	"slices"
	"time"

	"github.com/opmeter/opmeter/profile"
)

// Study is everything known about compressing a model.
type Study struct {
	// Created is when the study was created.
	Created time.Time `json:"created"`
	// Model identifies the model.
	Model profile.Model `json:"model"`
	// Layers are the weights of the model, in the order of its operators.
	Layers  []Layer  `json:"layers"`
	Speeds  []*Speed `json:"speeds,omitzero"`
	Losses  []*Loss  `json:"losses,omitzero"`
	Plans   []*Plan  `json:"plans,omitzero"`
	Benches []*Bench `json:"benches,omitzero"`
}

// SpeedSettings describe how times were measured.
type SpeedSettings struct {
	// Name identifies the profile within the study.
	Name string `json:"name"`
	// Target is "host", or the id of a target whose times are estimates.
	Target string `json:"target"`
	// Engine is the engine with its version, such as "onnxruntime 1.20.1"; "" for opmeter's own.
	Engine string `json:"engine,omitzero"`
	// Batch is the batch size, 0 for that of the file.
	Batch   int `json:"batch,omitzero"`
	Threads int `json:"threads,omitzero"`
	// Shapes are the input shapes, such as "x 1x3x224x224, mask 1x5"; "" where unknown.
	Shapes string `json:"shapes,omitzero"`
	// KernelSet is the instruction set used by the engine's kernels.
	KernelSet string `json:"kernel_set,omitzero"`
	// Changes are the changes that were tried on all layers.
	Changes []Change `json:"changes"`
	// Counted says that nothing was measured: operation counts replace times.
	Counted bool `json:"counted,omitzero"`
}

// Speed is a performance profile: the time of each layer with each change.
type Speed struct {
	SpeedSettings
	Created time.Time `json:"created"`
	// Latency is the inference time of the unchanged model.
	Latency *profile.Metric `json:"latency_s,omitzero"`
	// Energy is the energy per inference of the unchanged model in joules, for targets with
	// energy figures.
	Energy *profile.Metric `json:"energy_j,omitzero"`
	// Layers are the times of the unchanged model's layers, by position in [Study.Layers].
	// Operators outside of layers are left out.
	Layers []LayerTime `json:"layers,omitzero"`
	// Points are the measurements of changed layers.
	Points []SpeedPoint `json:"points,omitzero"`
	// Mixed are models whose layers have different changes. They show how well layer times add up
	// to the time of a model.
	Mixed []MixedModel `json:"mixed,omitzero"`
	// Done says that every change was measured.
	Done bool `json:"done,omitzero"`
}

// Timed reports whether times were measured on this computer, rather than estimated for a target
// or counted. s may be nil.
func (s *Speed) Timed() bool { return s != nil && s.Target == "host" && !s.Counted }

// MixedModel is the measurement of a model whose layers have different changes.
type MixedModel struct {
	// Changes are by layer.
	Changes []Change `json:"changes"`
	// Ratio is the time of the whole model divided by that of the unchanged one, measured
	// interleaved; nil where it does not run.
	Ratio *profile.Metric `json:"ratio,omitzero"`
}

// LayerTime is the time of an unchanged layer.
type LayerTime struct {
	Layer   int             `json:"layer"`
	Latency *profile.Metric `json:"latency_s,omitzero"`
	// Energy is in joules.
	Energy *profile.Metric `json:"energy_j,omitzero"`
	// Ops is set where operation counts replace times.
	Ops *int64 `json:"ops,omitzero"`
	// Kernel names the kernel that computed the layer. Fused are the positions of further
	// operators whose time is included.
	Kernel string `json:"kernel,omitzero"`
	Fused  []int  `json:"fused,omitzero"`
	// Limit is the bottleneck: "compute", "memory", "overhead", "" if unknown.
	Limit string `json:"limit,omitzero"`
}

// SpeedPoint is the time of a layer with a change.
type SpeedPoint struct {
	Layer  int    `json:"layer"`
	Change Change `json:"change"`
	// Latency is the time with the change, nil where unknown.
	Latency *profile.Metric `json:"latency_s,omitzero"`
	// Ratio is that time divided by the unchanged one, measured interleaved, with its 95 %
	// interval; for estimates with the prediction band.
	Ratio *profile.Metric `json:"ratio,omitzero"`
	// Energy is the energy with the change in joules.
	Energy *profile.Metric `json:"energy_j,omitzero"`
	// Affected are the layers that become smaller with this one, such as readers of a removed
	// filter: a plan multiplies their times by the ratios. RestS is the additional time of
	// operators without weights in seconds, negative where they take less.
	Affected []AffectedLayer `json:"others,omitzero"`
	RestS    *profile.Metric `json:"rest_s,omitzero"`
	// RestJ is the same in joules.
	RestJ *profile.Metric `json:"rest_j,omitzero"`
	// With are layers that must have the same change: channels that are added up are pruned
	// together. Affected and RestS are stored at the first of these layers.
	With   []int  `json:"with,omitzero"`
	Kernel string `json:"kernel,omitzero"`
	// Cause says why a gain or a figure is missing.
	Cause Cause `json:"cause,omitzero"`
}

// AffectedLayer is the effect of a change of one layer on the time of another.
type AffectedLayer struct {
	Layer int `json:"layer"`
	// Ratio is the time with the change divided by the time without.
	Ratio *profile.Metric `json:"ratio"`
	// Energy is the energy with the change in joules.
	Energy *profile.Metric `json:"energy_j,omitzero"`
}

// Method is how a loss was determined.
type Method string

// Methods.
const (
	// Approximated uses only the sizes of inputs, outputs and weights, not the weights
	// themselves.
	Approximated Method = "approximated"
	// Magnitude is the mean magnitude of the weights that a level prunes beyond the previous
	// level.
	Magnitude Method = "magnitude"
	// OutputError is the relative squared error of the layer's own output on data.
	OutputError Method = "output"
	// Calibrated predicts the loss of model outputs from the error of the layer's output. It is
	// fitted to a few changes of the layer that were run end to end on a few samples.
	Calibrated Method = "calibrated"
	// EndToEnd compares outputs of the model on data, with one layer changed.
	EndToEnd Method = "end_to_end"
	// OneShot is the divergence of shifted and normalised outputs.
	OneShot Method = "one_shot"
)

// Methods lists all methods, cheapest first.
func Methods() []Method {
	return []Method{Approximated, Magnitude, OutputError, Calibrated, EndToEnd, OneShot}
}

// LossSettings describe how losses were determined.
type LossSettings struct {
	Name   string `json:"name"`
	Method Method `json:"method"`
	// Metric names the values: "relative_error", "snr_db", "cosine", "kl", "top1", "accuracy",
	// "command", "magnitude", "sensitivity".
	Metric string `json:"metric"`
	// Higher says that higher is better, as for accuracy; the loss is then the decrease of the
	// value.
	Higher bool `json:"higher,omitzero"`
	// Data is the source of the samples, "" for none or generated ones. Samples is how many were
	// used.
	Data    string `json:"data,omitzero"`
	Samples int    `json:"samples,omitzero"`
	// Tried is the number of samples on which plans are chosen, and HeldOut that of further ones,
	// on which only the chosen plan is run; 0 for none. Available is the number of samples that
	// the data has, 0 where unknown.
	Tried     int `json:"tried,omitzero"`
	HeldOut   int `json:"held_out,omitzero"`
	Available int `json:"available,omitzero"`
	// DataSHA256 is the hash of samples and labels as the model reads them, held-out samples
	// included; "" for generated samples and in studies of older versions.
	DataSHA256 string `json:"data_sha256,omitzero"`
	// Random says that inputs were generated: values are good for ranking at best.
	Random bool `json:"random,omitzero"`
	// Labels is the file of labels, with the column if one was named. Mean and Std normalise
	// images.
	Labels string    `json:"labels,omitzero"`
	Mean   []float32 `json:"mean,omitzero"`
	Std    []float32 `json:"std,omitzero"`
	// Seed is the seed of random inputs, sampling and intervals. Shapes are the input shapes: see
	// [SpeedSettings].
	Seed   uint64 `json:"seed,omitzero"`
	Shapes string `json:"shapes,omitzero"`
	// Choice is the pruning criterion: "magnitude" or "error".
	Choice  string   `json:"choice,omitzero"`
	Changes []Change `json:"changes"`
}

// Loss is a loss profile: the effect of each layer's change on the outputs.
type Loss struct {
	LossSettings
	Created time.Time `json:"created"`
	// Base is the metric of the unchanged model, nil where it has none.
	Base *profile.Metric `json:"base,omitzero"`
	// Points are by layer and change.
	Points []LossPoint `json:"points,omitzero"`
	// InputEnergies are the basis of pruning by error on the data. Layers without one, and
	// profiles with another choice, prune by magnitude.
	InputEnergies []InputEnergy `json:"energies,omitzero"`
	// Anchors are the changes that were run end to end for [Calibrated], by layer.
	Anchors []LossPoint `json:"anchors,omitzero"`
	Done    bool        `json:"done,omitzero"`
}

// Share reports whether losses are shares of 1, such as a drop of accuracy.
func (l *Loss) Share() bool { return slices.Contains([]string{"accuracy", "top1"}, l.Metric) }

// InputEnergy has the mean square of each input column of a layer, group by group. Weights with
// the least product of squared weight and mean are pruned first.
type InputEnergy struct {
	Layer int       `json:"layer"`
	Means []float32 `json:"means"`
}

// InputEnergyOf returns the mean squares of a layer's inputs, or nil.
func (l *Loss) InputEnergyOf(layer int) []float32 {
	for i := range l.InputEnergies {
		if l.InputEnergies[i].Layer == layer {
			return l.InputEnergies[i].Means
		}
	}
	return nil
}

// LossPoint is the loss of one layer with one change.
type LossPoint struct {
	Layer  int    `json:"layer"`
	Change Change `json:"change"`
	// Value is the metric with the change, with its 95 % interval over the samples where
	// available; nil where unknown.
	Value *profile.Metric `json:"value,omitzero"`
	// More holds further metrics of the same run by name.
	More map[string]float64 `json:"more,omitzero"`
	// With are layers that lose channels or filters only together with this one and have the
	// change as well. The loss is that of all of them, and each of their points has it.
	With  []int `json:"with,omitzero"`
	Cause Cause `json:"cause,omitzero"`
}

// DefaultSpeedup is the speed-up that plans ask for where losses are only ranks and no goal is
// given.
const DefaultSpeedup = 1.5

// Goal is what a plan should reach: one of the first five fields is set.
type Goal struct {
	// Speedup asks for this speed-up at the least loss.
	Speedup *float64 `json:"speedup,omitzero"`
	// MaxLoss bounds the loss, in the metric of the loss profile (for accuracy: the drop).
	MaxLoss *float64 `json:"max_loss,omitzero"`
	// Sparsity asks for a share of zero weights at the least loss.
	Sparsity *float64 `json:"sparsity,omitzero"`
	// Size bounds the bytes of the weights.
	Size *int64 `json:"size,omitzero"`
	// Fit is a target whose memory the model has to fit into.
	Fit string `json:"fit,omitzero"`
	// Cost is the quantity to minimise: "time", "energy", "ram", "flash", "macs", "size".
	Cost string `json:"cost,omitzero"`
	// Default says that no goal was given. Speedup is then 1.5, or what can be reached.
	Default bool `json:"default,omitzero"`
	// Exclude are the positions of layers that stay unchanged.
	Exclude []int `json:"exclude,omitzero"`
	// WithoutStructures and WithoutFormats are excluded changes. Ends allows changes of the first
	// layer and of layers that produce model outputs.
	WithoutStructures []Structure `json:"without_structures,omitzero"`
	WithoutFormats    []Format    `json:"without_formats,omitzero"`
	Ends              bool        `json:"ends,omitzero"`
}

// Plan is a choice of a change for every layer.
type Plan struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Goal    Goal      `json:"goal"`
	// Speed and Loss name the profiles that it was made from.
	Speed string `json:"speed"`
	Loss  string `json:"loss"`
	// Compat is "sparsify" for plans by Sparsify's rules, else "".
	Compat string `json:"compat,omitzero"`
	// Choices are by layer.
	Choices []Choice `json:"choices"`
	// Predicted follows from the profiles. Measured is the result of the changed model; nil where
	// it was not run.
	Predicted Outcome  `json:"predicted"`
	Measured  *Outcome `json:"measured,omitzero"`
	// Bound is the least cost that any plan for the goal could have, by the profiles; for a goal
	// that bounds the cost, the least loss. Gap is the relative distance of this plan to the
	// bound.
	Bound *float64 `json:"bound,omitzero"`
	Gap   *float64 `json:"gap,omitzero"`
	// Front is the Pareto front of cost against loss, in order of cost.
	Front []FrontPoint `json:"front,omitzero"`
	// Adds says how losses of layers add up to the loss of the plan: a constant of package
	// choose.
	Adds string `json:"adds,omitzero"`
	// Ranges are the minimum and maximum of activations on the data, by name, for int8 layers.
	Ranges map[string][2]float32 `json:"ranges,omitzero"`
	// NextSteps are further changes, in order of falling gain per loss.
	NextSteps []NextStep `json:"moves,omitzero"`
	// Correction is what the result of an earlier plan taught: the predictions are corrected by it.
	Correction Correction `json:"correction,omitzero"`
}

// Correction scales curves by the result of a plan that was run. The zero value changes nothing.
type Correction struct {
	// Gain multiplies the saved time of changes, Loss their losses; 0 stands for 1.
	Gain float64 `json:"gain,omitzero"`
	Loss float64 `json:"loss,omitzero"`
	// Extra is an additional loss of each changed layer: its share of a loss where none was
	// predicted.
	Extra float64 `json:"extra,omitzero"`
}

// Choice is what a plan does to a layer.
type Choice struct {
	Layer  int    `json:"layer"`
	Change Change `json:"change"`
	// TimeS is the predicted time of the layer. LossValue is its share of the predicted loss.
	TimeS     *float64 `json:"time_s,omitzero"`
	LossValue *float64 `json:"loss,omitzero"`
	// Cause says why the layer stays unchanged.
	Cause Cause `json:"cause,omitzero"`
}

// Outcome has the figures of a changed model.
type Outcome struct {
	LatencyS *profile.Metric `json:"latency_s,omitzero"`
	Speedup  *profile.Metric `json:"speedup,omitzero"`
	Loss     *profile.Metric `json:"loss,omitzero"`
	Params   *int64          `json:"params,omitzero"`
	Zeros    *int64          `json:"zeros,omitzero"`
	Bytes    *int64          `json:"weight_bytes,omitzero"`
	MACs     *int64          `json:"macs,omitzero"`
	// Energy is the energy per inference in joules.
	Energy *profile.Metric `json:"energy_j,omitzero"`
	// RAM and Flash are the memory use of the model on a target. On this computer RAM is the peak
	// activation memory.
	RAM   *MemoryUse `json:"ram,omitzero"`
	Flash *MemoryUse `json:"flash,omitzero"`
}

// MemoryUse is the use of a memory.
type MemoryUse struct {
	Bytes int64 `json:"bytes"`
	// Limit is the size of the memory, nil where unknown.
	Limit *int64 `json:"limit,omitzero"`
	// AtLeast says that a runtime needs an unknown amount in addition.
	AtLeast bool `json:"least,omitzero"`
	// Unchanged is the use by the unchanged model, nil where unknown.
	Unchanged *int64 `json:"unchanged,omitzero"`
}

// FrontPoint is a plan of the Pareto front.
type FrontPoint struct {
	// Cost is of the whole model, in the unit of the goal.
	Cost float64 `json:"cost"`
	// Loss is the additive loss: the drop of accuracy, the error, or the ratio of noise power to
	// signal power for a metric in decibels.
	Loss    float64  `json:"loss"`
	Changes []Change `json:"changes"` // by layer
	// Chosen marks the point of this plan.
	Chosen bool `json:"chosen,omitzero"`
}

// Bench compares models interleaved.
type Bench struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// SHA256 is the hash of the compressed model's file. Points of another file do not belong to
	// it.
	SHA256 string       `json:"sha256,omitzero"`
	Points []BenchPoint `json:"points,omitzero"`
}

// BenchPoint is one engine at one thread count and batch size.
type BenchPoint struct {
	Engine  string `json:"engine"`
	Threads int    `json:"threads"`
	Batch   int    `json:"batch,omitzero"`
	// Before and After are inference times of the unchanged and of the changed model, measured
	// interleaved. Speedup is Before divided by After.
	Before  *profile.Metric `json:"before_s,omitzero"`
	After   *profile.Metric `json:"after_s,omitzero"`
	Speedup *profile.Metric `json:"speedup,omitzero"`
	// Cause says why a gain is missing, Error why a figure is missing.
	Cause Cause  `json:"cause,omitzero"`
	Error string `json:"error,omitzero"`
}
